"""Bodies of POST /orders that are refused, each by its name, without an exception and, since no
database is configured here, without having touched one."""

import json

import pytest

from lockstep.api.requests import BODY_BYTES_MAX, read_place_order
from tests.support.api import ask
from tests.support.http_events import MISSING, PROBLEM_JSON, Answer, an_order_body, post_order
from tests.support.reading import full_width

GOOD = json.dumps(an_order_body())

UNREADABLE = {
    "empty": "",
    "blank": "  ",
    "not JSON": "lines=1001",
    "truncated": GOOD[:-1],
    "followed by more": GOOD + "x",
    "single quotes": "{'lines':[{'sku_id':1001,'quantity':1}]}",
    "a trailing comma": '{"lines":[{"sku_id":1001,"quantity":1},]}',
    "a comment": "{}//",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "latin-1": json.dumps(an_order_body(note="é"), ensure_ascii=False).encode("latin-1"),
    "utf-16": GOOD.encode("utf-16"),
    "utf-32": GOOD.encode("utf-32"),
    "an overlong encoding": GOOD.encode().replace(b"lines", b"\xc1\xacines"),
    "a lone surrogate escaped": json.dumps(an_order_body(note="\ud800")),
    "a lone surrogate in the event": json.dumps(an_order_body(note="\ud800"), ensure_ascii=False),
    "a control character in a string": GOOD.replace("lines", "li\x00nes"),
    "100 000 brackets": "[" * 100_000,
    "100 000 nested objects": '{"lines":' * 100_000,
    "a number of 5000 digits": GOOD.replace("1001", "1" * 5000),
    "1 MB": json.dumps(an_order_body(note="n" * 2**20)),
    "1 MB of blanks": GOOD + " " * 2**20,
}

INVALID_DOCUMENTS = {
    "null": "null",
    "a list": "[]",
    "a string": '"lines"',
    "a number": "1",
    "true": "true",
    "no lines": "{}",
    "NaN": GOOD.replace('"quantity": 1', '"quantity": NaN'),
    "Infinity": GOOD.replace('"quantity": 1', '"quantity": Infinity'),
    "an exponent": GOOD.replace('"quantity": 1', '"quantity": 1e3'),
    "a name given twice": '{"lines":[{"sku_id":1001,"quantity":1,"quantity":2}]}',
    "a name given twice, outside": GOOD[:-1] + ',"note":"a","note":"b"}',
    "a name given twice, once escaped": GOOD[:-1] + ',"note":"a","no\\u0074e":"b"}',
}

WRONG_QUANTITIES = [0, -1, -0, 1.5, 1.0, "1", "", True, False, None, [], {}, 1_000_001, 2**31 - 1]
WRONG_SKU_IDS = [0, -1, 2**53, 2**63, 2**64, 1.0, "1001", True, None, [1001], MISSING]


def lines(*pairs: tuple[int, object]) -> list[dict[str, object]]:
    return [{"sku_id": sku_id, "quantity": quantity} for sku_id, quantity in pairs]


WRONG_LINES = {
    "not a list": {"sku_id": 1001, "quantity": 1},
    "null": None,
    "a string": "1001",
    "none": [],
    "101": lines(*((i, 1) for i in range(1, 102))),
    "101 of one SKU": lines(*[(1001, 1)] * 101),
    "a line that is null": [None],
    "a line that is a list": [[1001, 1]],
    "an unknown field": [{"sku_id": 1001, "quantity": 1, "price": "0.01"}],
    "too many of a SKU in all": lines((1001, 600_000), (1001, 400_001)),
    "int32 overflow when merged": lines((1001, 2**31 - 1), (1001, 2**31 - 1)),  # J9
    "one good, one bad": lines((1001, 1), (1002, 0)),
}

WRONG_AMOUNTS = [
    *["1e1", "NaN", "Infinity", "10.000", " 9.90", "9.90 ", "9.90\n", "-0", "-9.90", "+9.90"],
    *[
        full_width("9") + "." + full_width("90"),
        "\u0669.90",
        "9,90",
        "9.",
        ".90",
        "",
        "0x9",
        "9_0",
        "1" * 17,
        "¥9.90",
    ],
    *[9.9, 9, True, ["9.90"], {"yuan": "9.90"}],
]

WRONG_NOTES = ["n" * 201, "🙂" * 201, 1, True, ["note"], {"text": "note"}]


def refusal(body: object, *, in_base64: bool = False) -> Answer:
    answer = ask(post_order(body, in_base64=in_base64))
    assert answer.content_type == PROBLEM_JSON
    return answer


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("in_base64", [False, True])
def test_what_is_not_json_is_unreadable(body, in_base64):
    answer = refusal(body, in_base64=in_base64)
    assert (answer.status, answer.code) == (400, "BODY_UNREADABLE")


@pytest.mark.parametrize("text", ["%%%", "AAA", "e30", "e30=\n", "é", full_width("e30=")])
def test_what_is_not_base64_though_the_event_says_so_is_unreadable(text):
    event = post_order(text) | {"isBase64Encoded": True}
    answer = ask(event)
    assert (answer.status, answer.code) == (400, "BODY_UNREADABLE")


@pytest.mark.parametrize("body", [None, MISSING])
def test_no_body_at_all_is_unreadable(body):
    event = post_order()
    del event["body"]
    if body is None:
        event["body"] = None
    answer = ask(event)
    assert (answer.status, answer.code) == (400, "BODY_UNREADABLE")


@pytest.mark.parametrize("body", INVALID_DOCUMENTS.values(), ids=INVALID_DOCUMENTS)
def test_json_that_is_no_order_is_invalid(body):
    answer = refusal(body)
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert answer.document["errors"]


@pytest.mark.parametrize("quantity", WRONG_QUANTITIES, ids=repr)  # J11
def test_a_quantity_is_an_integer_from_one_to_a_million(quantity):
    answer = refusal(an_order_body(lines=lines((1001, quantity))))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["lines", 0, "quantity"]]


@pytest.mark.parametrize("sku_id", WRONG_SKU_IDS, ids=repr)
def test_a_sku_id_is_an_integer_that_every_reader_keeps_exact(sku_id):
    line = {"quantity": 1} | ({} if sku_id is MISSING else {"sku_id": sku_id})
    answer = refusal(an_order_body(lines=[line]))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["lines", 0, "sku_id"]]


@pytest.mark.parametrize("wrong", WRONG_LINES.values(), ids=WRONG_LINES)
def test_lines_are_one_to_a_hundred_and_no_more_than_a_million_each(wrong):
    answer = refusal(an_order_body(lines=wrong))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")


@pytest.mark.parametrize("amount", WRONG_AMOUNTS, ids=repr)
def test_an_expected_amount_is_a_string_of_yuan_in_its_canonical_form(amount):
    answer = refusal(an_order_body(expected_amount=amount))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["expected_amount"]]


@pytest.mark.parametrize("note", WRONG_NOTES, ids=lambda note: repr(note)[:12])
def test_a_note_is_a_text_of_at_most_two_hundred_characters(note):
    answer = refusal(an_order_body(note=note))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [["note"]]


@pytest.mark.parametrize("field", ["member_id", "price", "Lines", "lines ", "\u0000", "__class__"])
def test_a_field_that_is_not_known_is_refused(field):
    answer = refusal(an_order_body(**{field: 1}))
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert [error["loc"] for error in answer.document["errors"]] == [[field]]


def test_the_errors_repeat_nothing_that_was_sent():
    answer = refusal(an_order_body(note="n" * 201, expected_amount="secret"))
    assert len(answer.document["errors"]) == 2
    assert {name for error in answer.document["errors"] for name in error} == {"loc", "type", "msg"}
    assert "secret" not in answer.text


@pytest.mark.parametrize("in_base64", [False, True])
def test_a_good_body_is_read_in_text_and_in_base64(in_base64):
    body = an_order_body(lines=lines((1002, 1), (1001, 2), (1002, 3)), note="🙂" * 200)
    command = read_place_order(post_order(body, in_base64=in_base64))
    assert list(command.lines.items()) == [(1001, 2), (1002, 4)]
    assert command.note == "🙂" * 200


def test_the_largest_values_are_good():
    body = an_order_body(lines=lines((2**53 - 1, 400_000), (2**53 - 1, 600_000)))
    assert read_place_order(post_order(body)).lines == {2**53 - 1: 1_000_000}
    hundred = an_order_body(lines=lines(*((i, 1) for i in range(1, 101))), note="")
    assert len(read_place_order(post_order(hundred)).lines) == 100


def test_a_body_may_be_as_large_as_the_bound_and_not_a_byte_larger():
    padding = " " * (BODY_BYTES_MAX - len(GOOD))
    assert read_place_order(post_order(GOOD + padding)).lines == {1001: 1}
    assert refusal(GOOD + padding + " ").code == "BODY_UNREADABLE"


@pytest.mark.parametrize(("text", "yuan"), [("9", "9.00"), ("9.9", "9.90"), ("09.90", "9.90")])
def test_amounts_that_say_the_same_are_the_same(text, yuan):
    assert (
        str(read_place_order(post_order(an_order_body(expected_amount=text))).expected_amount)
        == yuan
    )


def test_a_hostile_body_does_not_choose_the_length_of_the_answer():
    body = "{" + ",".join(f'"x{n}":1' for n in range(5_000)) + "}"
    answer = refusal(body)
    assert (answer.status, answer.code) == (422, "BODY_INVALID")
    assert len(answer.document["errors"]) == 20
