"""Where a bill is fetched: by https first where Alipay says http, and as it is said otherwise."""

import pytest

from lockstep.alipay.bill import _addresses


@pytest.mark.parametrize(
    "url", ["https://bill.example/a", "http://bill.example:8080/a", "http://127.0.0.1/a"]
)
def test_an_address_that_says_how_it_is_reached_is_tried_as_it_is(url):
    assert _addresses(url) == [url]


def test_a_host_that_is_named_with_http_is_tried_by_https_first():
    assert _addresses("http://bill.example/a") == [
        "https://bill.example/a",
        "http://bill.example/a",
    ]
