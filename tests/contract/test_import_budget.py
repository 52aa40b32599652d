"""No handler loads more at its start than its budget has: a change that makes cold starts slower is
seen in `make check`, by what is counted and not by a clock."""

from pathlib import Path

import pytest

from infra.local.paths import ROOT
from tests.support import import_budget, layers
from tests.support.import_budget import HEAVY, loaded

BUDGET = import_budget.budget()
# A budget that is looser than this hides the next tenth that is wasted.
SLACK = 0.1
REWRITE = "python -m tests.support.import_budget writes the budget anew"


def test_every_function_has_a_budget():
    assert sorted(BUDGET) == layers.FUNCTIONS


@pytest.mark.parametrize("function", layers.FUNCTIONS)
def test_a_handler_keeps_to_its_budget(function):
    found, allowed = loaded(function), BUDGET[function]
    assert set(found.heavy) <= set(allowed.heavy), REWRITE
    assert found.modules <= allowed.modules, REWRITE
    assert found.bytecode_bytes <= allowed.bytecode_bytes, REWRITE


@pytest.mark.parametrize("function", layers.FUNCTIONS)
def test_a_budget_is_no_larger_than_it_has_to_be(function):
    found, allowed = loaded(function), BUDGET[function]
    assert set(found.heavy) == set(allowed.heavy), REWRITE
    assert found.modules >= allowed.modules * (1 - SLACK), REWRITE
    assert found.bytecode_bytes >= allowed.bytecode_bytes * (1 - SLACK), REWRITE


def test_no_budget_has_room_for_the_sdk_nor_for_another_model_of_events():
    for row in BUDGET.values():
        assert not {"boto3", "botocore.session", "urllib3"} & set(row.heavy)
        assert not [name for name in row.heavy if "parser" in name and "powertools" in name]


def test_cryptography_is_in_the_budget_of_whoever_talks_to_alipay_alone():
    having = {name for name, row in BUDGET.items() if "cryptography" in row.heavy}
    assert having == {
        *("alipay_notify", "cancel_order", "refund_payment", "start_payment", "sweep_expired")
    }


def with_also(package: str, folder: Path) -> import_budget.Loaded:
    """What relay_outbox would load if it imported one more."""
    source = (ROOT / "functions" / "relay_outbox.py").read_text(encoding="utf-8")
    (folder / "relay_outbox.py").write_text(f"{source}\nimport {package}\n")
    return loaded("relay_outbox", [folder, *layers.paths_of("relay_outbox")[1:]])


@pytest.mark.parametrize("package", ["boto3", "asyncio", "urllib.request", "email.parser"])
def test_a_heavy_package_more_is_seen(tmp_path, package):
    assert package not in BUDGET["relay_outbox"].heavy
    assert package in with_also(package, tmp_path).heavy


def test_what_is_counted_grows_with_what_is_imported_of_the_layer(tmp_path):
    more = with_also("lockstep.orders.place", tmp_path)
    assert more.modules > BUDGET["relay_outbox"].modules
    assert more.bytecode_bytes > BUDGET["relay_outbox"].bytecode_bytes


def test_a_heavy_package_is_one_that_can_be_loaded():
    """Or a name that was misspelt would be missed by everybody."""
    for name in HEAVY:
        assert name in loaded_by(name)


def loaded_by(package: str) -> set[str]:
    program = f"import sys; sys.path[:0] = sys.argv[2:]; import {package}; print(*sys.modules)"
    paths = [layers.built()["LockstepLayer"], layers.built()["CryptoLayer"]]
    return set(layers.start(program, package, paths).split())
