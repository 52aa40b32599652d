"""Outside of a test run an `assert` tells nothing but that it failed. pytest rewrites those of the
modules that it is told of as they are imported; this has it do so without a run."""

import sys
from pathlib import Path
from typing import Final

import pytest
from _pytest.assertion import install_importhook
from _pytest.assertion.rewrite import AssertionRewritingHook
from _pytest.config import get_config

# What is imported already, this module and its package, has no assert in it.
MODULES: Final = (
    "tests.support",
    "tests.concurrency",
    *(f"tests.proof.{there.stem}" for there in Path(__file__).parent.glob("[a-z]*")),
)


def install() -> None:
    """For what is imported from now on; in a test run there is such a hook already."""
    if not any(isinstance(finder, AssertionRewritingHook) for finder in sys.meta_path):
        install_importhook(get_config())
        pytest.register_assert_rewrite(*(name for name in MODULES if name not in sys.modules))
