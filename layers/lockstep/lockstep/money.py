"""Yuan with two decimals, as Decimal. A float never holds money."""

import re
from decimal import Decimal
from typing import Final

FEN: Final = Decimal("0.01")
# Alipay takes payments from 0.01 to 100,000,000 yuan.
PAYABLE_MAX: Final = Decimal("100000000.00")

# The canonical forms only: Decimal() alone would also take 'NaN', '1e1', '1_0' and full-width
# digits.
_YUAN: Final = re.compile(r"[0-9]{1,16}(\.[0-9]{1,2})?", re.ASCII)


def parse_yuan(text: str) -> Decimal:
    """'19', '19.8' or '19.80' as Decimal('19.80'). Raises ValueError on any other form."""
    if not _YUAN.fullmatch(text):
        raise ValueError("not an amount in yuan with at most two decimals")
    return Decimal(text).quantize(FEN)


def show_yuan(amount: Decimal) -> str:
    """Two decimals, no exponent: what JSON carries."""
    return f"{amount:.2f}"
