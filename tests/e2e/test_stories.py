"""The demo's stories, each on the deployed template; then the whole database is looked through."""

import pytest

from infra.local import statements, stories
from infra.local.paths import TEST_HOME
from infra.local.stories import giving_back


@pytest.mark.parametrize("story", stories.ALL, ids=lambda story: story.__name__)
def test_story_ends_as_it_should(shop, story):
    story(shop)


def test_a_story_that_ends_otherwise_is_noticed(shop, monkeypatch):
    pay = shop.pay
    monkeypatch.setattr(shop, "pay", lambda order_no, _: pay(order_no, "99.00"))
    with pytest.raises(stories.WentWrong, match="PAID"):
        giving_back.pay_a_wrong_amount(shop)


def test_statements_stay_within_their_budget(shop, deployed):
    with statements.watched(TEST_HOME, deployed["mysql"]["database"]) as watch:
        stories.sold(shop, 42, shop.new_sku("Counted paper", "1.00", 5))
    assert watch.costs["a one-line order, placed"] == 11
    # One of them ends the payment page.
    assert watch.costs["a first payment notice"] == 11
    assert watch.costs["a confirmed hold"] == 5


def test_at_rest_every_invariant_holds(shop):
    assert shop.broken_invariants() == {}
