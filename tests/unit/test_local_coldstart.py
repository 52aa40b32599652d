"""A cold import is timed in a process of its own, and a default layer stays as SAM built it."""

import pytest

from infra.local import coldstart
from infra.local.steps import SetupError


def test_every_import_has_an_interpreter_of_its_own_and_leaves_no_bytecode(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.05)\n")
    (tmp_path / "quick.py").write_text("import sys\nassert 'slow' not in sys.modules\n")
    taken = coldstart.median_seconds(
        {name: (name, [tmp_path]) for name in ("slow", "quick")}, runs=3
    )
    assert 0.05 <= taken["slow"] < 5
    assert taken["quick"] < taken["slow"]
    assert not list(tmp_path.rglob("*.pyc"))


def test_what_is_not_on_the_path_is_missed(tmp_path):
    with pytest.raises(SetupError, match="No module named 'pydantic'"):
        coldstart.import_seconds("pydantic", [tmp_path])


def test_a_median_does_not_follow_one_slow_start(tmp_path, monkeypatch):
    taken = iter([9.0, 1.0, 8.0, 2.0])  # the first is not counted
    monkeypatch.setattr(coldstart, "import_seconds", lambda _module, _paths: next(taken))
    assert coldstart.median_seconds({"a": ("a", [tmp_path])}, runs=3) == {"a": 2.0}
