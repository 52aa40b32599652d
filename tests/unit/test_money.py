"""Yuan: two decimals, canonical forms only, never a float."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.money import parse_yuan, show_yuan


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("19", "19.00"),
        ("19.8", "19.80"),
        ("19.80", "19.80"),
        ("0.01", "0.01"),
        ("0", "0.00"),
        ("0019.8", "19.80"),
        ("9999999999999999.99", "9999999999999999.99"),
    ],
)
def test_a_canonical_amount_is_read_to_the_fen(text, amount):
    read = parse_yuan(text)
    assert read == Decimal(amount)
    assert read.as_tuple().exponent == -2


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1\n",
        "+1",
        "-1",
        "-0",
        "1.",
        ".5",
        "10.000",
        "1e1",
        "1E1",
        "NaN",
        "Infinity",
        "1_0",
        "1,000.00",
        "0x10",
        "\uff11\uff10",  # full-width digits, which Decimal() takes
        "\u0661",  # an Arabic-Indic digit, which Decimal() takes too
        "10000000000000000.00",  # one digit more than the column holds
    ],
)
def test_any_other_form_is_refused(text):
    with pytest.raises(ValueError, match="two decimals"):
        parse_yuan(text)


@given(st.decimals(min_value=0, max_value=Decimal("9999999999999999.99"), places=2))
def test_what_is_shown_reads_back_as_the_same_amount(amount):
    assert parse_yuan(show_yuan(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [("1E+3", "1000.00"), ("0", "0.00"), ("5", "5.00"), ("12345678901234.5", "12345678901234.50")],
)
def test_an_amount_is_shown_without_exponent_and_with_two_decimals(amount, text):
    assert show_yuan(Decimal(amount)) == text
