"""The hostile section sees what it is there for: each test plants a fault, and it is reported."""

import re

import pytest

from functions import create_order
from lockstep.alipay import notice
from lockstep.api import operator_requests, problems, requests, views
from lockstep.api.problems import Problem
from lockstep.messaging import contracts
from lockstep.orders import query
from tests.proof.hostile import fuzz
from tests.proof.hostile import plants as hostile_planted
from tests.proof.hostile.section import SECTION
from tests.proof.hostile.shop import FOREIGN, THEIRS
from tests.proof.section import Extent, Form, proved
from tests.support.builders import place_command

FIXED = Extent(Form.FIXED)


def reported(database, part):
    """Why each case did not hold."""
    return [fault.why for fault in proved(SECTION, part, database, FIXED).faults]


def test_a_status_that_the_document_does_not_have(database, monkeypatch):
    monkeypatch.setitem(problems.PROBLEMS, "ORDER_NOT_FOUND", (500, "gone"))
    assert "['status 500']" in "".join(reported(database, "document-getOrder"))


def test_an_exception_of_a_handler(database, monkeypatch):
    def fail(_):
        raise ValueError("let out")

    monkeypatch.setattr(requests, "read_orders_query", fail)
    assert "let out" in "".join(reported(database, "document-listOrders"))


def test_a_member_of_an_answer_that_the_document_does_not_have(database, monkeypatch):
    monkeypatch.setattr(views, "show_sku", lambda sku: {"sku_id": sku.sku_id, "x": 1})
    assert "x is not documented" in "".join(reported(database, "document-getStock"))


def test_a_refusal_that_leaves_something(database, monkeypatch):
    def leave(event):
        try:
            return requests.read_place_order(event)
        except Problem:
            database.execute("UPDATE ims_sku_stock SET title = CONCAT(title, '!')")
            raise

    monkeypatch.setattr(create_order, "read_place_order", leave)
    assert "it left something" in "".join(reported(database, "document-createOrder"))


def test_a_request_that_ought_to_be_refused(database, monkeypatch):
    def forgive(event):
        try:
            return requests.read_place_order(event)
        except Problem:
            return place_command()

    monkeypatch.setattr(create_order, "read_place_order", forgive)
    assert "accepted" in "".join(reported(database, "document-createOrder"))


def test_an_answer_on_a_walk_that_the_document_does_not_have(database, monkeypatch):
    monkeypatch.setitem(problems.PROBLEMS, "ORDER_NOT_FOUND", (500, "gone"))
    assert reported(database, "links")


def test_an_arithmetic_error_of_the_reader_of_notices(database, monkeypatch):
    monkeypatch.setattr(notice, "_AMOUNT", re.compile(".*"))
    assert "InvalidOperation" in "".join(reported(database, "fuzz-notice"))


def test_a_signature_that_is_taken_for_changed_bytes(database, monkeypatch):
    monkeypatch.setattr(notice, "is_signed", lambda *_: True)
    assert "taken unsigned" in "".join(reported(database, "fuzz-notice"))


def test_a_message_that_is_taken_for_what_it_does_not_say(database, monkeypatch):
    monkeypatch.setattr(
        contracts.ReserveStock,
        "read",
        lambda _: contracts.ReserveStock(order_id=1, reservation_id="1-1"),
    )
    assert reported(database, "fuzz-message")


@pytest.mark.skipif(not fuzz.HAS_ATHERIS, reason="atheris has no wheel for this machine")
def test_a_fault_that_only_coverage_leads_to():
    executed, found, told = fuzz.fuzz("planted", 200_000, 1, hostile_planted)
    assert 0 < executed < 200_000
    assert found is not None
    assert found[:3] == b"PK\x07"
    assert "let out" in told


def test_a_charset_that_is_read_as_another(database, monkeypatch):
    monkeypatch.setitem(notice._CODECS, "gbk", "latin-1")
    with pytest.raises(AssertionError):
        SECTION.replay(database, "shapes-charsets", "said, gbk")


def test_a_charset_that_is_taken_and_ought_not_to_be(database, monkeypatch):
    monkeypatch.setitem(notice._CODECS, "utf-7", "utf-7")
    with pytest.raises(AssertionError):
        SECTION.replay(database, "shapes-charsets", "said, utf-7")


def test_a_newline_that_a_route_overlooks(database, monkeypatch):
    monkeypatch.setattr("lockstep.api.app._MATCHED", "\n/")
    with pytest.raises(AssertionError):
        SECTION.replay(database, "shapes-names", "order, 0a behind")


def test_a_check_of_a_claim_that_is_dropped(database, monkeypatch):
    monkeypatch.setattr(requests, "_MEMBER_ID", re.compile("[0-9.]+"))
    assert "'sub': 0" in "".join(reported(database, "tokens"))


def test_a_scope_that_is_found_inside_another(database, monkeypatch):
    def by_substring(event):
        claims = requests.read_claims(event)
        if operator_requests.SCOPE not in str(claims.get("scope", "")):
            raise Problem("OPERATOR_SCOPE_MISSING")
        return str(claims.get("sub", ""))

    monkeypatch.setattr(operator_requests, "read_operator", by_substring)
    assert "lockstep/ops2" in "".join(reported(database, "tokens"))


def test_an_order_that_somebody_else_is_shown(database, monkeypatch):
    find = query.find
    monkeypatch.setattr(query, "find", lambda _, number: find(FOREIGN, number))
    with pytest.raises(AssertionError):
        SECTION.replay(database, "tokens", f"getOrder of {THEIRS} by 42")
