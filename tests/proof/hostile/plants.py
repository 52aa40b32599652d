"""Faults at the edges: answers that the document does not have, refusals that leave something, and
readers that take what they ought not to."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import ModuleType
from typing import Any, Final

from functions import create_order
from lockstep.alipay import notice
from lockstep.api import app, operator_requests, problems, requests, views
from lockstep.api.problems import Problem
from lockstep.db.transaction import in_transaction
from lockstep.messaging import contracts
from lockstep.orders import query
from tests.proof.hostile.shop import FOREIGN, THEIRS
from tests.proof.plants import Plant, Planted, instead, returning
from tests.support.builders import place_command

_LEAVE: Final = "UPDATE ims_sku_stock SET title = CONCAT(title, '!')"


def _setting(owner: ModuleType, name: str, value: object) -> Planted:
    return partial(instead, owner, name, lambda _: value)


def _adding(owner: ModuleType, name: str, key: str, value: object) -> Planted:
    return partial(instead, owner, name, lambda there: {**there, key: value})


def _where_refused(then: Callable[[], Any]) -> AbstractContextManager[None]:
    """In place of the refusal of an order's request ``then`` is done."""

    def make(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def forgiving(event: Any) -> Any:
            try:
                return read(event)
            except Problem:
                if (instead_of_it := then()) is not None:
                    return instead_of_it
                raise

        return forgiving

    return instead(create_order, "read_place_order", make)


def _leave_something() -> None:
    in_transaction(lambda tx: tx.execute(_LEAVE))


def _fail(_: object) -> None:
    raise ValueError("let out")


def _an_operator_by_substring(event: Any) -> str:
    claims = requests.read_claims(event)
    if operator_requests.SCOPE not in str(claims.get("scope", "")):
        raise Problem("OPERATOR_SCOPE_MISSING")
    return str(claims.get("sub", ""))


_GONE: Final = _adding(problems, "PROBLEMS", "ORDER_NOT_FOUND", (500, "gone"))

PLANTS: Final = (
    Plant(
        "a status that the document does not have",
        _GONE,
        "document-getOrder",
        seen="['status 500']",
    ),
    Plant(
        "an exception of a handler",
        _setting(requests, "read_orders_query", _fail),
        "document-listOrders",
        seen="let out",
    ),
    Plant(
        "a member of an answer that the document does not have",
        _setting(views, "show_sku", lambda sku: {"sku_id": sku.sku_id, "x": 1}),
        "document-getStock",
        seen="x is not documented",
    ),
    Plant(
        "a refusal that leaves something",
        partial(_where_refused, _leave_something),
        "document-createOrder",
        seen="it left something",
    ),
    Plant(
        "a request that ought to be refused",
        partial(_where_refused, place_command),
        "document-createOrder",
        seen="accepted",
    ),
    Plant("an answer on a walk that the document does not have", _GONE, "links"),
    Plant(
        "a reader of notices that cannot count",
        _setting(notice, "_AMOUNT", re.compile(".*")),
        "fuzz-notice",
        seen="InvalidOperation",
    ),
    Plant(
        "a signature that is taken for changed bytes",
        partial(instead, notice, "is_signed", returning(value=True)),
        "fuzz-notice",
        seen="taken unsigned",
    ),
    Plant(
        "a message that is taken for what it does not say",
        partial(
            instead,
            contracts.ReserveStock,
            "read",
            returning(contracts.ReserveStock(order_id=1, reservation_id="1-1")),
        ),
        "fuzz-message",
    ),
    Plant(
        "a charset that is read as another",
        _adding(notice, "_CODECS", "gbk", "latin-1"),
        "shapes-charsets",
        "said, gbk",
    ),
    Plant(
        "a charset that is taken and ought not to be",
        _adding(notice, "_CODECS", "utf-7", "utf-7"),
        "shapes-charsets",
        "said, utf-7",
    ),
    Plant(
        "a newline that a route overlooks",
        _setting(app, "_MATCHED", "\n/"),
        "shapes-names",
        "order, 0a behind",
    ),
    Plant(
        "a check of a claim that is dropped",
        _setting(requests, "_MEMBER_ID", re.compile("[0-9.]+")),
        "tokens",
        seen="'sub': 0",
    ),
    Plant(
        "a scope that is found inside another",
        _setting(operator_requests, "read_operator", _an_operator_by_substring),
        "tokens",
        seen="lockstep/ops2",
    ),
    Plant(
        "an order that somebody else is shown",
        partial(instead, query, "find", lambda find: lambda _, number: find(FOREIGN, number)),
        "tokens",
        f"getOrder of {THEIRS} by 42",
    ),
)
