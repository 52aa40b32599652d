"""The local Alipay of a home: a process of its own, found again, with books that outlive it."""

import json
import urllib.request

import pytest

from infra.local import alipay, processes
from infra.local.alipay_gateway import process
from infra.local.alipay_sign import load_key, public_key_base64


@pytest.fixture
def home(tmp_path):
    yield tmp_path
    process.stop(tmp_path)


def pay(at, out_trade_no):
    body = json.dumps({"out_trade_no": out_trade_no, "amount": "9.90"}).encode()
    with urllib.request.urlopen(f"{at.control_url}/pay", body, timeout=10) as reply:
        return json.load(reply)["trade_no"]


def trades(at):
    with urllib.request.urlopen(f"{at.control_url}/trades", timeout=10) as reply:
        return [trade["trade_no"] for trade in json.load(reply)["trades"]]


def test_it_is_found_again_and_its_books_and_its_address_outlive_it(home):
    first = process.ensure(home)
    assert process.ensure(home) == first
    process.tell_merchant(first, "http://127.0.0.1:1/alipay/notify")
    paid = pay(first, "O1")
    assert process.stop(home)
    assert not processes.answers(int(first.base_url.rpartition(":")[2]))
    again = process.ensure(home)
    assert again == first, "a pay link from before is still good"
    assert trades(again) == [paid]


def test_two_homes_have_two_of_them(home, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    try:
        one, two = process.ensure(home), process.ensure(other)
        assert one.base_url != two.base_url
        pay(one, "O1")
        assert trades(two) == []
    finally:
        process.stop(other)


def test_each_side_has_a_key_pair_that_stays(home):
    made = alipay.ensure(home)
    assert made == alipay.ensure(home)
    assert public_key_base64(load_key(made.signing_key_file)) == made.public_key
    assert public_key_base64(load_key(made.app_key_file)) == made.app_public_key
    assert made.public_key != made.app_public_key
    assert made.app_key_file.stat().st_mode & 0o077 == 0
