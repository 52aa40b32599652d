"""Messages: what was sent once must parse for ever, and what is not ours must not parse at all."""

import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from lockstep.inventory.model import number_of, reservation_id_of
from lockstep.messaging.contracts import (
    QUEUE_OF,
    Command,
    ConfirmStock,
    RefundPayment,
    ReleaseStock,
    ReserveStock,
)

RESERVATION_ID = "202611300143200123420007-1"
COMMANDS = [ReserveStock, ConfirmStock, ReleaseStock]


def sample(model: type, **changes: Any) -> str:
    body = {
        "v": 1,
        "type": model.__name__,
        "reservation_id": RESERVATION_ID,
        "order_id": 1,
        "correlation_id": "c",
    }
    return json.dumps(body | changes)


@pytest.mark.parametrize("model", COMMANDS)
def test_a_command_reads_back_as_it_was_written(model):
    command = model(reservation_id=RESERVATION_ID, order_id=1, correlation_id="c")
    assert json.loads(command.model_dump_json()) == json.loads(sample(model))
    assert model.model_validate_json(command.model_dump_json()) == command


@pytest.mark.parametrize("model", COMMANDS)
def test_a_field_that_a_newer_producer_adds_is_ignored(model):
    command = model.model_validate_json(sample(model, priority="high"))
    assert command.reservation_id == RESERVATION_ID
    assert "priority" not in command.model_dump()


@pytest.mark.parametrize("model", COMMANDS)
@pytest.mark.parametrize(
    "changes",
    [
        {"v": 0},
        {"v": 2},
        {"v": "1"},
        {"type": "RefundPayment"},
        {"type": "reservestock"},
        {"reservation_id": ""},
        {"reservation_id": "202611300143200123420007"},
        {"reservation_id": "202611300143200123420007-0"},
        {"reservation_id": "202611300143200123420007-01"},
        {"reservation_id": "202611300143200123420007-1\n"},
        {"reservation_id": "x" * 33 + "-1"},
        {"reservation_id": None},
        {"order_id": 0},
        {"order_id": "1"},
        {"order_id": 1.5},
        {"order_id": True},
        {"correlation_id": "c" * 129},
    ],
)
def test_another_version_type_or_form_is_refused(model, changes):
    with pytest.raises(ValidationError):
        model.read(sample(model, **changes))


@pytest.mark.parametrize(
    "changes", [{"refund_id": 0}, {"refund_id": "1"}, {"refund_id": None}, {"type": "ReserveStock"}]
)
def test_a_try_of_what_is_no_refund_is_refused(changes):
    body = {"v": 1, "type": "RefundPayment", "refund_id": 1}
    assert RefundPayment.read(json.dumps(body)).refund_id == 1
    with pytest.raises(ValidationError):
        RefundPayment.read(json.dumps(body | changes))


@pytest.mark.parametrize("model", COMMANDS)
def test_a_command_of_another_type_is_refused_though_its_fields_fit(model):
    for other in COMMANDS:
        if other is not model:
            with pytest.raises(ValidationError):
                model.read(sample(other))


@pytest.mark.parametrize("body", ["", "null", "[]", "7", '"x"', "{", "\x00"])
def test_a_body_of_another_kind_is_refused(body):
    with pytest.raises(ValidationError):
        ConfirmStock.model_validate_json(body)


def test_every_command_has_a_queue_of_its_own():
    assert set(QUEUE_OF) == set(get_args(Command))
    assert len(set(QUEUE_OF.values())) == len(QUEUE_OF)


def test_a_reservation_id_leads_back_to_its_number():
    assert reservation_id_of("202611300143200123420007", 12) == "202611300143200123420007-12"
    assert number_of("202611300143200123420007-12") == 12


@pytest.mark.parametrize("left_out", ["v", "type"])
@pytest.mark.parametrize("model", COMMANDS)
def test_a_message_must_say_which_version_and_type_it_is(model, left_out):
    body = json.loads(sample(model))
    assert model.read(json.dumps(body)).order_id == 1
    del body[left_out]
    with pytest.raises(ValueError, match="which version and type"):
        model.read(json.dumps(body))
