"""Goal: no body whatever makes POST /orders fail, and none that is refused leaves a row.

Method: arbitrary bytes, arbitrary JSON, and good orders with one thing changed, against a real
database; each answer must be one that the OpenAPI document has, and the rows must say the same as
the answers.
"""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.api import ask
from tests.support.builders import a_sku
from tests.support.http_events import an_order_body, post_order

one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)
# Near enough to a good order that many of them are one.
small = st.integers(min_value=-1, max_value=3)
lines = st.lists(
    st.fixed_dictionaries(
        {"sku_id": st.just(1001) | small | anything, "quantity": small | anything}
    ),
    max_size=3,
)
amounts = st.sampled_from(["9.90", "19.8", "1e1", "", None]) | st.text(max_size=5)
almost = st.fixed_dictionaries(
    {"lines": lines | st.just([{"sku_id": 1001, "quantity": 1}])},
    optional={"note": st.text(max_size=210) | anything, "expected_amount": amounts, "x": anything},
)


def post(database, body) -> int:
    """The answer's status, after a look at whether the rows say the same."""
    before = database.count("oms_order_request")
    answer = ask(post_order(body, key=f"k{before}"))
    after = database.count("oms_order_request")
    assert after - before == (answer.status == 201)
    assert database.count("oms_order") == after
    return answer.status


@one_database
@given(body=st.binary(max_size=200))
def test_arbitrary_bytes_are_never_an_order(database, body):
    assert post(database, body) in {400, 422}


@one_database
@given(body=st.text(max_size=200))
def test_arbitrary_text_is_never_an_order(database, body):
    assert post(database, body) in {400, 422}


@one_database
@given(body=anything)
def test_arbitrary_json_is_never_an_order(database, body):
    assert post(database, json.dumps(body)) in {400, 422}


@one_database
@given(body=almost)
def test_what_is_almost_an_order_is_one_or_is_refused_by_name(database, body):
    if database.count("ims_sku_stock") == 0:
        a_sku(database, stock=1_000_000)
    assert post(database, json.dumps(body)) in {201, 400, 409, 422}


@one_database
@given(at=st.integers(min_value=0), instead=st.binary(min_size=0, max_size=2))
def test_a_good_body_with_some_bytes_changed_is_an_order_or_is_refused_by_name(
    database, at, instead
):
    if database.count("ims_sku_stock") == 0:
        a_sku(database, stock=1_000_000)
    good = json.dumps(an_order_body(note="n", expected_amount="9.90")).encode()
    at %= len(good)
    assert post(database, good[:at] + instead + good[at + 1 :]) in {201, 400, 409, 422}
