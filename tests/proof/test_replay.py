"""A case that no section knows is said to be unknown, and is not taken for a fault."""

import pytest

from tests.proof.section import UnknownCase
from tests.proof.sections import BY_NAME


@pytest.mark.parametrize(
    ("name", "part", "case"),
    [
        ("crash", "migrations", "nobody"),
        ("crash", "place", "1.nobody"),
        ("interleavings", "pay-cancel", "AZ"),
        ("arrivals", "paid", "nobody"),
        ("guards", "schema", "nobody"),
        ("guards", "rows-inventory", "nobody"),
        ("guards", "tests-lockstep", "nobody"),
        ("model", "stock.0", "nobody"),
        ("hostile", "document-getOrder", "nobody"),
        ("hostile", "document-getOrder", "fixed-0-positive-9999"),
        ("hostile", "links", "nobody"),
        ("hostile", "fuzz-notice", "nobod"),
        ("hostile", "shapes-names", "nobody"),
        ("hostile", "tokens", "nobody"),
        ("kills", "functions", "nobody"),
    ],
)
def test_it_is_unknown(database, name, part, case):
    with pytest.raises(UnknownCase):
        BY_NAME[name].replay(database, part, case)
