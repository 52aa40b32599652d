"""What a flash sale promises is held to, and an app's patience ends."""

import time
import urllib.error
from dataclasses import replace
from typing import Any

import pytest

from infra.bench import asking
from infra.bench.flash_sale import Sale, _word, _wrong
from infra.bench.life import Life
from infra.bench.life_stages import Stage
from infra.bench.way import WentWrong
from infra.local.shop import Reply

EXACT = Sale(
    orders=5000,
    units=1000,
    clients=6,
    held=1000,
    refused_at_once=1500,
    refused_in_line=2500,
    burst=100.0,
    until_last=101.0,
    longest_wait=1.5,
    longest_answer=3.0,
    decisions=700,
    asked_again=2,
)
IN_LINE = 3500


def wrong(taken: int = IN_LINE, rows: int = IN_LINE, **changes: Any) -> list[str]:
    return list(_wrong(replace(EXACT, **changes), taken, rows))


def test_an_exact_sale_has_nothing_wrong_with_it():
    assert wrong() == []


def test_one_hold_too_many_is_told():
    assert wrong(held=1001) == ["1,001 orders have a hold, and not 1,000"]


def test_a_member_who_was_told_nothing_is_missed():
    assert wrong(refused_in_line=2499) == ["3,999 members were told OUT_OF_STOCK, and not 4,000"]


def test_a_refusal_leaves_no_row():
    assert wrong(rows=3501) == ["3,501 orders are there of those that were taken, and not 3,500"]


@pytest.mark.parametrize("which", ["longest_wait", "longest_answer"])
def test_nobody_waits_a_minute_longer_than_the_burst(which):
    waited: dict[str, Any] = {which: 160.0}
    assert wrong(**waited) == []
    waited[which] = 161.0
    assert wrong(**waited) == ["somebody waited 161 s, the burst and 61 s more"]


def test_fewer_members_than_units_leave_some():
    few: dict[str, Any] = {"orders": 10, "held": 10, "refused_at_once": 0, "refused_in_line": 0}
    assert wrong(10, 10, **few) == []


def test_a_seventeenth_connection_is_told():
    life = Life(EXACT, [Stage("place", 2.0, [0.1, 0.3, 0.2])], 6, 16)
    assert life.wrong == []
    assert replace(life, connections=17).wrong == ["17 connections were open at a time"]
    [row] = life.rows()
    assert (row["per_second"], row["p50_ms"], row["p99_ms"]) == (1.5, 200.0, 300.0)
    assert life.document()["flash_sale"]["refused_at_the_gate"] == 1500
    assert "| place | 2 | 200 | 300 | 3 |" in life.lines()


def reply(status: int, code: str | None = None) -> Reply:
    return Reply(status, {}, {"code": code})


def test_an_app_asks_until_it_is_answered(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    said: list[Any] = [
        urllib.error.URLError("no"),
        TimeoutError(),
        reply(503),
        reply(202),
        reply(201),
    ]

    def ask() -> Any:
        one = said.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    assert asking.answered(ask) == (reply(201), 5)


def test_an_app_gives_up_in_the_end(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(WentWrong, match="20 times"):
        asking.answered(lambda: reply(503))


def test_an_answer_that_nobody_expects_ends_the_sale():
    assert _word(reply(200)) == _word(reply(201)) == "taken"
    assert _word(reply(409, "OUT_OF_STOCK")) == "refused"
    for status, code in ((409, "AMOUNT_CHANGED"), (400, "REQUEST_INVALID")):
        with pytest.raises(WentWrong):
            _word(reply(status, code))
