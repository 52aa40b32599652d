"""A day's bill, read back as a merchant would read it."""

import csv
import io
import zipfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from infra.local.alipay_gateway.bill import COLUMNS
from infra.local.alipay_gateway.shapes import Refused
from lockstep.alipay.answers import Done
from lockstep.alipay.answers import Refused as RefusedByAlipay
from tests.support.local_alipay import FakeClock, a_service, local_alipay

DAY = date(2026, 10, 24)


@pytest.fixture
def clock():
    # One second before midnight in Beijing.
    return FakeClock(datetime(2026, 10, 24, 15, 59, 59, tzinfo=UTC))


@pytest.fixture
def alipay(clock):
    return a_service(clock=clock)


@pytest.fixture
def two_days(alipay, clock):
    """A payment on the 24th; on the 25th another, and a refund of the first; now it is the 26th."""
    first = alipay.pay("O1", "9.90")
    clock.go(seconds=2)
    alipay.pay("O2", "1.00")
    clock.go(seconds=1)
    alipay.service.books.refund(first, Decimal("3.00"), "R1")
    clock.go(days=1)
    return first


def members(alipay, day):
    url = alipay.service.bills.link(day)["bill_download_url"]
    raw = alipay.service.bills.fetch(url.rpartition("/")[2])
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        return [(one, archive.read(one).decode("gb18030")) for one in archive.infolist()]


def rows(text):
    """By column; the comments are the lines that begin with #."""
    lines = [line for line in text.split("\r\n") if line and not line.startswith("#")]
    return list(csv.DictReader(lines))


@pytest.mark.usefixtures("two_days")
def test_a_day_is_beijings_and_a_refund_is_a_row_of_its_own(alipay):
    (_, first), (_, second) = members(alipay, DAY)[0], members(alipay, DAY + timedelta(days=1))[0]
    [payment] = rows(first)
    assert payment["商户订单号"] == "O1\t"
    assert (payment["业务类型"], payment["订单金额（元）"]) == ("交易", "9.90")
    assert payment["完成时间"] == "2026-10-24 23:59:59"
    other, refund = rows(second)
    assert (other["商户订单号"], other["商家实收（元）"]) == ("O2\t", "1.00")
    assert (refund["业务类型"], refund["订单金额（元）"]) == ("退款", "-3.00")
    assert (refund["商户订单号"], refund["退款批次号/请求号"]) == ("O1\t", "R1\t")


def test_numbers_end_with_a_tab_and_lines_with_crlf(alipay, two_days):
    _, text = members(alipay, DAY)[0]
    [payment] = rows(text)
    assert payment["支付宝交易号"] == f"{two_days.trade_no}\t"
    assert text.count("\n") == text.count("\r\n") > 8
    assert tuple(payment) == COLUMNS
    assert len(COLUMNS) == 25


@pytest.mark.usefixtures("two_days")
def test_comments_frame_the_table_and_count_it(alipay):
    _, text = members(alipay, DAY + timedelta(days=1))[0]
    comments = [line for line in text.split("\r\n") if line.startswith("#")]
    assert comments[0] == "#支付宝业务明细查询"
    assert comments[1] == "#账号：[20880000000000010156]"
    assert "2026年10月25日" in comments[2]
    assert "业务明细列表结束" in comments[4]
    assert comments[5].startswith("#交易合计：1笔，商家实收共1.00元")
    assert comments[6].startswith("#退款合计：1笔，商家实收共-3.00元")
    assert comments[7].startswith("#导出时间：[2026年10月26日")


@pytest.mark.usefixtures("two_days")
def test_names_in_the_zip_are_gbk_and_do_not_say_so(alipay):
    detail, summary = (one for one, _ in members(alipay, DAY))
    names = [one.filename.encode("cp437").decode("gbk") for one in (detail, summary)]
    assert names == [
        "20880000000000010156_20261024_业务明细.csv",
        "20880000000000010156_20261024_业务明细(汇总).csv",
    ]
    assert detail.flag_bits & 0x800 == 0
    [total] = rows(members(alipay, DAY)[1][1])
    assert (total["交易订单总笔数"], total["订单金额（元）"]) == ("1", "9.90")


def test_a_day_without_trades_has_an_empty_bill(alipay, clock):
    clock.go(days=1)
    assert alipay.service.bills.link(DAY)["bill_file_code"] == "EMPTY_DATA_WITH_BILL_FILE"
    assert rows(members(alipay, DAY)[0][1]) == []


@pytest.mark.parametrize("days", [0, 1])
def test_a_day_that_is_not_over_has_none(alipay, days):
    with pytest.raises(Refused) as refused:
        alipay.service.bills.link(DAY + timedelta(days=days))
    assert refused.value.sub_code == "BILL_NOT_EXIST"


def test_todays_can_be_had_if_a_test_wants_it(alipay):
    alipay.service.bills.is_today_ready = True
    alipay.pay("O1", "9.90")
    assert len(rows(members(alipay, DAY)[0][1])) == 1


def test_a_link_lives_for_half_a_minute(alipay, clock):
    clock.go(days=1)
    name = alipay.service.bills.link(DAY)["bill_download_url"].rpartition("/")[2]
    clock.go(seconds=29.9)
    assert alipay.service.bills.fetch(name) is not None
    clock.go(seconds=0.1)
    assert alipay.service.bills.fetch(name) is None
    assert alipay.service.bills.fetch("made-up") is None


def test_the_products_client_fetches_it():
    today = (datetime.now(UTC) + timedelta(hours=8)).date()
    with local_alipay() as alipay:
        paid = alipay.pay("O1", "9.90")
        assert alipay.gateway().bill(today) == RefusedByAlipay("BILL_NOT_EXIST")
        alipay.service.bills.is_today_ready = True
        found = alipay.gateway().bill(today)
        assert isinstance(found, Done)
        with zipfile.ZipFile(io.BytesIO(found.value)) as archive:
            text = archive.read(archive.infolist()[0]).decode("gb18030")
    assert [row["支付宝交易号"] for row in rows(text)] == [f"{paid.trade_no}\t"]
