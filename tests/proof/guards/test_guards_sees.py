"""Goal: the section on guards finds every guard there is, and reports one that nothing misses.

Method: small modules and schemas with a guard more, and witnesses that are none.
"""

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from pydantic import ValidationError

from infra.local.paths import ROOT
from lockstep.api.requests import OrderLineBody, PlaceOrderBody
from tests.proof.guards import equivalents, in_code, in_models, in_sql, witnesses
from tests.proof.guards import section as guards
from tests.proof.guards.conjuncts import conjuncts, unwrapped
from tests.proof.guards.equivalents import EQUIVALENTS
from tests.proof.section import Extent, Form, Tally, proved
from tests.support.database import Database

CODE: Final = """
def decide(request, text, size):
    if request is None or size > 3:
        raise ValueError(text)
    if text and not size:
        return None
    if size == 2:
        text = text.strip()
    try:
        number = int(text)
    except ValueError:
        raise KeyError(text) from None
    except MemoryError:
        raise
    same = request.request_hash == text
    for one in range(number):
        if one:
            break
    return same

def answer(this, that):
    if this:
        return this == 1 and that == 2
    return this or ""

def either(this):
    return None if this is None else this.real
"""
FORMS: Final = ("answer", "either")
STORE: Final = '''
from typing import Final
CLOSE: Final = """
UPDATE oms_order AS o
SET status = 'CLOSED'
WHERE o.id = %s
  AND o.status IN ('A', 'B')
  AND o.expires_at BETWEEN %s AND NOW(3)
  AND NOT EXISTS (
      SELECT 1 FROM a WHERE a.order_id = o.id AND a.state = 'OPEN')
"""
LOOK: Final = "SELECT state FROM oms_order WHERE status = 'PAID'"
LOCK: Final = "SELECT state FROM oms_order WHERE id = %s FOR UPDATE NOWAIT"
def close(tx, order_id):
    return tx.execute(CLOSE, (order_id, None)) + tx.one(LOCK) + tx.one(LOOK)
'''


@contextmanager
def a_module(folder: Path, text: str) -> Iterator[ModuleType]:
    path = folder / "planted.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["planted"]


def test_every_form_of_a_guard_in_code_is_found_and_nothing_else(tmp_path):
    with a_module(tmp_path, CODE) as module:
        assert [guard.name for guard in in_code.guards_of(module)] == [
            "decide: request is None | …",
            "decide: size > 3 | …",
            "decide: text and (not size)",
            "decide: except ValueError",
            "decide: compare request.request_hash == text",
            "decide: one",
            "answer: this",
            "answer: answer this == 1 | …",
            "answer: answer that == 2 | …",
            "either: either this is None",
        ]


def test_without_a_guard_its_code_goes_on_and_with_it_again_it_does_not(tmp_path):
    with a_module(tmp_path, CODE) as module:
        size, *_ = (g for g in in_code.guards_of(module) if "size > 3" in g.name)
        with size.without(), pytest.raises(AttributeError, match="request_hash"):
            module.decide(object(), "1", 4)
        with pytest.raises(ValueError, match="1"):
            module.decide(object(), "1", 4)


def test_an_answer_without_one_of_its_operands_leans_on_the_other(tmp_path):
    with a_module(tmp_path, CODE) as module:
        one, two, none = [g for g in in_code.guards_of(module) if g.text.split()[0] in FORMS]
        with one.without():
            assert (module.answer(3, 2), module.answer(1, 3)) == (True, False)
        with two.without():
            assert (module.answer(3, 2), module.answer(1, 3)) == (False, True)
        with none.without(), pytest.raises(AttributeError, match="real"):
            module.either(None)
        assert not module.answer(3, 2)
        assert module.either(None) is None


def test_a_limit_of_a_model_is_gone_from_those_that_it_stands_in():
    body = {"lines": [{"sku_id": 1, "quantity": 1_000_001}]}
    [limit] = [g for g in in_models.all_guards() if "OrderLineBody.quantity: le" in g.key]
    with limit.without():
        assert PlaceOrderBody.model_validate(body).lines[0].quantity == 1_000_001
        with pytest.raises(ValidationError, match="quantity"):
            OrderLineBody.model_validate({"sku_id": 1, "quantity": 0})
    with pytest.raises(ValidationError, match="quantity"):
        PlaceOrderBody.model_validate(body)


def test_every_condition_and_lock_of_a_statement_that_decides_is_found(tmp_path):
    with a_module(tmp_path, STORE) as store:
        found = [guard.name for guard in in_sql.guards_of(store)]
    assert found == [
        "CLOSE: o.status IN ('A', 'B')",
        "CLOSE: o.expires_at BETWEEN %s AND NOW(3)",
        "CLOSE: NOT EXISTS ( SELECT 1 FROM a WHERE a.order_id = o.id AND a.state = 'OPEN')",
        "CLOSE: a.order_id = o.id",
        "CLOSE: a.state = 'OPEN'",
        "LOCK: FOR UPDATE NOWAIT",
    ]


def test_a_statement_without_a_guard_keeps_its_arguments(tmp_path):
    with a_module(tmp_path, STORE) as store:
        guard = next(g for g in in_sql.guards_of(store) if "BETWEEN" in g.name)
        with guard.without():
            assert "AND (TRUE OR %s IS NULL)\n  AND NOT EXISTS" in store.CLOSE
        assert guard.text in store.CLOSE


def test_a_guard_of_a_statement_that_no_row_takes_away_wants_a_test(tmp_path):
    with a_module(tmp_path, STORE) as store:
        assert [witnesses.rows_of(one) for one in in_sql.guards_of(store)] == [[]] * 6


def test_a_condition_is_taken_apart_at_its_own_ands():
    text = "WHERE a = 1 AND (b OR c AND d) AND e BETWEEN 1 AND 2 ORDER BY f"
    assert [part for _, part in conjuncts(text, 5)] == [
        "a = 1",
        "(b OR c AND d)",
        "e BETWEEN 1 AND 2",
    ]
    assert unwrapped("((a) and (b))") == "(a) and (b)"


def test_no_two_guards_have_one_name_and_nothing_is_listed_that_is_no_guard():
    names = Counter(guard.key for guard in in_sql.all_guards())
    names.update(guard.key for guard in in_code.all_guards())
    names.update(guard.key for guard in in_models.all_guards())
    assert [key for key, times in names.items() if times > 1] == []
    assert names.keys() >= EQUIVALENTS.keys()
    assert set(witnesses.read()) <= {guard.key for guard in witnesses.wanted()}


def test_every_guard_has_a_witness_that_exists():
    """The section tries them; this names, in no time, all that are gone since."""
    known = witnesses.read()
    assert [guard.key for guard in witnesses.wanted() if guard.key not in known] == []
    files = {path: (ROOT / path).read_text("utf-8") for path, _ in map(named, known.values())}
    gone = [name for path, name in map(named, known.values()) if f"def {name}(" not in files[path]]
    assert gone == []


def named(test: str) -> tuple[str, str]:
    """(file, function) of a test."""
    path, _, name = test.partition("::")
    return path, name.partition("[")[0]


def test_an_equivalent_has_its_reason():
    text = "a f: x\n    Nobody\n    sees it.\nb g: y\n    Nor this.\n"
    assert equivalents.read(text) == {"a f: x": "Nobody sees it.", "b g: y": "Nor this."}
    with pytest.raises(ValueError, match="no reason is given for"):
        equivalents.read("a f: x\nb g: y\n    Nor this.\n")


# --- what is reported -----------------------------------------------------------------------------

A_GUARD: Final = "lockstep.money parse_yuan"
NO_WITNESS: Final = "tests/unit/test_money.py::test_there_is_no_such_test"


def tallied(database: Database, part: str) -> Tally:
    return proved(guards.SECTION, part, database, Extent(Form.FIXED))


@pytest.mark.parametrize(
    ("witness", "why"),
    [
        (None, "nothing is known to miss"),
        ("tests/unit/test_settings.py", "does not miss"),
    ],
)
def test_a_guard_that_nothing_misses_is_reported(database, monkeypatch, witness, why):
    known = dict(witnesses.read())
    [key] = [key for key in known if key.startswith(A_GUARD)]
    other = next((test for test in known.values() if witness and test.startswith(witness)), None)
    changed = {name: test for name, test in known.items() if name != key}
    if other is not None:
        changed[key] = other
    monkeypatch.setattr(witnesses, "read", lambda: changed)
    [fault] = tallied(database, "tests-lockstep").faults
    assert A_GUARD in fault.case
    assert why in fault.why


def test_an_equivalent_is_told_and_not_tried(database, monkeypatch):
    whole = tallied(database, "tests-lockstep")
    [key] = [key for key in witnesses.read() if key.startswith(A_GUARD)]
    for user in (guards, witnesses):
        monkeypatch.setattr(user, "EQUIVALENTS", {key: "Nobody sees it."})
    tally = tallied(database, "tests-lockstep")
    assert tally.notes == [f"{key}: Nobody sees it."]
    assert (tally.tried, tally.possible) == (whole.tried - 1, whole.possible)


def test_a_pair_too_many_and_a_check_that_lets_all_through_are_reported(database):
    [check] = [
        row["Create Table"].count("ck_sku_price")
        for row in database.rows("SHOW CREATE TABLE ims_sku_stock")
    ]
    assert check == 1
    database.execute("INSERT INTO oms_order_transition VALUES ('PAID', 'CLOSED')")
    database.execute("ALTER TABLE ims_sku_stock DROP CHECK ck_sku_price")
    database.execute(
        "ALTER TABLE ims_sku_stock ADD CONSTRAINT ck_sku_price CHECK (price >= 0 OR TRUE)"
    )
    try:
        faults = tallied(database, "schema").faults
    finally:
        database.execute(
            "DELETE FROM oms_order_transition WHERE from_status = 'PAID' AND to_status = 'CLOSED'"
        )
        database.execute("ALTER TABLE ims_sku_stock DROP CHECK ck_sku_price")
        database.execute("ALTER TABLE ims_sku_stock ADD CONSTRAINT ck_sku_price CHECK (price >= 0)")
    assert [fault.case.split(":")[0] for fault in faults] == ["ck_sku_price", "pair PAID -> CLOSED"]
