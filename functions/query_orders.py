"""GET /orders, /orders/{order_no}, /orders/requests/{key} and /stock/{sku_id}: plain reads."""

from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.api import requests, views
from lockstep.api.app import answer, new_app
from lockstep.api.problems import Problem
from lockstep.inventory import query as stock
from lockstep.observability import observed
from lockstep.orders import query
from lockstep.payments.query import payments_of

app = new_app()


@app.get("/orders")
def list_orders() -> Response[str]:
    event = app.current_event.raw_event
    asked = requests.read_orders_query(event)
    page = query.page(requests.read_member_id(event), asked.status, asked.before, asked.limit)
    orders = [views.show_order(order) for order in page.orders]
    return answer(200, {"orders": orders, "next_cursor": requests.write_cursor(page.next_before)})


@app.get("/orders/requests/<key>")
def probe_request(key: str) -> Response[str]:
    member_id = requests.read_member_id(app.current_event.raw_event)
    state, order = query.probe(member_id, requests.check_key(unquote(key)))
    return answer(200, {"request_state": state, "order": order and views.show_order(order)})


@app.get("/orders/<order_no>")
def get_order(order_no: str) -> Response[str]:
    member_id = requests.read_member_id(app.current_event.raw_event)
    order = query.find(member_id, requests.check_order_no(order_no))
    if order is None:
        raise Problem("ORDER_NOT_FOUND")
    document = views.show_order_in_full(order, payments_of(order.id), query.timeline(order.id))
    return answer(200, document)


@app.get("/stock/<sku_id>")
def get_stock(sku_id: str) -> Response[str]:
    sku = stock.find(requests.check_sku_id(sku_id))
    if sku is None:
        raise Problem("SKU_NOT_FOUND")
    return answer(200, views.show_sku(sku))


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)
