"""Draw the last whole run for the READMEs: holds a second on one hot SKU, a bar a way.

    python -m infra.bench.picture          .local/bench.json -> infra/bench/picture.svg

Plain SVG with a style of its own, so that it reads on light and on dark ground, and is small.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from infra.local.paths import LOCAL, ROOT

WRITTEN: Final = LOCAL / "bench.json"
PICTURE: Final = ROOT / "infra" / "bench" / "picture.svg"

# What a bar is called, and which rows of the run it is the best of.
BARS: Final = (
    ("ours, its best batch", "hot", "ours: reserve_stock"),
    ("the seeds' reserve", "hot", "the seeds' reserve"),
    ("the seeds' reserve, stock in buckets", "beside", "the seeds' reserve"),
    ("macrozheng/mall: create", "beside", "macrozheng/mall's statements: create"),
    ("django-oscar: allocate", "beside", "django-oscar: check, then allocate"),
    ("check, then update", "beside", "check, then update"),
    ("limit: one row, one update each", "beside", "limit: one update that commits itself"),
)
NO_RUN: Final = "There is no whole run to draw: `make bench` writes .local/bench.json."

WIDTH: Final = 760
LEFT: Final = 230
BAR_WIDTH_MAX: Final = 400
LINE: Final = 22
STYLE: Final = """\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.head { font-weight: 600 }
.ours { fill: #1a7f37 }
.other { fill: #8c959f }
.loses { fill: #cf222e }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .small { fill: #9198a1 }
  .ours { fill: #3fb950 }
  .other { fill: #656c76 }
  .loses { fill: #f85149 }
}"""


class NotWhole(Exception):
    """The run has no row for a bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    per_second: float
    kind: str
    note: str = ""


def main() -> None:
    if not WRITTEN.exists():
        sys.exit(NO_RUN)
    try:
        PICTURE.write_text(draw(json.loads(WRITTEN.read_text(encoding="utf-8"))), encoding="utf-8")
    except NotWhole as error:
        sys.exit(f"{NO_RUN}\n{error}")
    sys.stdout.write(f"Drawn: {PICTURE.relative_to(Path.cwd(), walk_up=True)}\n")


def draw(document: Mapping[str, Any]) -> str:
    """The picture of a run. Raises NotWhole."""
    panels = [
        ("no added round-trip time", _bars(document["rows"], 0)),
        ("1 ms a round trip", _bars(document["rows"], 1)),
    ]
    longest = max(bar.per_second for _, bars in panels for bar in bars)
    parts, y = [_text(0, 16, "Holds a second on one hot SKU", "head")], 16
    for title, bars in panels:
        y += 30
        parts.append(_text(0, y, title, "small"))
        for bar in bars:
            y += LINE
            parts += _bar(bar, y, longest)
    for line in document["machine"].split("; "):
        y += 20
        parts.append(_text(0, y + 8, line, "small"))
    height = y + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" '
            'aria-label="Holds a second on one hot SKU: bars">',
            f"<style>{STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def _bars(rows: Sequence[Mapping[str, Any]], wait_ms: float) -> list[Bar]:
    return [_of(rows, wait_ms, *bar) for bar in BARS]


def _of(
    rows: Sequence[Mapping[str, Any]], wait_ms: float, label: str, section: str, way: str
) -> Bar:
    found = [
        row
        for row in rows
        if (row["section"], row["name"], row["rtt_ms"]) == (section, way, wait_ms)
    ]
    if not found:
        raise NotWhole(f"It has no row of {section}: {way} at {wait_ms:g} ms.")
    best = max(found, key=lambda row: row["per_second"])
    if best["lost"]:
        share = best["lost"] / best["done"]
        return Bar(label, best["per_second"], "loses", f", {share:.0%} of them lost")
    return Bar(label, best["per_second"], "ours" if way.startswith("ours") else "other")


def _bar(bar: Bar, y: int, longest: float) -> list[str]:
    width = max(1, round(BAR_WIDTH_MAX * bar.per_second / longest))
    said = f"{bar.per_second:,.0f}{bar.note}"
    return [
        _text(LEFT - 8, y, bar.label, anchor="end"),
        f'<rect class="{bar.kind}" x="{LEFT}" y="{y - 12}" width="{width}" height="15" rx="2"/>',
        _text(LEFT + width + 6, y, said),
    ]


def _text(x: int, y: int, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x}" y="{y}"{named}{anchored}>{escape(words)}</text>'


if __name__ == "__main__":
    main()
