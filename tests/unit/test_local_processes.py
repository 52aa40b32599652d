"""Only what was started here is ever found again, and ended."""

import json
import os
import sys

import pytest

from infra.local import processes
from infra.local.steps import SetupError

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeper(tmp_path):
    running = processes.start(tmp_path, "sleeper", SLEEPER, 0, os.environ)
    yield running
    processes.stop(tmp_path, "sleeper")


def test_a_started_process_is_found_again_until_it_is_stopped(tmp_path, sleeper):
    assert processes.find(tmp_path, "sleeper") == sleeper
    assert processes.stop(tmp_path, "sleeper") is True
    assert processes.find(tmp_path, "sleeper") is None
    assert processes.stop(tmp_path, "sleeper") is False


def test_a_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path, sleeper):
    record = tmp_path / "run" / "sleeper.json"
    written = record.read_text()
    record.write_text(json.dumps(json.loads(written) | {"birth": "another moment"}))
    assert processes.stop(tmp_path, "sleeper") is False
    record.write_text(written)
    assert processes.find(tmp_path, "sleeper") == sleeper


def test_a_process_that_dies_at_once_is_an_error_that_quotes_its_log(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('no such luck')"]
    processes.start(tmp_path, "dier", command, 0, os.environ)
    with pytest.raises(SetupError, match="no such luck"):
        processes.wait_until(tmp_path, "dier", lambda: False, seconds=20)
