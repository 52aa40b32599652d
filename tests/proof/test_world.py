"""The proof's own world lives an order's life as the deployed system does."""

import pytest

from tests.proof.world import a_world


@pytest.mark.parametrize("product", ["page", "wap", "qr"])
def test_an_order_is_paid_and_its_stock_sold(database, product):
    with a_world(database) as world:
        order_no = world.place("k1").document["order"]["order_no"]
        started = world.start(order_no, product)
        assert started.status == 201, started.text
        world.pay(started.document["out_trade_no"])
        world.settle()
        assert database.stock(1001) == (9, 0)
        assert database.value("SELECT status FROM oms_order") == "PAID"
        world.come_to_rest()
        assert database.value("SELECT status FROM oms_order") == "PAID"


def test_what_is_not_paid_expires_and_late_money_goes_back(database):
    with a_world(database) as world:
        order_no = world.place("k1").document["order"]["order_no"]
        number = world.start(order_no).document["out_trade_no"]
        world.come_to_rest()
        assert database.value("SELECT close_reason FROM oms_order") == "EXPIRED"
        world.pay(number, database.value("SELECT pay_amount FROM oms_order"))
        world.settle()
        world.come_to_rest()
        assert database.value("SELECT state FROM oms_order_payment") == "REFUNDED"
        assert database.stock(1001) == (10, 0)
