"""The cashier's words, in the two languages of its readers."""

from collections.abc import Mapping
from typing import Final

from infra.local.alipay_gateway.shapes import Status

type Words = Mapping[str, str]

ENGLISH: Final = {
    "title": "Local Alipay",
    "what": "For development: no money moves here.",
    "other": "中文",
    "orders": "Orders at this cashier",
    "none": "Nobody has asked for a payment yet.",
    "order": "Order",
    "subject": "For",
    "amount": "Amount",
    "status": "Status",
    "left": "Time left",
    "over": "over",
    "trades": "Payments",
    "pay": "Pay",
    "tools": "For developers",
    "tools_what": "What happens in real life and is hard to bring about.",
    "twice": "Pay twice",
    "twice_what": "A second payment, with a trade number of its own.",
    "late": "Pay too late",
    "late_what": "Alipay itself would refuse; the money arrives all the same.",
    "wrong": "Pay another sum",
    "wrong_what": "A sum in yuan that is not the order's.",
    "unknown": "This order is not known here.",
    "refused": "Not paid: {}",
    "invalid": "This is not a sum in yuan.",
    "link": "This pay link is not good: {}",
    "back": "All orders",
    Status.WAIT_BUYER_PAY: "waits for payment",
    Status.TRADE_SUCCESS: "paid",
    Status.TRADE_CLOSED: "closed",
    Status.TRADE_FINISHED: "finished",
    "refunded": "paid and refunded",
}

CHINESE: Final = {
    "title": "本地支付宝",
    "what": "仅供开发使用，不会产生真实资金往来。",
    "other": "English",
    "orders": "收银台的订单",
    "none": "还没有待支付的订单。",
    "order": "订单号",
    "subject": "商品",
    "amount": "金额",
    "status": "状态",
    "left": "剩余时间",
    "over": "已超时",
    "trades": "支付记录",
    "pay": "支付",
    "tools": "开发者选项",
    "tools_what": "现实中会发生、却很难重现的情形。",
    "twice": "重复支付",
    "twice_what": "第二次支付，有自己的交易号。",
    "late": "超时后支付",
    "late_what": "支付宝本会拒绝，但款项仍然到账。",
    "wrong": "支付其他金额",
    "wrong_what": "与订单不符的金额（元）。",
    "unknown": "这里没有这个订单。",
    "refused": "未支付：{}",
    "invalid": "金额（元）无效。",
    "link": "支付链接无效：{}",
    "back": "所有订单",
    Status.WAIT_BUYER_PAY: "等待付款",
    Status.TRADE_SUCCESS: "已支付",
    Status.TRADE_CLOSED: "已关闭",
    Status.TRADE_FINISHED: "已完结",
    "refunded": "已支付并退款",
}

WORDS: Final[Mapping[str, Words]] = {"en": ENGLISH, "zh": CHINESE}
