"""Load a catalogue: new SKUs, prices, stock with its entries; all of a file or nothing."""

from decimal import Decimal

import pytest

from infra.local import invariants
from lockstep.db import connection
from lockstep.inventory import catalogue, catalogue_store
from lockstep.inventory.catalogue import CatalogueReport, load_catalogue
from lockstep.inventory.catalogue_file import RowError, RowFault
from lockstep.inventory.confirm import confirm
from lockstep.orders.model import Closed, OutOfStock, Placed
from lockstep.orders.place import place
from tests.support.builders import a_sku, an_order, assert_at_rest, place_command, try_hold
from tests.support.channel import cancel
from tests.support.dying import count_round_trips, die_at
from tests.support.plans import plan_of

ALICE = "operator:alice"
TABLES = ("ims_sku_stock", "ims_stock_entry", "ims_catalogue_load")


def file_of(*rows: str) -> str:
    return "\n".join(["sku_id,title,price,stock,hot,on_sale", *rows, ""])


def entries(database) -> list[tuple[object, ...]]:
    """(sku_id, kind, delta, actor) of what loads wrote, oldest first."""
    rows = database.rows(
        "SELECT sku_id, kind, delta, actor FROM ims_stock_entry WHERE source LIKE 'catalogue:%%' "
        "ORDER BY id"
    )
    return [tuple(row.values()) for row in rows]


def what_changed(report: CatalogueReport) -> tuple[int, int, int, int]:
    """(loaded, repriced, restocked, unchanged) of a load that was not refused."""
    assert report.errors == ()
    return report.loaded, report.repriced, report.restocked, report.unchanged


def test_new_skus_can_be_ordered_and_their_stock_has_an_entry(database):
    report = load_catalogue(
        file_of("1002,墨水,1.50,,no,yes", "1001,Notebook,9.90,3,false,true"), ALICE, "first"
    )
    assert report == CatalogueReport("first", loaded=2)
    assert database.one("SELECT * FROM ims_sku_stock WHERE sku_id = 1001") == {
        "sku_id": 1001,
        "title": "Notebook",
        "price": Decimal("9.90"),
        "stock": 3,
        "lock_stock": 0,
        "hot": 0,
        "on_sale": 1,
    }
    assert database.one("SELECT * FROM ims_sku_stock WHERE sku_id = 1002")["title"] == "墨水"
    assert entries(database) == [(1001, "INITIAL", 3, ALICE), (1002, "INITIAL", 0, ALICE)]
    assert an_order({1001: 3}).pay_amount == Decimal("29.70")
    assert isinstance(place(place_command({1002: 1})), OutOfStock)
    assert_at_rest(database)


def test_what_a_file_changes_is_told_apart(database):
    for sku_id in range(1001, 1009):
        a_sku(database, sku_id, stock=10)
    report = load_catalogue(
        file_of(
            "1001,SKU 1001,9.90,10,0,1",
            "1002,SKU 1002,9.90,,0,1",
            "1003,SKU 1003,8.80,10,0,1",
            "1004,Sku 1004,9.90,10,0,1",
            "1005,SKU 1005,9.90,10,1,0",
            "1006,SKU 1006,9.90,17,0,1",
            "1007,SKU 1007,9.90,4,0,1",
            "1008,SKU 1008,7.70,0,0,1",
        ),
        ALICE,
    )
    assert what_changed(report) == (0, 4, 3, 2)
    rows = database.rows("SELECT * FROM ims_sku_stock ORDER BY sku_id")
    assert [(r["title"], str(r["price"]), r["stock"], r["hot"], r["on_sale"]) for r in rows] == [
        ("SKU 1001", "9.90", 10, 0, 1),
        ("SKU 1002", "9.90", 10, 0, 1),
        ("SKU 1003", "8.80", 10, 0, 1),
        ("Sku 1004", "9.90", 10, 0, 1),
        ("SKU 1005", "9.90", 10, 1, 0),
        ("SKU 1006", "9.90", 17, 0, 1),
        ("SKU 1007", "9.90", 4, 0, 1),
        ("SKU 1008", "7.70", 0, 0, 1),
    ]
    assert entries(database) == [
        (1006, "RESTOCK", 7, ALICE),
        (1007, "CORRECTION", -6, ALICE),
        (1008, "CORRECTION", -10, ALICE),
    ]
    assert invariants.broken(database.rows) == {}


def test_skus_that_a_file_does_not_name_stay_as_they_are(database):
    a_sku(database, 1001)
    before = database.one("SELECT * FROM ims_sku_stock WHERE sku_id = 1001")
    load_catalogue(file_of("1002,b,1,1,0,1"), ALICE)
    assert database.one("SELECT * FROM ims_sku_stock WHERE sku_id = 1001") == before


def test_an_empty_stock_reprices_and_leaves_the_stock_alone(database):
    a_sku(database, stock=10)
    an_order({1001: 4})
    report = load_catalogue(file_of("1001,SKU 1001,1.00,,0,1"), ALICE)
    assert what_changed(report) == (0, 1, 0, 0)
    assert database.stock(1001) == (10, 4)
    assert entries(database) == []


def test_stock_is_what_is_on_hand_at_the_load_with_what_is_held(database):
    """Held pieces lie on the shelf and are counted; sold ones do not and are not."""
    a_sku(database, stock=10)
    assert try_hold("A-1", 1, {1001: 2})
    assert try_hold("B-1", 2, {1001: 3})
    confirm("A-1", 1)
    assert database.stock(1001) == (8, 3)
    load_catalogue(file_of("1001,SKU 1001,9.90,8,0,1"), ALICE, "counted")
    assert database.stock(1001) == (8, 3)
    load_catalogue(file_of("1001,SKU 1001,9.90,20,0,1"), ALICE, "delivery")
    assert database.stock(1001) == (20, 3)
    assert entries(database) == [(1001, "RESTOCK", 12, ALICE)]
    confirm("B-1", 2)
    assert database.stock(1001) == (17, 0)
    assert invariants.broken(database.rows) == {}


def test_the_same_load_again_changes_nothing(database):
    """Pieces sold since the first time stay sold."""
    a_sku(database, stock=10)
    text = file_of("1001,SKU 1001,9.90,20,0,1", "1002,b,1,5,0,1")
    first = load_catalogue(text, ALICE)
    order = an_order({1001: 4})
    confirm(f"{order.order_no}-1", order.id)
    before = database.dump(TABLES)
    again = load_catalogue(text, "operator:bob")
    assert (what_changed(first), first.repeated) == ((1, 0, 1, 0), False)
    assert (what_changed(again), again.repeated) == ((1, 0, 1, 0), True)
    assert database.dump(TABLES) == before
    assert database.stock(1001) == (16, 0)


def test_the_same_file_under_another_load_id_is_another_load(database):
    a_sku(database, stock=10)
    text = file_of("1001,SKU 1001,9.90,20,0,1")
    load_catalogue(text, ALICE, "monday")
    try_hold("A-1", 1, {1001: 4})
    confirm("A-1", 1)
    assert what_changed(load_catalogue(text, ALICE, "friday")) == (0, 0, 1, 0)
    assert database.stock(1001) == (20, 0)
    assert [entry[2] for entry in entries(database)] == [10, 4]


def test_a_load_id_stands_for_one_file(database):
    load_catalogue(file_of("1001,a,1,5,0,1"), ALICE, "monday")
    before = database.dump(TABLES)
    report = load_catalogue(file_of("1001,a,1,6,0,1"), "operator:bob", "monday")
    assert report == CatalogueReport(
        "monday",
        errors=(
            RowError(
                1, RowFault.LOAD_ID_REUSED, "monday was another file, loaded by operator:alice"
            ),
        ),
    )
    assert database.dump(TABLES) == before


def test_a_file_with_one_bad_row_changes_nothing(database):
    a_sku(database, stock=10)
    before = database.dump(TABLES)
    report = load_catalogue(
        file_of("1001,x,1.00,20,0,1", "1002,b,1e1,1,0,1", "1003,c,1,1,0,1"), ALICE
    )
    assert [(error.line, error.code) for error in report.errors] == [(3, "PRICE_INVALID")]
    assert what_changed(CatalogueReport(report.load_id)) == (0, 0, 0, 0)
    assert database.dump(TABLES) == before


def test_a_stock_below_what_is_held_refuses_the_file_by_line_with_the_numbers(
    database, monkeypatch
):
    """Every such row, in the order of the file, and nothing of the batches before them."""
    monkeypatch.setattr(catalogue, "_BATCH_SIZE", 2)
    for sku_id in (1001, 1002, 1003):
        a_sku(database, sku_id, stock=10)
    order = an_order({1002: 3, 1003: 4})
    before = database.dump(TABLES)
    rows = ("1003,c,1,0,0,1", "1,new,1,1,0,1", "1001,a,1,0,0,1", "1002,b,1,2,0,1", "5,n,1,1,0,1")
    report = load_catalogue(file_of(*rows), ALICE)
    held = "on hand are held by orders"
    assert report.errors == (
        RowError(2, RowFault.STOCK_BELOW_HELD, f"SKU 1003: 0 wanted, but 4 of 10 {held}"),
        RowError(5, RowFault.STOCK_BELOW_HELD, f"SKU 1002: 2 wanted, but 3 of 10 {held}"),
    )
    assert database.dump(TABLES) == before
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)
    assert_at_rest(database)
    assert database.stock(1002) == (10, 0)
    assert load_catalogue(file_of(*rows), ALICE).errors == ()
    assert database.stock(1003) == (0, 0)


def test_as_much_as_is_held_may_be_wanted(database):
    a_sku(database, stock=10)
    order = an_order({1001: 3})
    load_catalogue(file_of("1001,SKU 1001,9.90,3,0,1"), ALICE)
    assert database.stock(1001) == (3, 3)
    assert cancel(42, order.order_no) == Closed(order.id, repeated=False)
    assert_at_rest(database)


def test_a_repriced_sku_leaves_placed_orders_alone_and_is_the_next_ones_price(database):
    a_sku(database, price="9.90")
    first = an_order({1001: 2})
    load_catalogue(file_of("1001,Renamed,5.00,,0,1"), ALICE)
    line = database.one("SELECT * FROM oms_order_item WHERE order_id = %s", (first.id,))
    assert (line["title"], line["price"], line["amount"]) == (
        "SKU 1001",
        Decimal("9.90"),
        Decimal("19.80"),
    )
    assert an_order({1001: 2}).pay_amount == Decimal("10.00")


def test_batches_come_to_what_one_statement_would(database, monkeypatch):
    monkeypatch.setattr(catalogue, "_BATCH_SIZE", 7)
    for sku_id in range(2, 100, 2):
        a_sku(database, sku_id, stock=5)
    title = "'t\\{}\",%s"  # what a careless statement would trip over
    rows = [
        ",".join((str(i), '"' + title.format(i).replace('"', '""') + '"', f"1.{i:02},{i},0,1"))
        for i in range(99, 0, -1)
    ]
    report = load_catalogue(file_of(*rows), ALICE)
    assert what_changed(report) == (50, 49, 49, 0)
    seen = database.rows("SELECT sku_id, title, price, stock FROM ims_sku_stock ORDER BY sku_id")
    assert seen == [
        {
            "sku_id": sku_id,
            "title": title.format(sku_id),
            "price": Decimal(f"1.{sku_id:02}"),
            "stock": sku_id,
        }
        for sku_id in range(1, 100)
    ]
    assert invariants.broken(database.rows) == {}


def shape(database) -> list[list[tuple[object, ...]]]:
    """What a load leaves, without drawn ids and times."""
    queries = (
        "SELECT sku_id, title, price, stock, lock_stock, hot, on_sale FROM ims_sku_stock",
        "SELECT sku_id, kind, delta, source, actor FROM ims_stock_entry",
        "SELECT load_id, loaded, repriced, restocked, unchanged FROM ims_catalogue_load",
    )
    return [[tuple(row.values()) for row in database.rows(f"{q} ORDER BY 1, 2")] for q in queries]


def test_a_death_at_any_round_trip_leaves_all_or_nothing_and_the_next_try_ends_it(
    database, monkeypatch
):
    monkeypatch.setattr(catalogue, "_BATCH_SIZE", 2)
    text = file_of("1001,a,1,20,0,1", "1002,b,1,3,0,1", "1003,c,2,9,0,1", "1004,d,1,,1,1")

    def prepare() -> list[list[tuple[object, ...]]]:
        database.empty()
        a_sku(database, 1001)
        a_sku(database, 1003)
        return shape(database)

    before = prepare()
    trips = count_round_trips(lambda: load_catalogue(text, ALICE))
    done = shape(database)
    assert trips >= 12
    seen = []
    for trip in range(trips):
        for after in (False, True):
            prepare()
            die_at(lambda: load_catalogue(text, ALICE), trip, after=after)
            connection.discard()
            seen.append(shape(database))
            assert what_changed(load_catalogue(text, ALICE)) == (2, 2, 2, 0)
            assert shape(database) == done
    assert seen == [before] * (2 * trips - 1) + [done]


@pytest.mark.parametrize("load_id", ["", "a b", "x" * 65, "载"])
def test_an_unusable_load_id_is_refused_before_anything_else(load_id):
    with pytest.raises(ValueError, match="a load id is 1 to 64 of"):
        load_catalogue(file_of(), ALICE, load_id)


@pytest.mark.parametrize("actor", ["", "x" * 81])
def test_an_unusable_actor_is_refused_before_anything_else(actor):
    with pytest.raises(ValueError, match="1 to 80 characters"):
        load_catalogue(file_of(), actor)


def test_skus_on_sale_or_not_and_hot_or_not_are_what_the_file_says(database):
    load_catalogue(file_of("1001,a,1,5,yes,yes", "1002,b,1,5,0,0"), ALICE)
    outcome = place(place_command({1001: 1}))
    assert isinstance(outcome, Placed)
    assert outcome.order.status == "RESERVING"
    assert not isinstance(place(place_command({1002: 1})), Placed)


def test_the_skus_of_a_batch_are_reached_by_their_key(database):
    database.execute("SET SESSION cte_max_recursion_depth = 20000")
    database.execute(
        "INSERT INTO ims_sku_stock (sku_id, title, price, stock) "
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        "SELECT i, 'a thing', 1, 1 FROM n"
    )
    database.rows("ANALYZE TABLE ims_sku_stock")
    locking = plan_of(database, catalogue_store.LOCK_SKUS, (tuple(range(1, 1001)),))
    assert (locking.keys, locking.scanned, locking.sorts) == (
        {"ims_sku_stock": "PRIMARY"},
        (),
        False,
    )
    changing = plan_of(database, catalogue_store.CHANGE_SKUS, ('[[1,"a","1.00",1,0,1]]',))
    assert (changing.keys, changing.scanned) == ({"s": "PRIMARY"}, ())
    reading = plan_of(database, catalogue_store.READ_LOAD, ("x",))
    assert reading.scanned == ()


def test_what_somebody_made_so_since_we_looked_stays_as_it_is(database, monkeypatch):
    a_sku(database, 1001, stock=5)
    lock = catalogue_store.lock_skus

    def lock_too_late(tx, sku_ids):
        database.execute("UPDATE ims_sku_stock SET price = 1.00")
        return lock(tx, sku_ids)

    monkeypatch.setattr(catalogue_store, "lock_skus", lock_too_late)
    report = load_catalogue(file_of("1001,SKU 1001,1.00,5,0,1"), ALICE)
    assert what_changed(report) == (0, 0, 0, 1)
