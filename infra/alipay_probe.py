"""Ask the gateway about an order that nobody made, and explain whatever it answers."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from infra.alipay_given import Finding
from lockstep.alipay.envelope import Answer, AnswerUnreadable, read_answer
from lockstep.alipay.gateway import ANSWER_BYTES_MAX, Gateway
from lockstep.alipay.keys import Keys
from lockstep.alipay.transport import NoAnswer, exchange
from lockstep.settings import AlipayAppSettings

METHOD: Final = "alipay.trade.query"
TIMEOUT_SECONDS: Final = 10
CLOCK_OFF_MAX: Final = timedelta(minutes=15)

# By a part of the code: the first that fits.
_EXPLAINED: Final = {
    "isv.invalid-signature": "Alipay could not verify our request: the app's public key in the "
    "console is not the one of PrivateKeyFile. Upload that one, or make a certificate from it.",
    "isv.invalid-app-id": "Alipay knows no such app here: AlipayAppId is wrong or not online, or "
    "the one is of the sandbox and the other is not.",
    "isv.missing-signature-config": "The app has no key in the console: upload its public key.",
    "timestamp": "Alipay refuses this machine's clock: set it by NTP.",
    "cert": "The certificates are not those that the console has for this app: give the three "
    "files that it offers for download.",
    "permission": "The app may not do this: sign up for the payment product, put the app online.",
}


def of_gateway(app: tuple[AlipayAppSettings, Keys]) -> Iterator[Finding]:
    gateway = Gateway(*app)
    url, form = gateway.prepared(METHOD, {"out_trade_no": f"CHECK_{secrets.token_hex(12)}"})
    try:
        received = exchange(url, form, timeout_seconds=TIMEOUT_SECONDS, bytes_max=ANSWER_BYTES_MAX)
    except NoAnswer as fault:
        yield Finding(
            False,
            f"The gateway cannot be reached ({fault}). Is the address right, and a way out there?",
        )
        return
    yield from _clock(received.date)
    try:
        yield _answer(gateway, read_answer(received.body, METHOD))
    except AnswerUnreadable as fault:
        yield Finding(False, _explained(str(fault)) or f"That is no answer of Alipay's: {fault}.")


def _clock(date: str | None) -> Iterator[Finding]:
    try:
        gateways = parsedate_to_datetime(date or "")
    except ValueError:
        return
    off = abs(datetime.now(UTC) - gateways)
    if off > CLOCK_OFF_MAX:
        minutes = int(off.total_seconds() // 60)
        yield Finding(False, f"The clock here is {minutes} minutes off from Alipay's: use NTP.")
    else:
        yield Finding(True, "The clock here agrees with Alipay's.")


def _answer(gateway: Gateway, answer: Answer) -> Finding:
    told = f"{answer.code} {answer.sub_code}".strip()
    if not answer.signature:
        return Finding(False, _explained(told) or f"Alipay answers, but unsigned: {told}.")
    if not gateway.is_alipays(answer):
        return Finding(
            False,
            f"The answer ({told}) is signed by another key than AlipayPublicKey. Copy 支付宝公钥 "
            "of this very app from the console, or download its certificate anew.",
        )
    if answer.sub_code == "ACQ.TRADE_NOT_EXIST":
        return Finding(True, "Alipay took our signature, and we took its: the app can be used.")
    return Finding(False, _explained(told) or f"Alipay answers {told}: {answer.text('sub_msg')}.")


def _explained(told: str) -> str | None:
    for code, words in _EXPLAINED.items():
        if code in told:
            return f"{words} ({told})"
    return None
