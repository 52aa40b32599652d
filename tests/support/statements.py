"""Every SQL statement of the stores, found by looking, so that a new one cannot be forgotten."""

import importlib
import pkgutil
import re

import lockstep

_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\s", re.IGNORECASE)


def of_the_stores() -> dict[str, str]:
    """``orders.CLOSE_ORDER`` and the like, each with its text."""
    found: dict[str, str] = {}
    for module in pkgutil.walk_packages(lockstep.__path__, "lockstep."):
        _, _, name = module.name.rpartition(".")
        if name == "store" or name.endswith("_store"):
            part = module.name.split(".")[-2]
            for constant, text in vars(importlib.import_module(module.name)).items():
                if constant.isupper() and not constant.startswith("_") and _is_statement(text):
                    found[f"{part}.{constant}"] = text
    return found


def _is_statement(value: object) -> bool:
    return isinstance(value, str) and _STATEMENT.match(value) is not None
