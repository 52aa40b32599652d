"""The sample events, each given to its function on a real database."""

import pytest

from functions import (
    alipay_notify,
    confirm_stock,
    refund_payment,
    relay_outbox,
    release_stock,
    reserve_stock,
    sweep_expired,
)
from infra.local import invariants
from lockstep.alipay.keys import load_public_key
from lockstep.orders.place import place
from tests.support.api import ask
from tests.support.builders import a_sku, an_order, place_command
from tests.support.database import Database
from tests.support.lambda_context import Context
from tests.support.notices import APP_ID, SELLER_ID
from tests.support.samples import ALIPAY_PUBLIC_KEY, function_of, of_function, sample

ORDER_NO = "202610240136005000421234"
STATUSES = {
    "create_order": 201,
    "create_order-base64": 201,
    "query_orders-list": 200,
    "query_orders-one": 404,
    "query_orders-request": 200,
    "query_orders-stock": 200,
    "cancel_order": 404,
    "start_payment": 404,
    "operate_payments-refund_order": 404,
    "operate_payments-list": 200,
    "operate_payments-give_back": 404,
    "operate_payments-attach": 404,
}


@pytest.fixture
def alipay(monkeypatch):
    """Settings by which the sample notices are ours."""
    monkeypatch.setenv("ALIPAY_APP_ID", APP_ID)
    monkeypatch.setenv("ALIPAY_SELLER_IDS", SELLER_ID)
    monkeypatch.setenv("ALIPAY_PUBLIC_KEY", ALIPAY_PUBLIC_KEY)
    monkeypatch.setattr(alipay_notify, "_alipay_keys", lambda: [load_public_key(ALIPAY_PUBLIC_KEY)])


@pytest.mark.parametrize(("name", "status"), STATUSES.items())
def test_a_request_is_answered(database, name, status):
    a_sku(database, 1001)
    a_sku(database, 1002)
    assert ask(sample(name)).status == status


def the_order_of_the_samples(database: Database) -> None:
    """Two of SKU 1001 for 19.80, unpaid, under the number that the samples name."""
    a_sku(database)
    order_id = an_order({1001: 2}).id
    database.execute("UPDATE oms_order SET order_no = %s WHERE id = %s", (ORDER_NO, order_id))


def notify(name: str) -> object:
    return alipay_notify.handler(sample(name), Context())["body"]


def test_a_notice_pays_its_order_and_a_refund_of_all_ends_it(database, alipay):
    the_order_of_the_samples(database)
    assert notify("alipay_notify") == "success"
    assert database.value("SELECT status FROM oms_order") == "PAID"
    assert notify("alipay_notify-refund") == "success"
    assert database.value("SELECT status FROM oms_order") == "REFUNDED"


def test_a_notice_of_an_order_that_is_not_there_is_kept_and_asked_for_again(database, alipay):
    assert notify("alipay_notify") == "failure"
    assert database.value("SELECT state FROM oms_order_payment") == "UNMATCHED"


def test_a_confirm_of_what_was_never_held_is_refused_on_record_and_acknowledged(database):
    answer = confirm_stock.handler(sample("confirm_stock"), Context())
    assert answer == {"batchItemFailures": []}
    assert database.count("message_refusal", code="RESERVATION_NOT_RESERVED") == 2


def test_a_release_of_what_was_never_held_leaves_tombstones(database):
    answer = release_stock.handler(sample("release_stock"), Context())
    assert answer == {"batchItemFailures": []}
    assert database.count("ims_reservation", state="RELEASED") == 2
    assert database.count("message_refusal") == 0


def test_a_hold_for_an_order_that_is_not_there_is_acknowledged_and_takes_nothing(database):
    answer = reserve_stock.handler(sample("reserve_stock"), Context())
    assert answer == {"batchItemFailures": []}
    assert (database.count("ims_reservation"), database.count("message_refusal")) == (0, 0)


def test_a_try_of_a_refund_that_is_not_there_is_acknowledged(database):
    assert refund_payment.handler(sample("refund_payment"), Context()) == {"batchItemFailures": []}


def test_a_schedule_that_finds_nothing_to_do_says_so(database):
    nothing_due = {"orders": 0, "holds": 0}
    assert relay_outbox.handler(sample("relay_outbox"), Context()) == {
        "sent": 0,
        "failed": 0,
        "left": 0,
    }
    assert sweep_expired.handler(sample("sweep_expired"), Context()) == {
        "orders_closed": 0,
        "holds_settled": 0,
        "restaged": 0,
        "asked": 0,
        "notices_decided": 0,
        "failed": [],
        "left": nothing_due,
    }


def test_a_body_that_cannot_be_read_fails_alone(database):
    event = sample("confirm_stock-unreadable")
    answer = confirm_stock.handler(event, Context())
    unreadable, readable = event["Records"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": unreadable["messageId"]}]}
    key = readable["attributes"]["MessageDeduplicationId"]
    assert database.count("message_refusal", message_id=key) == 1


def test_every_request_sample_has_its_status_here():
    names = [name for function in map(function_of, STATUSES) for name in of_function(function)]
    assert set(names) == STATUSES.keys()


def test_the_samples_break_nothing(database):
    a_sku(database)
    place(place_command())
    confirm_stock.handler(sample("confirm_stock"), Context())
    release_stock.handler(sample("release_stock"), Context())
    assert invariants.broken(database.rows) == {}
