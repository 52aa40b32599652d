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

from tests.proof.guards import in_code, in_sql, witnesses
from tests.proof.guards import section as guards
from tests.proof.guards.conjuncts import conjuncts, unwrapped
from tests.proof.guards.unproved import UNPROVED
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
"""
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
        ]


def test_without_a_guard_its_code_goes_on_and_with_it_again_it_does_not(tmp_path):
    with a_module(tmp_path, CODE) as module:
        size, *_ = (g for g in in_code.guards_of(module) if "size > 3" in g.name)
        with size.without(), pytest.raises(AttributeError, match="request_hash"):
            module.decide(object(), "1", 4)
        with pytest.raises(ValueError, match="1"):
            module.decide(object(), "1", 4)


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
    assert [key for key, times in names.items() if times > 1] == []
    assert names.keys() >= UNPROVED
    assert set(witnesses.read()) <= {guard.key for guard in witnesses.wanted()}


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
