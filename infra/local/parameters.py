"""The template's parameters, and which of them a person set on make's command line."""

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml

from infra.local.paths import ROOT
from infra.local.steps import SetupError

# Short names for what is set by hand most.
SHORT = {"TTL": "OrderTtlSeconds"}


class _Template(yaml.SafeLoader):
    """Reads CloudFormation's own tags (!Ref, !Sub …) as nothing: only plain values are wanted."""


_Template.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def declared() -> dict[str, dict[str, Any]]:
    """Every parameter as the template declares it."""
    template = yaml.load((ROOT / "template.yaml").read_text(), _Template)  # noqa: S506 (a SafeLoader)
    parameters: dict[str, dict[str, Any]] = template["Parameters"]
    return parameters


def defaults() -> dict[str, str | None]:
    """Every parameter with its default; None where the template gives none."""
    return {
        name: str(parameter["Default"]) if "Default" in parameter else None
        for name, parameter in declared().items()
    }


def from_make(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What stands on the command line of `make up TTL=60 MemberIdClaim=member_id`."""
    given = on_make_line(environment)
    return checked({SHORT.get(name, name): value for name, value in given.items()})


def on_make_line(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Every variable that stands on make's command line.

    Make hands such variables down twice: each in the environment, under its name, and all of them
    at the end of MAKEFLAGS, quoted. The names are taken from the one, the values from the other.
    """
    _, _, given = environment.get("MAKEFLAGS", "").partition("-- ")
    # A space inside of a value is written as "\ ", so a name begins after a space that is not.
    names = re.findall(r"(?:^|(?<!\\) )([A-Za-z_][A-Za-z0-9_]*)=", given)
    return {name: environment[name] for name in names}


def checked(overrides: Mapping[str, str]) -> dict[str, str]:
    known = declared()
    unknown = sorted(set(overrides) - set(known))
    if unknown:
        raise SetupError(
            f"The template has no parameter {', '.join(unknown)}. "
            f"It has {', '.join(sorted(known))}; TTL is short for {SHORT['TTL']}."
        )
    for name, value in overrides.items():
        _check_value(name, value, known[name])
    return dict(overrides)


def _check_value(name: str, value: str, parameter: Mapping[str, Any]) -> None:
    """What a deployment would refuse half a minute later, and in many more words."""
    allowed = [str(choice) for choice in parameter.get("AllowedValues", [])]
    if allowed and value not in allowed:
        raise SetupError(f"{name} is one of {', '.join(allowed)}, not {value!r}.")
    if parameter["Type"] == "Number":
        least, most = parameter.get("MinValue", 0), parameter.get("MaxValue", float("inf"))
        if not re.fullmatch(r"[0-9]+", value) or not least <= int(value) <= most:
            raise SetupError(f"{name} is a number from {least} to {most}, not {value!r}.")


def complete(given: Mapping[str, str]) -> dict[str, str]:
    """All parameters, defaults included: one that is left out keeps its value of the last time."""
    values = defaults() | checked(given)
    missing = sorted(name for name, value in values.items() if value is None)
    if missing:
        raise SetupError(f"The template wants a value for {', '.join(missing)}.")
    return {name: value for name, value in values.items() if value is not None}
