"""django-oscar's stock allocation through its own code, in an environment of its own.

Oscar looks whether the stock is enough by its own policy, then allocates by an update without a
condition, both in one transaction: what its checkout does to a stock record, and nothing of the
order around it. Its run is the same crowd, in oscar's interpreter: `oscar_clients`.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from infra.bench.crowd import Outcome
from infra.bench.way import PLENTY, Verdict
from infra.local.paths import OSCAR, ROOT
from infra.local.steps import SetupError
from infra.measuring.ground import Ground


@dataclass(frozen=True)
class OscarAllocate:
    skus: int = 1
    stock: int = PLENTY

    name: ClassVar[str] = "django-oscar: check, then allocate"
    may_lose: ClassVar[bool] = True

    def prepare(self, ground: Ground) -> None:
        ground.execute(f"DROP DATABASE IF EXISTS {_of(ground)}", f"CREATE DATABASE {_of(ground)}")
        _run(ground, "prepare", asdict(self))

    def run(self, ground: Ground, clients: int, wait_ms: float, seconds: float) -> Outcome:
        told = {**asdict(self), "clients": clients, "wait_ms": wait_ms, "seconds": seconds}
        return Outcome(**_run(ground, "run", told))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        allocated, over = ground.row(
            "SELECT SUM(num_allocated), "
            "SUM(GREATEST(num_allocated - CAST(num_in_stock AS SIGNED), 0)) "
            f"FROM {_of(ground)}.partner_stockrecord"
        )
        lost = int(over)
        broken = () if int(allocated) == outcome.done else (f"{allocated} are allocated",)
        return Verdict(outcome.done, lost, broken)


def _of(ground: Ground) -> str:
    """Oscar's own database."""
    return f"{ground.schema}_oscar"


def ensure() -> None:
    """Its environment, made at the first call from requirements/oscar.txt."""
    bootstrap = ROOT / "infra" / "local" / "bootstrap.py"
    done = subprocess.run([sys.executable, str(bootstrap), "oscar"], check=False)
    if done.returncode != 0:
        raise SetupError("the environment of django-oscar could not be made")


def _run(ground: Ground, verb: str, told: dict[str, Any]) -> dict[str, Any]:
    python = str(OSCAR / "bin" / "python")
    environment = {**os.environ, "DATABASE_NAME": _of(ground), "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "infra.bench.oscar_clients", verb, json.dumps(told)]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SetupError(f"django-oscar failed:\n{done.stderr[-2000:]}")
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome
