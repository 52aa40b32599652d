"""The commands in the queues: old samples parse in the new model, newer senders may add members,
and what is not the command is refused, so that it is retried and kept as a dead letter."""

import json

import pytest
from pydantic import ValidationError

from infra import message_schemas
from lockstep.messaging.contracts import (
    QUEUE_OF,
    Command,
    ConfirmStock,
    RefundPayment,
    ReleaseStock,
    ReserveStock,
)
from tests.support.samples import EVENTS, messages
from tests.support.schema import faults

COMMANDS: dict[str, type[Command]] = {
    "reserve_stock": ReserveStock,
    "confirm_stock": ConfirmStock,
    "release_stock": ReleaseStock,
    "refund_payment": RefundPayment,
}
NAMES = sorted(COMMANDS)
STOCK = [name for name in NAMES if name.endswith("_stock")]


def old_sample(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((EVENTS / "messages" / f"{name}-v1.json").read_text())
    return found


def test_every_command_has_a_sample_and_a_schema():
    assert {path.name for path in messages(1)} == {f"{name}-v1.json" for name in COMMANDS}
    assert {path.stem for path in (EVENTS / "schemas").iterdir()} == COMMANDS.keys()
    assert set(QUEUE_OF) == set(COMMANDS.values())


def test_the_schemas_are_what_the_models_say():
    message_schemas.main(["--check"])


def test_schemas_that_drifted_fail_the_check(tmp_path, monkeypatch):
    monkeypatch.setattr(message_schemas, "FOLDER", tmp_path)
    message_schemas.main([])
    (tmp_path / "confirm_stock.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"python -m infra.message_schemas.*: confirm_stock\.json"):
        message_schemas.main(["--check"])


@pytest.mark.parametrize("name", NAMES)
def test_a_message_of_the_first_version_is_read_as_it_was_meant(name):
    command = COMMANDS[name].model_validate_json(json.dumps(old_sample(name)))
    assert command.model_dump() == old_sample(name)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_is_what_the_schema_says(name):
    command = COMMANDS[name].model_validate(
        {"reservation_id": "202610240136005000421234-1", "order_id": 1, "refund_id": 1}
    )
    schema = json.loads((EVENTS / "schemas" / f"{name}.json").read_text())
    assert faults(json.loads(command.model_dump_json()), schema, {}) == []
    assert faults(old_sample(name), schema, {}) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_member_that_is_not_known_is_no_obstacle(name):
    newer = {**old_sample(name), "priority": "high", "lines": [{"sku_id": 1001}]}
    command = COMMANDS[name].model_validate_json(json.dumps(newer))
    assert command.model_dump() == old_sample(name)


WRONG = {
    "another version": {"v": 2},
    "a version as text": {"v": "1"},
    "an unknown type": {"type": "ShipOrder"},
    "a type in other letters": {"type": "confirmstock"},
    "no type": {"type": None},
    "a long correlation id": {"correlation_id": "c" * 129},
}
WRONG_OF_STOCK = {
    "no reservation": {"reservation_id": None},
    "a reservation without its number": {"reservation_id": "202610240136005000421234"},
    "a reservation numbered 0": {"reservation_id": "202610240136005000421234-0"},
    "a reservation with a line end": {"reservation_id": "202610240136005000421234-1\n"},
    "a reservation beyond ASCII": {"reservation_id": "２０２６-1"},  # noqa: RUF001
    "a long reservation": {"reservation_id": "1" * 33 + "-1"},
    "order 0": {"order_id": 0},
    "an order as text": {"order_id": "1"},
    "an order that is true": {"order_id": True},
    "an order as a fraction": {"order_id": 1.0},
}
WRONG_OF_A_REFUND = {
    "refund 0": {"refund_id": 0},
    "a refund as text": {"refund_id": "1"},
    "no refund": {"refund_id": None},
}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, changes) for name in NAMES for changes in WRONG.values()),
        *((name, changes) for name in STOCK for changes in WRONG_OF_STOCK.values()),
        *(("refund_payment", changes) for changes in WRONG_OF_A_REFUND.values()),
    ],
)
def test_what_is_not_the_command_is_refused(name, changes):
    with pytest.raises(ValidationError):
        COMMANDS[name].model_validate_json(json.dumps(old_sample(name) | changes))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", NAMES)
def test_a_command_in_anothers_queue_is_refused(name, other):
    if name != other:
        with pytest.raises(ValidationError):
            COMMANDS[name].model_validate_json(json.dumps(old_sample(other)))


@pytest.mark.parametrize("body", ["", "null", "[]", "not JSON", "[" * 100_000, '"ConfirmStock"'])
def test_what_is_no_object_is_refused_without_another_fault(body):
    with pytest.raises(ValidationError):
        ConfirmStock.model_validate_json(body)
