"""How Hypothesis draws for the proof: the same from a seed, whatever else the process has loaded,
and nothing kept on disk. What fails is shortened and named by its section."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


def quietly(**limits: Any) -> settings:
    """Draw only, up to ``limits``."""
    return settings(
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
        **limits,
    )


@contextmanager
def drawn_alike() -> Iterator[None]:
    """Hypothesis also draws the constants that it finds in whatever modules of ours are loaded,
    which are others in each process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(providers, "_get_local_constants", Constants)
        patch.setattr(providers, "CONSTANTS_CACHE", LRUCache(1024))
        yield
