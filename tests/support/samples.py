"""The sample events of events/: <function>.json and <function>-<case>.json."""

import json
from pathlib import Path
from typing import Any

from infra.local.paths import ROOT

EVENTS = ROOT / "events"
SAMPLES = {path.stem: path for path in sorted(EVENTS.glob("*.json"))}
# The private half was thrown away once the samples were signed.
ALIPAY_PUBLIC_KEY = (EVENTS / "alipay_notify.public_key").read_text(encoding="ascii").strip()


def sample(name: str) -> Any:
    return json.loads(SAMPLES[name].read_text(encoding="utf-8"))


def function_of(name: str) -> str:
    """The file of the function that the sample is for."""
    return name.partition("-")[0]


def of_function(function: str) -> list[str]:
    return [name for name in SAMPLES if function_of(name) == function]


def messages(version: int) -> list[Path]:
    return sorted((EVENTS / "messages").glob(f"*-v{version}.json"))
