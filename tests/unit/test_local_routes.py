"""References in the API's document are replaced, and an unknown kind of them is not passed over."""

import pytest

from infra.local import deploy, routes

VALUES = {"TokenIssuer": "https://issuer.example", "CreateOrder.Arn": "arn:create"}


def test_references_are_replaced_at_any_depth():
    document = {
        "a": [{"Ref": "TokenIssuer"}],
        "b": {"uri": {"Fn::Sub": "path/${CreateOrder.Arn}/invocations"}},
        "c": 1,
    }
    assert routes.resolve(document, VALUES) == {
        "a": ["https://issuer.example"],
        "b": {"uri": "path/arn:create/invocations"},
        "c": 1,
    }


def test_an_unknown_function_is_an_error():
    with pytest.raises(NotImplementedError, match="Fn::Join"):
        routes.resolve({"x": {"Fn::Join": ["", []]}}, VALUES)


@pytest.mark.parametrize(
    ("logical_id", "key"),
    [
        ("ConfirmQueue", "confirm"),
        ("ConfirmDeadLetterQueue", "confirm_dlq"),
    ],
)
def test_queues_are_listed_by_command(logical_id, key):
    assert deploy.queue_key(logical_id) == key


def test_functions_are_listed_by_file():
    assert deploy.snake_case("AlipayNotify") == "alipay_notify"
