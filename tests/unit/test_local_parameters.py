"""What stands on make's command line reaches the template, and nothing else does."""

import pytest

from infra.local import parameters
from infra.local.steps import SetupError


def test_nothing_on_the_command_line_sets_nothing():
    assert parameters.from_make({}) == {}
    assert parameters.from_make({"MAKEFLAGS": "s", "TTL": "60"}) == {}


def test_short_names_and_parameters_are_taken_with_their_values():
    environment = {
        "MAKEFLAGS": "s -- TTL=60 MemberIdClaim=member_id",
        "TTL": "60",
        "MemberIdClaim": "member_id",
    }
    assert parameters.from_make(environment) == {
        "OrderTtlSeconds": "60",
        "MemberIdClaim": "member_id",
    }


def test_a_value_may_hold_spaces_and_equal_signs():
    environment = {
        "MAKEFLAGS": r" -- AlipayAppId=a\ TTL=1",
        "AlipayAppId": "a TTL=1",
    }
    assert parameters.from_make(environment) == {"AlipayAppId": "a TTL=1"}


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(SetupError, match=r"no parameter Colour.*OrderTtlSeconds"):
        parameters.from_make({"MAKEFLAGS": " -- Colour=red", "Colour": "red"})


def test_all_parameters_are_passed_so_that_an_override_does_not_outlive_its_command():
    needed = {name: "x" for name, value in parameters.defaults().items() if value is None}
    assert parameters.complete(needed)["OrderTtlSeconds"] == "1800"
    with pytest.raises(SetupError, match="DatabaseHost"):
        parameters.complete({})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OrderTtlSeconds", "abc"),
        ("OrderTtlSeconds", "0"),
        ("OrderTtlSeconds", "-5"),
        ("OrderTtlSeconds", ""),
        ("OrderTtlSeconds", "99999999999999"),
        ("Architecture", "mips"),
    ],
)
def test_a_value_that_the_template_does_not_allow_is_refused_by_name(name, value):
    with pytest.raises(SetupError, match=f"{name} is "):
        parameters.checked({name: value})


def test_a_value_that_it_allows_is_taken():
    given = {"OrderTtlSeconds": "1", "Architecture": "arm64", "MemberIdClaim": "uid"}
    assert parameters.checked(given) == given
