"""What nobody measured: each with its value and its reason, in a file, and printed with every
result. Any of them can be given on the command line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from infra.load import documents
from infra.load.errors import ModelError

FILE: Final = Path(__file__).with_name("assumptions.json")
_SHARES: Final = ("busy_max", "connections_max", "paid_share", "page_share")
# Nothing can be divided by these if they are zero.
_POSITIVE: Final = ("core_mb", "scaling_exponent", "busy_max", "connections_max", "tries",
                    "channel_ms", "close_ms", "decider_cores", "headroom")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assumptions:
    values: Mapping[str, float]
    reasons: Mapping[str, str]

    @classmethod
    def read(cls, overrides: Mapping[str, float], path: Path = FILE) -> Self:
        document = documents.read(path, "BAD_ASSUMPTIONS")
        values = {
            name: documents.number({name: entry.get("value")}, name, "BAD_ASSUMPTIONS")
            for name, entry in document.items()
        }
        reasons = {name: str(entry.get("says", "")) for name, entry in document.items()}
        reasons |= {name: f"{reasons[name]} (given)" for name in overrides}
        values |= overrides
        _check(values)
        return cls(values, reasons)

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def lines(self) -> Iterator[str]:
        for name, value in self.values.items():
            yield f"{name}={value:g}: {self.reasons[name]}"


def names() -> frozenset[str]:
    return frozenset(documents.read(FILE, "BAD_ASSUMPTIONS"))


def _check(values: Mapping[str, float]) -> None:
    for name in _SHARES:
        if not 0 <= values[name] <= 1:
            raise ModelError("BAD_OPTION", f"{name} is a part from 0 to 1, not {values[name]:g}")
    for name in _POSITIVE:
        if values[name] <= 0:
            raise ModelError("BAD_OPTION", f"{name} is above 0, not {values[name]:g}")
    if values["paid_share"] + values["page_share"] > 1:
        raise ModelError("BAD_OPTION", "paid_share and page_share are more than all orders")
    if values["tries"] != int(values["tries"]):
        raise ModelError("BAD_OPTION", f"tries is a whole number, not {values['tries']:g}")
