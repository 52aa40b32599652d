"""The fuzzer finds what only coverage leads to."""

import pytest

from tests.proof.hostile import fuzz, planted_target


@pytest.mark.skipif(not fuzz.HAS_ATHERIS, reason="atheris has no wheel for this machine")
def test_a_fault_that_only_coverage_leads_to():
    executed, found, told = fuzz.fuzz("planted", 200_000, 1, planted_target)
    assert 0 < executed < 200_000
    assert found is not None
    assert found[:3] == b"PK\x07"
    assert "let out" in told
