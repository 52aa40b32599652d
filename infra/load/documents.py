"""JSON files that a person may have written, read with a name for what is wrong in them."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.load.errors import ModelError


def read(path: Path, error: str) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise ModelError(error, f"{path} cannot be read: {fault.strerror}") from fault
    except ValueError as fault:
        raise ModelError(error, f"{path} is no JSON: {fault}") from fault
    if not isinstance(document, dict):
        raise ModelError(error, f"{path} holds no object")
    return document


def number(holder: Mapping[str, Any], name: str, error: str, *, least: float = 0) -> float:
    """A finite number under ``name``, at least ``least``."""
    value = holder.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ModelError(error, f"{name} is a number, not {value!r}")
    if value < least:
        raise ModelError(error, f"{name} is at least {least:g}, not {value!r}")
    return float(value)
