"""Read a catalogue file. Every row is checked, and whatever is wrong is named by its line."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from lockstep.money import parse_yuan

HEADER: Final = ("sku_id", "title", "price", "stock", "hot", "on_sale")
ROWS_MAX: Final = 100_000
CHARACTERS_MAX: Final = 400 * ROWS_MAX
TITLE_LENGTH_MAX: Final = 200
SKU_ID_MAX: Final = 2**53 - 1
STOCK_MAX: Final = 2**31 - 1

# What a message shows of a cell that is wrong.
_SHOWN_MAX: Final = 40
_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
# Control characters would break whatever prints the title; half a surrogate pair is no character.
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class RowFault(StrEnum):
    """Why a file was refused."""

    FILE_TOO_LARGE = "FILE_TOO_LARGE"
    FILE_UNREADABLE = "FILE_UNREADABLE"  # not CSV from this line on
    HEADER_WRONG = "HEADER_WRONG"
    COLUMNS_WRONG = "COLUMNS_WRONG"
    SKU_ID_INVALID = "SKU_ID_INVALID"
    SKU_ID_REPEATED = "SKU_ID_REPEATED"
    TITLE_INVALID = "TITLE_INVALID"
    PRICE_INVALID = "PRICE_INVALID"
    STOCK_INVALID = "STOCK_INVALID"
    FLAG_INVALID = "FLAG_INVALID"
    STOCK_BELOW_HELD = "STOCK_BELOW_HELD"  # only the database can tell
    LOAD_ID_REUSED = "LOAD_ID_REUSED"  # so can it this


@dataclass(frozen=True, slots=True)
class RowError:
    """``line`` is where the row begins; the header is line 1."""

    line: int
    code: RowFault
    detail: str


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """``stock`` is the wanted stock on hand, None where the file leaves it alone."""

    line: int
    sku_id: int
    title: str
    price: Decimal
    stock: int | None
    hot: bool
    on_sale: bool


def parse(text: str) -> tuple[list[CatalogueRow], list[RowError]]:
    """The good rows in the order of the file, and what is wrong with the others."""
    if len(text) > CHARACTERS_MAX:
        return [], [_too_large(f"more than {CHARACTERS_MAX} characters")]
    rows: dict[int, CatalogueRow] = {}
    errors: list[RowError] = []
    lines = _lines(text.removeprefix("\ufeff"), errors)
    if tuple(next(lines, (1, []))[1]) != HEADER:
        return [], [RowError(1, RowFault.HEADER_WRONG, f"must be {','.join(HEADER)}")]
    for count, (line, cells) in enumerate(lines, 1):
        if count > ROWS_MAX:
            return [], [_too_large(f"more than {ROWS_MAX} rows")]
        row = _check(line, cells, errors)
        if row is not None and rows.setdefault(row.sku_id, row) is not row:
            errors.append(_repeated(row, rows[row.sku_id]))
    return list(rows.values()), errors


def _lines(text: str, errors: list[RowError]) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line that it begins on: a quoted field may span
    several. Ends with an error where the text is no CSV any more."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as unreadable:
            errors.append(RowError(line, RowFault.FILE_UNREADABLE, str(unreadable)))
            return
        if cells:
            yield line, cells


def _check(line: int, cells: Sequence[str], errors: list[RowError]) -> CatalogueRow | None:
    if len(cells) != len(HEADER):
        detail = f"{len(cells)} columns instead of {len(HEADER)}"
        errors.append(RowError(line, RowFault.COLUMNS_WRONG, detail))
        return None
    values: dict[str, Any] = {}
    for name, cell in zip(HEADER, cells, strict=True):
        read, code = _COLUMNS[name]
        try:
            values[name] = read(cell)
        except ValueError as wrong:
            shown = repr(cell[:_SHOWN_MAX])
            errors.append(RowError(line, code, f"{name} {shown}: {wrong}"))
    return CatalogueRow(line, **values) if len(values) == len(HEADER) else None


def _sku_id(cell: str) -> int:
    if not _WHOLE.fullmatch(cell) or not 1 <= int(cell) <= SKU_ID_MAX:
        raise ValueError(f"not a whole number from 1 to {SKU_ID_MAX}")
    return int(cell)


def _title(cell: str) -> str:
    if not cell.strip():
        raise ValueError("empty")
    if len(cell) > TITLE_LENGTH_MAX:
        raise ValueError(f"longer than {TITLE_LENGTH_MAX} characters")
    if _UNFIT.search(cell):
        raise ValueError("holds a character that cannot be shown")
    return cell


def _stock(cell: str) -> int | None:
    if not cell:
        return None
    if not _WHOLE.fullmatch(cell) or int(cell) > STOCK_MAX:
        raise ValueError(f"not a whole number from 0 to {STOCK_MAX}")
    return int(cell)


def _flag(cell: str) -> bool:
    try:
        return _FLAGS[cell.lower()]
    except KeyError:
        raise ValueError("not one of true, false, 1, 0, yes, no") from None


_COLUMNS: Final[Mapping[str, tuple[Callable[[str], object], RowFault]]] = {
    "sku_id": (_sku_id, RowFault.SKU_ID_INVALID),
    "title": (_title, RowFault.TITLE_INVALID),
    "price": (parse_yuan, RowFault.PRICE_INVALID),
    "stock": (_stock, RowFault.STOCK_INVALID),
    "hot": (_flag, RowFault.FLAG_INVALID),
    "on_sale": (_flag, RowFault.FLAG_INVALID),
}


def _repeated(row: CatalogueRow, first: CatalogueRow) -> RowError:
    detail = f"SKU {row.sku_id} is on line {first.line} already"
    return RowError(row.line, RowFault.SKU_ID_REPEATED, detail)


def _too_large(detail: str) -> RowError:
    return RowError(1, RowFault.FILE_TOO_LARGE, detail)
