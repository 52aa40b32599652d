"""The cashier's pages as HTML: nothing from elsewhere, and everything that others chose escaped."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from html import escape
from urllib.parse import quote

from infra.local.alipay_gateway.cashier_words import WORDS
from infra.local.alipay_gateway.shapes import Request, Status, Trade

STYLE = """
:root { color-scheme: light; --blue: #0b57d0; --ink: #1f1f1f; --grey: #5f6368; }
* { box-sizing: border-box; }
body { margin: 0; background: #f3f5f8; color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
section { background: #fff; border-radius: .75rem; padding: 1.25rem; margin-top: 1rem; }
header { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; }
h1 { font-size: 1.25rem; margin: 0; } h2 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .25rem 0; } .grey { color: var(--grey); } a { color: var(--blue); }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0;
     align-items: baseline; }
dt { color: var(--grey); } dd { margin: 0; overflow-wrap: anywhere; text-align: right; }
.sum { font-size: 2rem; font-weight: 600; }
form { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin-top: 1rem; }
button, input { font: inherit; padding: .6rem 1rem; border-radius: .5rem; min-height: 2.75rem; }
button { border: 1px solid var(--blue); background: #fff; color: var(--blue); cursor: pointer; }
button.main { background: var(--blue); color: #fff; width: 100%; font-weight: 600; }
input { border: 1px solid var(--grey); width: 8rem; }
button:focus-visible, input:focus-visible, a:focus-visible { outline: 3px solid #f9ab00; }
li { overflow-wrap: anywhere; } ul { padding-left: 1.25rem; margin: 0; }
[role=alert] { color: #b3261e; }
"""
# Counts down where scripts run; without them the time is what it was when the page came.
SCRIPT = """
const left = document.querySelector("[data-seconds]");
if (left) {
  const end = Date.now() + left.dataset.seconds * 1000;
  setInterval(() => {
    const s = Math.max(0, Math.round((end - Date.now()) / 1000));
    left.textContent = s ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`
                         : left.dataset.over;
  }, 1000);
}
"""


@dataclass(frozen=True, slots=True)
class View:
    """One order at the cashier: what was asked for, and the trades that came of it."""

    out_trade_no: str
    amount: str
    subject: str
    status: Status
    seconds_left: int | None
    trades: list[Trade]


def view_of(asked: Request | Trade, trades: list[Trade], now: datetime) -> View:
    """Of several trades the newest is the one to look at."""
    left = None if asked.expires_at is None else int((asked.expires_at - now).total_seconds())
    is_open = left is None or left > 0
    untouched = Status.WAIT_BUYER_PAY if is_open else Status.TRADE_CLOSED
    status = trades[-1].status if trades else untouched
    return View(
        asked.out_trade_no,
        f"{asked.amount:.2f}",
        asked.subject,
        status,
        left if status is Status.WAIT_BUYER_PAY else None,
        trades,
    )


def place(out_trade_no: str, language: str) -> str:
    """Where an order's page is; for "", the list of them."""
    return f"/cashier/{quote(out_trade_no, safe='')}?lang={language}"


def order(view: View, language: str, problem: str | None = None) -> str:
    words = WORDS[language]
    parts = [_summary(view, language)]
    if problem is not None:
        parts.insert(0, f'<p role="alert">{escape(problem)}</p>')
    if view.status is Status.WAIT_BUYER_PAY:
        pay = f"{escape(words['pay'])} ¥{view.amount}"
        button = f'<button class="main">{pay}</button>'
        parts.append(_form(view, language, "pay", button))
    first = f"<section>{''.join(parts)}</section>"
    return _page(language, first + _trades(view, language) + _tools(view, language))


def orders(views: Iterable[View], language: str) -> str:
    words = WORDS[language]
    lines = [
        f'<li><a href="{place(one.out_trade_no, language)}">{escape(one.out_trade_no)}</a>'
        f" · ¥{one.amount} · {escape(one.subject)}</li>"
        for one in views
    ]
    listed = f"<ul>{''.join(lines)}</ul>" if lines else f"<p>{escape(words['none'])}</p>"
    return _page(language, f"<section><h2>{escape(words['orders'])}</h2>{listed}</section>")


def problem(text: str, language: str) -> str:
    return _page(language, f'<section><p role="alert">{escape(text)}</p></section>')


def _summary(view: View, language: str) -> str:
    words = WORDS[language]
    rows = [
        (words["amount"], f'<span class="sum">¥{view.amount}</span>'),
        (words["subject"], escape(view.subject)),
        (words["order"], escape(view.out_trade_no)),
        (words["status"], f'<span role="status">{escape(_said(view, language))}</span>'),
    ]
    if view.seconds_left is not None:
        minutes, seconds = divmod(view.seconds_left, 60)
        over = escape(words["over"])
        left = f'<span data-seconds="{view.seconds_left}" data-over="{over}">'
        rows.append((words["left"], f"{left}{minutes}:{seconds:02d}</span>"))
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{text}</dd>' for name, text in rows)}</dl>"


def _said(view: View, language: str) -> str:
    paid = bool(view.trades) and view.trades[-1].paid_at is not None
    is_refunded = paid and view.status is Status.TRADE_CLOSED
    return WORDS[language]["refunded" if is_refunded else view.status]


def _trades(view: View, language: str) -> str:
    paid = [one for one in view.trades if one.paid_at is not None]
    if not paid:
        return ""
    lines = "".join(f"<li>{escape(one.trade_no)} · ¥{one.amount:.2f}</li>" for one in paid)
    return f"<section><h2>{escape(WORDS[language]['trades'])}</h2><ul>{lines}</ul></section>"


def _tools(view: View, language: str) -> str:
    words = {name: escape(text) for name, text in WORDS[language].items()}
    twice = f"<button>{words['twice']}</button><span>{words['twice_what']}</span>"
    forms = [_form(view, language, "twice", twice)]
    if view.status is Status.TRADE_CLOSED:
        late = f"<button>{words['late']}</button><span>{words['late_what']}</span>"
        forms.append(_form(view, language, "late", late))
    field = (
        f'<label for="sum">{words["wrong_what"]}</label>'
        '<input id="sum" name="amount" inputmode="decimal" required value="0.01">'
    )
    wrong = f"{field}<button>{words['wrong']}</button>"
    forms.append(_form(view, language, "wrong", wrong))
    head = f'<h2>{words["tools"]}</h2><p class="grey">{words["tools_what"]}</p>'
    return f"<section>{head}{''.join(forms)}</section>"


def _form(view: View, language: str, action: str, inner: str) -> str:
    address = place(view.out_trade_no, language)
    hidden = f'<input type="hidden" name="action" value="{action}">'
    return f'<form method="post" action="{address}" id="{action}">{hidden}{inner}</form>'


def _page(language: str, body: str) -> str:
    words = {name: escape(text) for name, text in WORDS[language].items()}
    other = "en" if language == "zh" else "zh"
    link = f'<a href="?lang={other}" lang="{other}" hreflang="{other}">{words["other"]}</a>'
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{words["title"]}</title><style>{STYLE}</style>'
        f"</head><body><main><header><h1>{words['title']}</h1>{link}</header>"
        f'<p class="grey">{words["what"]} <a href="{place("", language)}">{words["back"]}</a></p>'
        f"{body}</main><script>{SCRIPT}</script></body></html>"
    )
