"""A handler's import can be frozen and started many times, as SnapStart does.

Every copy of a snapshot has what the import left behind. So an import opens no connection, draws no
chance, asks no clock, starts nothing, and reads nothing but its own files and settings that stay
with a published version: credentials and log streams belong to one copy. All of that is watched
from before the handler's first line. What C code asks without Python's functions is not seen: for
`datetime.now` tests/contract/test_tidy.py stands in.
"""

import ast
import json
import re

import pytest

from tests.support import layers, sources

WATCHED = """
import json, os, sys, time

asked = []
known = sys.path.copy()  # the standard library
code = sys.argv[2:]

def watch(holder, kind, *names):
    for name in names:
        setattr(holder, name, watched(getattr(holder, name), kind))

def watched(original, kind):
    def asking(*arguments, **named):
        file = sys._getframe(1).f_code.co_filename
        [home] = [each for each in known if file.startswith(each + os.sep)] or [""]
        asked.append(f"{kind} by {os.path.relpath(file, home) if home else 'us'}")
        return original(*arguments, **named)
    return asking

watch(time, "clock", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep")
watch(os, "chance", "urandom", "getrandom")
import random  # now, for it keeps a urandom of its own
watch(random, "chance", "random", "uniform", "randint", "randrange", "choice", "getrandbits")

class Environment(type(os.environ)):
    def __getitem__(self, key):
        asked.append(f"variable {key}")
        return super().__getitem__(key)

os.environ.__class__ = Environment

def audit(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.fork", "os.posix_spawn", "_thread.")):
        asked.append(event)
    elif event == "open" and isinstance(arguments[0], str):
        path = os.path.abspath(arguments[0])
        if not path.startswith((*known, *code)):
            asked.append(f"file {path}")

sys.addaudithook(audit)
sys.path[:0] = code
__import__(sys.argv[1])
seen = sorted(set(asked))
print(json.dumps(seen))
"""

# A version keeps them: how it logs, what it is called, and who runs Python in it.
KEPT = re.compile(
    r"variable (POWERTOOLS_\w+|PYTHON\w+|PYDANTIC_\w+|_PYTHON\w+|(AWS_LAMBDA_)?LOG_LEVEL"
    r"|AWS_EXECUTION_ENV|AWS_LAMBDA_INITIALIZATION_TYPE|HOME|LOGNAME|USER|LNAME|USERNAME)"
)
# For a field of log records that no line of ours shows: how long ago logging was loaded.
HARMLESS = "clock by logging/__init__.py"


def asked_by(function, paths):
    asked = json.loads(layers.start(WATCHED, function, paths))
    return {each for each in asked if not KEPT.fullmatch(each)} - {HARMLESS}


@pytest.mark.parametrize("function", layers.FUNCTIONS)
def test_importing_a_handler_touches_nothing_that_differs_between_copies(function):
    assert asked_by(function, layers.paths_of(function)) == set()


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("import socket; socket.socket()", "socket.__new__"),
        ("import socket; socket.getaddrinfo('localhost', 1)", "socket.getaddrinfo"),
        ("import time; time.monotonic()", "clock by us"),
        ("from time import time; time()", "clock by us"),
        ("import os; os.urandom(1)", "chance by us"),
        ("import random; random.random()", "chance by us"),
        ("import secrets; secrets.token_hex()", "chance by random.py"),
        ("import uuid; uuid.uuid4()", "chance by uuid.py"),
        ("import os; os.environ.get('AWS_SESSION_TOKEN')", "variable AWS_SESSION_TOKEN"),
        ("import os; os.getenv('DATABASE_HOST')", "variable DATABASE_HOST"),
        ("open('/proc/self/stat').close()", "file /proc/self/stat"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("import threading; threading.Thread(target=int).start()", "_thread.start_joinable_thread"),
    ],
)
def test_an_import_that_does_is_seen(tmp_path, line, asked):
    (tmp_path / "asking.py").write_text(line)
    assert asked in asked_by("asking", [tmp_path])


def shared_chance(tree: ast.Module) -> list[str]:
    """Uses of the generator that Python seeds when it loads ``random``, which every copy shares."""
    return [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) == "random"
        and node.attr != "SystemRandom"
    ]


@pytest.mark.parametrize("source", sources.all_of_them(), ids=lambda source: source.name)
def test_chance_comes_from_the_system_and_not_from_a_seed_that_copies_share(source):
    assert shared_chance(source.tree) == []
    assert not [name for name in source.imports() if name.startswith("random.")]


def test_a_shared_seed_is_seen():
    assert shared_chance(ast.parse("x = random.uniform(1, 2)")) == ["uniform"]
    assert shared_chance(ast.parse("x = random.SystemRandom()")) == []
