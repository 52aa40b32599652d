"""A day's trades as Alipay lists them for its merchants: a CSV and its summary, in a zip.

Everything odd about it is as it really is: GBK, CRLF, a TAB after each number that a spreadsheet
would round, comments around the table, refunds as rows of their own with a minus, and member names
in GBK without the flag that would say how they are encoded.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from infra.local.alipay_gateway.shapes import NOTHING, Refund, Trade
from infra.local.alipay_sign import BEIJING, beijing_text

COLUMNS = (
    *("支付宝交易号", "商户订单号", "业务类型", "商品名称", "创建时间", "完成时间", "门店编号"),
    *("门店名称", "操作员", "终端号", "对方账户", "订单金额（元）", "商家实收（元）"),
    *("支付宝红包（元）", "集分宝（元）", "支付宝优惠（元）", "商家优惠（元）", "券核销金额（元）"),
    *("券名称", "商家红包消费金额（元）", "卡消费金额（元）", "退款批次号/请求号"),
    *("服务费（元）", "分润（元）", "备注"),
)
SUMMARY_COLUMNS = (
    *("门店编号", "门店名称", "交易订单总笔数", "退款订单总笔数", "订单金额（元）"),
    *("商家实收（元）", "支付宝优惠（元）", "商家优惠（元）", "卡消费金额（元）"),
    *("服务费（元）", "分润（元）", "实收净额（元）"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A payment, or a refund of one."""

    trade: Trade
    refund: Refund | None
    at: datetime

    @property
    def amount(self) -> Decimal:
        return self.trade.amount if self.refund is None else -self.refund.amount


def rows_of(trades: Iterable[Trade], day: date) -> list[Row]:
    """What moved money on that day of Beijing's, as it happened."""
    rows = [row for trade in trades for row in _rows_of(trade)]
    of_the_day = [row for row in rows if row.at.astimezone(BEIJING).date() == day]
    return sorted(of_the_day, key=lambda row: row.at)


def archive(rows: list[Row], day: date, seller_id: str, now: datetime) -> bytes:
    """The zip that a download link leads to."""
    name = f"{seller_id}0156_{day:%Y%m%d}"
    members = {
        f"{name}_业务明细.csv": _detail(rows, day, seller_id, now),
        f"{name}_业务明细(汇总).csv": _summary(rows, day, seller_id, now),
    }
    file = io.BytesIO()
    # zipfile would flag a name as UTF-8, so it gets one that is as long and GBK takes its place.
    names = {
        member.encode("gbk"): f"{i:0{len(member.encode('gbk'))}d}"
        for i, member in enumerate(members, start=1)
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as zipped:
        for text, stand_in in zip(members.values(), names.values(), strict=True):
            zipped.writestr(stand_in, text.encode("gbk", "replace"))
    raw = file.getvalue()
    for real, stand_in in names.items():
        raw = raw.replace(stand_in.encode(), real)
    return raw


def _rows_of(trade: Trade) -> Iterator[Row]:
    if trade.paid_at is not None:
        yield Row(trade, None, trade.paid_at)
    for refund in trade.refunds:
        yield Row(trade, refund, refund.at)


def _detail(rows: list[Row], day: date, seller_id: str, now: datetime) -> str:
    payments = [row for row in rows if row.refund is None]
    refunds = [row for row in rows if row.refund is not None]
    return "".join(
        [
            *_head("业务明细查询", "业务明细列表", day, seller_id),
            _csv(COLUMNS, [_cells(row) for row in rows]),
            "#---------------------------------业务明细列表结束---------------------------------\r\n",
            _total("交易合计", payments),
            _total("退款合计", refunds),
            f"#导出时间：[{_written(now)}]\r\n",
        ]
    )


def _summary(rows: list[Row], day: date, seller_id: str, now: datetime) -> str:
    payments = sum(row.refund is None for row in rows)
    total = f"{_sum(rows):.2f}"
    counts = [payments, len(rows) - payments]
    cells = ["\t", "\t", *counts, total, total, "0.00", "0.00", "0.00", "0.00", "0.00", total]
    return "".join(
        [
            *_head("业务汇总查询", "业务汇总列表", day, seller_id),
            _csv(SUMMARY_COLUMNS, [cells]),
            "#---------------------------------业务汇总列表结束---------------------------------\r\n",
            f"#导出时间：[{_written(now)}]\r\n",
        ]
    )


def _head(title: str, table: str, day: date, seller_id: str) -> Iterator[str]:
    period = f"[{day:%Y年%m月%d日} 00:00:00]"
    yield f"#支付宝{title}\r\n"
    yield f"#账号：[{seller_id}0156]\r\n"
    yield f"#起始日期：{period}   终止日期：[{day:%Y年%m月%d日} 24:00:00]\r\n"
    yield f"#-----------------------------------{table}-----------------------------------\r\n"


def _cells(row: Row) -> list[str]:
    trade, number = row.trade, row.refund.out_request_no if row.refund else ""
    amount, kind = f"{row.amount:.2f}", "交易" if row.refund is None else "退款"
    begun, done = beijing_text(trade.created_at), beijing_text(row.at)
    return [
        *(f"{trade.trade_no}\t", f"{trade.out_trade_no}\t", kind, trade.subject, begun, done),
        *("\t", "", "", "\t", "\t", amount, amount),
        *("0.00", "0.00", "0.00", "0.00", "0.00", "", "0.00", "0.00"),
        *(f"{number}\t", "0.00", "0.00", trade.subject),
    ]


def _csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([columns, *rows])
    return text.getvalue()


def _total(what: str, rows: list[Row]) -> str:
    total = f"{_sum(rows):.2f}"
    return f"#{what}：{len(rows)}笔，商家实收共{total}元，商家优惠共0.00元\r\n"


def _sum(rows: Iterable[Row]) -> Decimal:
    return sum((row.amount for row in rows), NOTHING)


def _written(at: datetime) -> str:
    return f"{at.astimezone(BEIJING):%Y年%m月%d日 %H:%M:%S}"
