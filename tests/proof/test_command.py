"""The proof's command says what was tried, ends in time, and tells how a fault is seen again."""

import shlex
import time

import pytest

from infra.local import mysql
from tests.proof import command, report, run
from tests.proof.report import Proved
from tests.proof.section import Enough, Extent, Fault, Form, Section, Tally, UnknownCase, proved

BOUNDED = Extent(Form.BOUNDED, 1)
SECTION = Section(
    "one",
    "it holds",
    lambda form: f"some, {form}",
    lambda _: ["a", "b"],
    lambda *_: None,
    lambda *_: None,
)


def of_part(part, seed, tried, possible):
    return Proved("one", part, Extent(Form.LONG, seed), Tally(tried, possible), 1.0)


def test_what_is_possible_is_counted_once_and_what_was_tried_of_every_seed():
    found = [of_part("a", 1, 5, 90), of_part("b", 1, 5, 7), of_part("a", 2, 5, 80)]
    head, _, row = report.table([SECTION], found).splitlines()
    assert "tried, in 2 seeds" in head
    assert "possible, once" in head
    assert row == "| one | it holds | some, long | 15 | 97 | 0 | 3 |"


def test_where_there_is_no_end_to_one_part_there_is_none_to_the_section():
    found = [of_part("a", 1, 5, None), of_part("b", 1, 5, 7)]
    assert report.table([SECTION], found).endswith(
        "| one | it holds | some, long | 10 | no end | 0 | 2 |"
    )


def test_what_was_not_counted_is_told_as_a_bound():
    found = [of_part("a", 1, 5, 90), Proved("one", "b", BOUNDED, Tally(5, 7, is_bound=True), 1.0)]
    assert report.table([SECTION], found).endswith(
        "| some, long, some, bounded | 10 | at most 97 | 0 | 2 |"
    )


@pytest.mark.parametrize("case", ["a b; c", "it's", '"$HOME"', "`x` \\"])
def test_a_command_that_replays_comes_through_the_shell(case):
    told = report.told(Proved("one", "a", BOUNDED, Tally(), 0), Fault(case, "why"))
    *_, word = shlex.split(told.splitlines()[0])
    assert word.replace("$$", "$") == f"replay=one/a/{case}"


def test_a_fault_without_a_case_is_seen_again_from_its_seed():
    one = Proved("one", "a", Extent(Form.LONG, 7), Tally(), 0)
    assert report.told(one, Fault("", "why")).startswith("make proof replay=one/a seed=7 seeds=1\n")


def test_a_trial_that_fails_as_tests_do_is_a_fault_and_not_the_end():
    tally = Tally()
    tally.attempt("a", lambda: pytest.fail("so"))
    assert [fault.case for fault in tally.faults] == ["a"]


def test_no_case_begins_when_the_time_is_over():
    tally = Tally(until=time.monotonic() - 1)
    with pytest.raises(Enough):
        tally.attempt("a", lambda: None)
    assert tally.tried == 0


def test_a_part_that_tries_nothing_is_a_fault(database):
    [fault] = proved(SECTION, "a", database, BOUNDED).faults
    assert "it tried nothing" in fault.why
    assert proved(SECTION, "a", database, BOUNDED, time.monotonic() - 1).faults == []


@pytest.mark.parametrize("name", ["nobody/a/b", "crash/nobody/b"])
def test_what_is_not_there_is_not_replayed(name):
    section, part, case = name.split("/")
    with pytest.raises(UnknownCase, match=r"no .* nobody.*: there are"):
        run.replay(section, part, case, BOUNDED)


@pytest.mark.parametrize(
    "words", [["--sections", "nobody"], ["--seeds", "0"], ["--minutes", "x"], ["--minutes", "-1"]]
)
def test_what_cannot_be_asked_for_is_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == command.MISUSED
    assert "error: argument" in capsys.readouterr().err


def test_the_server_is_stopped_by_the_last_that_uses_it(tmp_path, monkeypatch):
    stopped: list[object] = []
    monkeypatch.setattr(run, "PROOF_HOME", tmp_path)
    monkeypatch.setattr(mysql, "stop", stopped.append)
    with run.server_in_use():
        with run.server_in_use():
            pass
        assert stopped == []
    assert stopped == [tmp_path]


@pytest.mark.parametrize(("faults", "code"), [([], command.HELD), ([Fault("a", "so")], 1)])
def test_seed_after_seed_is_tried_and_a_fault_is_the_exit_code(
    tmp_path, monkeypatch, capsys, faults, code
):
    extents: list[Extent] = []

    def prove(sections, extent, _):
        extents.append(extent)
        yield from (
            Proved(section.name, part, extent, Tally(1, 1, list(faults)), 0.0)
            for section in sections
            for part in section.parts(extent)
        )

    monkeypatch.setattr(run, "PROOF_HOME", tmp_path)
    monkeypatch.setattr(mysql, "stop", lambda _: False)
    monkeypatch.setattr(run, "prove", prove)
    assert command.main(["--sections", "hostile", "--seed", "11", "--seeds", "2"]) == code
    assert extents == [Extent(Form.LONG, 11), Extent(Form.LONG, 12)]
    said = capsys.readouterr().out
    assert ("Everything held" in said) == (not faults)
    assert said.count("make proof replay=hostile/tokens/a") == 2 * len(faults)
