"""A catalogue file: what is taken, and each way to be wrong, named by its line."""

from decimal import Decimal

import pytest

from lockstep.inventory import catalogue_file
from lockstep.inventory.catalogue_file import CatalogueRow, RowFault, parse

HEADER = "sku_id,title,price,stock,hot,on_sale\n"


def errors_of(text: str) -> list[tuple[int, RowFault]]:
    return [(error.line, error.code) for error in parse(text)[1]]


def test_a_row_is_read_as_it_stands():
    assert parse(HEADER + "1001,Notebook,9.90,100,false,true\n") == (
        [CatalogueRow(2, 1001, "Notebook", Decimal("9.90"), stock=100, hot=False, on_sale=True)],
        [],
    )


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_spreadsheets_write_is_read(mark, end):
    """A byte order mark, either line end, quotes with commas, quotes and CJK text in them, and
    blank lines."""
    lines = [HEADER.strip(), '1,"墨水, ""黑""",1,,YES,No', "", "2,b\u3000c,0.5,0,1,0", ""]
    rows, errors = parse(mark + end.join(lines))
    assert errors == []
    assert [(r.line, r.title, r.price, r.stock, r.hot, r.on_sale) for r in rows] == [
        (2, '墨水, "黑"', Decimal("1.00"), None, True, False),
        (4, "b\u3000c", Decimal("0.50"), 0, True, False),
    ]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *[
            ("sku_id", c)
            for c in ["", "0", "-1", "1.0", "01", "1e3", " 1", "\uff11", "9007199254740992"]
        ],
        *[("title", c) for c in ["", "  ", "x" * 201, "a\x00b", "a\x1bb", "\ud800"]],
        *[
            ("price", c)
            for c in ["", "1e1", "NaN", "Infinity", "\uff19.\uff19\uff10", "9.900", "-1", "+1"]
        ],
        *[("price", c) for c in ["9,90", "1_0", ".5", "1.", " 1", "9" * 17]],
        *[("stock", c) for c in ["-1", "1.5", "1e3", "+1", "01", " 1", "\uff12", "2147483648"]],
        *[("hot", c) for c in ["", "2", "t", "on", "真", "\uff59\uff45\uff53", " true"]],
        *[("on_sale", c) for c in ["", "2", "t", "on", "否"]],
    ],
)
def test_a_cell_that_is_wrong_is_named_by_line_and_column(column, cell):
    good = ["1001", "Notebook", "9.90", "100", "false", "true"]
    at = catalogue_file.HEADER.index(column)
    quoted = '"' + cell + '"'
    text = HEADER + "7,fine,1.00,1,0,1\n" + ",".join([*good[:at], quoted, *good[at + 1 :]]) + "\n"
    rows, [error] = parse(text)
    assert [row.sku_id for row in rows] == [7]
    assert (error.line, error.code.value) == (
        3,
        {"hot": "FLAG_INVALID", "on_sale": "FLAG_INVALID"}.get(column, f"{column.upper()}_INVALID"),
    )
    assert error.detail.startswith(f"{column} {cell[:40]!r}: ")


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("sku_id", "9007199254740991"),
        ("title", "字" * 200),
        ("price", "9" * 16 + ".99"),
        ("price", "0"),
        ("stock", "2147483647"),
    ],
)
def test_the_largest_and_smallest_that_fit_are_taken(column, cell):
    good = ["1001", "Notebook", "9.90", "100", "false", "true"]
    at = catalogue_file.HEADER.index(column)
    rows, errors = parse(HEADER + ",".join([*good[:at], cell, *good[at + 1 :]]))
    assert (len(rows), errors) == (1, [])


@pytest.mark.parametrize(
    "header",
    [
        "",
        "1001,Notebook,9.90,100,false,true",
        "sku_id,title,price,stock,hot",
        "sku_id,title,price,stock,hot,on_sale,note",
        "title,sku_id,price,stock,hot,on_sale",
        "sku_id;title;price;stock;hot;on_sale",
    ],
)
def test_a_wrong_header_is_the_only_error(header):
    assert errors_of(f"{header}\n1001,Notebook,9.90,x,false,true\n") == [(1, RowFault.HEADER_WRONG)]
    assert errors_of("") == [(1, RowFault.HEADER_WRONG)]


def test_every_wrong_row_is_named_and_a_row_is_named_for_all_that_is_wrong():
    text = HEADER + "1,a,1,1,0\n2,,x,1,0,1\n3,c,1,1,0,1,1\n4,d,1,1,0,1\n4,e,1,1,0,1\n"
    assert errors_of(text) == [
        (2, RowFault.COLUMNS_WRONG),
        (3, RowFault.TITLE_INVALID),
        (3, RowFault.PRICE_INVALID),
        (4, RowFault.COLUMNS_WRONG),
        (6, RowFault.SKU_ID_REPEATED),
    ]
    assert parse(text)[1][-1].detail == "SKU 4 is on line 5 already"


def test_lines_are_those_of_the_file_where_a_field_spans_several():
    text = HEADER + '1,"two\nlines",1,1,0,1\n2,b,x,1,0,1\n'
    assert errors_of(text) == [(2, RowFault.TITLE_INVALID), (4, RowFault.PRICE_INVALID)]


@pytest.mark.parametrize("row", ['2,"b"c,1,1,0,1', '2,"b,1,1,0,1', f"2,{'x' * 140_000},1,1,0,1"])
def test_what_is_no_csv_is_named_where_it_begins(row):
    assert errors_of(f"{HEADER}1,a,1,x,0,1\n{row}\n3,c,1,1,0,1\n") == [
        (2, RowFault.STOCK_INVALID),
        (3, RowFault.FILE_UNREADABLE),
    ]


def test_a_file_has_a_size_and_a_number_of_rows(monkeypatch):
    monkeypatch.setattr(catalogue_file, "ROWS_MAX", 2)
    rows = "1,a,1,1,0,1\n2,b,1,1,0,1\n"
    assert errors_of(HEADER + rows) == []
    assert errors_of(HEADER + rows + "3,c,1,1,0,1\n") == [(1, RowFault.FILE_TOO_LARGE)]
    monkeypatch.setattr(catalogue_file, "CHARACTERS_MAX", len(HEADER + rows))
    assert errors_of(HEADER + rows) == []
    assert errors_of(HEADER + rows + "\n") == [(1, RowFault.FILE_TOO_LARGE)]
