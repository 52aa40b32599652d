"""What is asked: name=value, after `make model` or after `python -m infra.load`.

buyers=1000000 seconds=60 stock=10000 skus=1 shape=poisson   the sale: stock of each SKU
rate=10000 rate_seconds=10                                   the steady orders a second
region=us-east-1 rtt_ms=1 instance=db.r8g.large seed=1
    warm=0 batch=1000        copies that run already; orders a transaction, if not as in the code
api_rps= api_burst= lambda_concurrency= fifo_rps=            quotas that were raised
figures=.local/bench.json prices=infra/load/prices.json
any name of infra/load/assumptions.json, and any parameter of template.yaml
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from infra.load import assumptions, quotas
from infra.load.arrivals import SHAPES
from infra.load.errors import ModelError
from infra.local import parameters

# A simulation of more takes longer than anybody waits: two of two million take a minute.
BUYERS_MAX: Final = 2_000_000
ORDERS_MAX: Final = 500_000


@dataclass(frozen=True, slots=True)
class Options:
    buyers: int = 1_000_000
    seconds: float = 60
    stock: int = 10_000
    skus: int = 1
    shape: str = "poisson"
    rate: int = 10_000
    rate_seconds: int = 10
    region: str = "us-east-1"
    rtt_ms: float = 1
    instance: str | None = None
    warm: int = 0
    batch: int | None = None
    seed: int = 1
    figures: Path | None = None
    prices: Path | None = None
    quotas: Mapping[str, float] = field(default_factory=dict)
    assumed: Mapping[str, float] = field(default_factory=dict)
    template: Mapping[str, str] = field(default_factory=dict)


def read(words: Sequence[str], environment: Mapping[str, str]) -> Options:
    given = parameters.on_make_line(environment) | dict(_pair(word) for word in words)
    known = assumptions.names()
    grouped: dict[str, Any] = {"quotas": {}, "assumed": {}, "template": {}}
    options = Options()
    for name, text in given.items():
        if name in _READERS:
            options = replace(options, **{name: _READERS[name](name, text)})
        elif name in quotas.RAISED:
            grouped["quotas"][name] = _whole(1, 10**9)(name, text)
        elif name in known:
            grouped["assumed"][name] = _decimal(0, 10**9)(name, text)
        elif name in parameters.declared():
            grouped["template"][name] = text
        else:
            raise ModelError("BAD_OPTION", f"there is no {name}. {__doc__}".rstrip())
    options = replace(options, **grouped)
    if options.rate * options.rate_seconds > ORDERS_MAX:
        most = f"rate times rate_seconds is at most {ORDERS_MAX:,}"
        raise ModelError("BAD_OPTION", f"{most}, not {options.rate * options.rate_seconds:,}")
    return options


def _pair(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if not name or not equals:
        raise ModelError("BAD_OPTION", f"options are name=value, not {word!r}")
    return name, text


def _whole(least: int, most: int) -> Callable[[str, str], int]:
    def read_it(name: str, text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            whole = f"{name} is a whole number from {least:,} to {most:,}"
            raise ModelError("BAD_OPTION", f"{whole}, not {text!r}")
        return int(text)

    return read_it


def _decimal(least: float, most: float) -> Callable[[str, str], float]:
    def read_it(name: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            between = f"{name} is a number from {least:g} to {most:g}"
            raise ModelError("BAD_OPTION", f"{between}, not {text!r}")
        return value

    return read_it


def _shape(name: str, text: str) -> str:
    if text not in SHAPES:
        raise ModelError("BAD_OPTION", f"{name} is one of {', '.join(SHAPES)}, not {text!r}")
    return text


def _text(_: str, text: str) -> str:
    return text


def _path(name: str, text: str) -> Path:
    if not text:
        raise ModelError("BAD_OPTION", f"{name} names no file")
    return Path(text)


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "buyers": _whole(1, BUYERS_MAX),
    "seconds": _decimal(0.1, 86_400),
    "stock": _whole(1, 10**9),
    "skus": _whole(1, 10_000),
    "shape": _shape,
    "rate": _whole(1, 100_000),
    "rate_seconds": _whole(1, 3600),
    "region": _text,
    "rtt_ms": _decimal(0, 1000),
    "instance": _text,
    "warm": _whole(0, 100_000),
    "batch": _whole(1, 100_000),
    "seed": _whole(0, 10**9),
    "figures": _path,
    "prices": _path,
}
