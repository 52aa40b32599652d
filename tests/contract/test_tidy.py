"""What keeps the code readable and its promises true, and is seen from the text alone."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support import sources
from tests.support.sources import Source

SQL = re.compile(
    r"\s*(SELECT|INSERT INTO|REPLACE INTO|UPDATE|DELETE FROM|WITH|SET|CALL|LOCK TABLES"
    r"|CREATE|ALTER|DROP|TRUNCATE)\s+\S"
)
SQL_STANDS_IN = re.compile(r"\w+/(\w+_)?store\.py|upkeep/checks\.py")
# Session variables only.
SQL_TOO = {"db/connection.py": {"SET "}}

# A fault of any kind is an answer here: to the queue, to the outbox, to a row of the sweep.
EDGES = {
    "messaging/consumer.py",
    "messaging/outbox.py",
    "messaging/visibility.py",
    "orders/hold.py",
    "payments/doorbell.py",
    "upkeep/ask_due.py",
    "upkeep/sweep.py",
}

BANNED_CALLS = {
    "print": "logger",
    "float": "Decimal",
    "round": "quantize",
    "eval": "nothing",
    "exec": "nothing",
    "datetime.now": "the database's NOW(3)",
    "datetime.utcnow": "the database's NOW(3)",
    "datetime.today": "the database's NOW(3)",
    "date.today": "the database's NOW(3)",
    "time.time": "the database's NOW(3)",
    "random.random": "secrets",
}

# Whoever asks the gateway says what time it is; the gateway refuses a clock that is off.
CLOCK_READS = {"alipay/gateway.py": {"datetime.now"}}

HANDLER_LINES_MAX, MODULE_LINES_MAX, STORE_LINES_MAX, FUNCTION_LINES_MAX = 60, 250, 300, 50
ALL = pytest.mark.parametrize("source", sources.all_of_them(), ids=lambda source: source.name)


def misplaced_sql(source: Source) -> list[str]:
    if SQL_STANDS_IN.fullmatch(source.name):
        return []
    return [
        text.strip()
        for text in source.texts()
        if SQL.match(f"{text}x") and text not in SQL_TOO.get(source.name, ())
    ]


def built_sql(source: Source) -> Iterator[str]:
    """Statements whose text depends on a value: f-strings, % and format()."""
    for node in ast.walk(source.tree):
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) if SQL.match(f"{text}x"):
                yield ast.unparse(node)
            case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()) if SQL.match(text):
                yield ast.unparse(node)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                if SQL.match(text):
                    yield ast.unparse(node)


def banned_calls(source: Source) -> list[str]:
    called = {ast.unparse(n.func) for n in ast.walk(source.tree) if isinstance(n, ast.Call)}
    return sorted(called & BANNED_CALLS.keys())


def broad_excepts(source: Source) -> list[int]:
    """Lines that catch every fault and do not raise it again."""
    return [
        node.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or {"Exception", "BaseException"} & set(_names(node.type)))
        and not isinstance(node.body[-1], ast.Raise)
    ]


def _names(node: ast.expr) -> Iterator[str]:
    yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def long_functions(source: Source) -> dict[str, int]:
    sizes = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX}


def lines_max(source: Source) -> int:
    if source.package == "functions":
        return HANDLER_LINES_MAX
    return STORE_LINES_MAX if SQL_STANDS_IN.fullmatch(source.name) else MODULE_LINES_MAX


@ALL
def test_sql_stands_in_the_stores(source):
    assert misplaced_sql(source) == []


@ALL
def test_no_statement_is_built_from_values(source):
    assert list(built_sql(source)) == []


@ALL
def test_nothing_is_called_that_has_a_better_way(source):
    assert set(banned_calls(source)) == CLOCK_READS.get(source.name, set())


@ALL
def test_money_and_stock_know_no_float(source):
    if source.package in {"api", "orders", "payments", "inventory", "alipay", "small"}:
        names = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
        # Time limits are the one thing that has a fraction of a second.
        assert "float" not in names or source.name == "alipay/transport.py"
        numbers = [
            node.value
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, float)
        ]
        assert numbers == [] or source.name == "payments/accept.py"


@ALL
def test_faults_are_caught_by_name_except_at_the_edge(source):
    if source.package != "functions" and source.name not in EDGES:
        assert broad_excepts(source) == []


@ALL
def test_a_file_is_as_short_as_its_kind_may_be(source):
    assert source.lines <= lines_max(source)


@ALL
def test_a_function_fits_on_a_screen(source):
    assert long_functions(source) == {}


@ALL
def test_a_module_says_what_it_is_for(source):
    assert source.path.name == "__init__.py" or ast.get_docstring(source.tree)


@pytest.mark.parametrize(
    "text",
    [
        'q = "SELECT 1"',
        'q = "\\nUPDATE oms_order\\nSET status = 1"',
        'q = f"DELETE FROM {table}"',
        'tx.execute("INSERT INTO t (a) VALUES (1)")',
    ],
)
def test_sql_elsewhere_is_found(text):
    assert misplaced_sql(sources.of(text, "orders/place.py"))
    assert not misplaced_sql(sources.of(text, "orders/store.py"))


@pytest.mark.parametrize(
    "text",
    [
        'q = f"SELECT {column} FROM t"',
        'q = f"UPDATE {table} SET a = 1"',
        'q = "SELECT %s FROM t" % column',
        'q = "SELECT {} FROM t".format(column)',
    ],
)
def test_a_statement_built_from_values_is_found(text):
    assert list(built_sql(sources.of(text)))


@pytest.mark.parametrize("call", BANNED_CALLS)
def test_a_banned_call_is_found(call):
    assert banned_calls(sources.of(f"x = {call}()")) == [call]


@pytest.mark.parametrize(
    "clause",
    ["except:", "except Exception:", "except BaseException as e:", "except (A, Exception):"],
)
def test_a_broad_except_is_found_unless_it_raises(clause):
    assert broad_excepts(sources.of(f"try:\n    x\n{clause}\n    pass"))
    assert not broad_excepts(sources.of(f"try:\n    x\n{clause}\n    y\n    raise"))
