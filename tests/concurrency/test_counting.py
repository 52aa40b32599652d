"""Goal: threads that count outcomes at the same time lose none and keep none for ever.

Method: many threads count, with the interpreter switching between them as often as it can; what was
written out and what is still kept add up to what was counted.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockstep.observability import count, metrics

THREADS, COUNTS_EACH = 16, 1500
NAMES = ("One", "Two", "Three")
# Powertools writes its set out when one metric has so many values.
VALUES_MAX = 100


@pytest.fixture
def switching_often():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_what_threads_count_at_once_is_all_counted(capsys, switching_often):
    metrics.metric_set.clear()

    def count_much(_: int) -> None:
        for turn in range(COUNTS_EACH):
            count(NAMES[turn % len(NAMES)])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(count_much, range(THREADS)))
    kept = {name: len(metric["Value"]) for name, metric in metrics.metric_set.items()}
    metrics.metric_set.clear()
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for name in NAMES:
        in_all = kept.get(name, 0) + sum(len(line.get(name, ())) for line in written)
        assert in_all == THREADS * COUNTS_EACH / len(NAMES)
        assert kept.get(name, 0) < VALUES_MAX
