"""What is deployed, from where it stands: template.yaml, database.yaml, the code's constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Final, Self

import yaml

from infra.load.errors import ModelError
from infra.local import parameters
from infra.local.paths import ROOT
from infra.local.steps import SetupError
from lockstep.db.transaction import WITHIN_SECONDS
from lockstep.messaging import consumer
from lockstep.messaging.contracts import QUEUE_OF
from lockstep.observability import time_left
from lockstep.upkeep.ask_due import PARALLEL_MAX

TEMPLATE: Final = ROOT / "template.yaml"
DATABASE: Final = ROOT / "infra" / "database.yaml"


class _Reference(str):
    """What !Ref names."""

    __slots__ = ()


class _Loader(yaml.SafeLoader):
    """Knows !Ref; every other tag of CloudFormation's is read as nothing."""


def _referred(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> _Reference | None:
    if suffix == "Ref" and isinstance(node, yaml.ScalarNode):
        return _Reference(loader.construct_scalar(node))
    return None


_Loader.add_multi_constructor("!", _referred)


@dataclass(frozen=True, slots=True)
class Worker:
    """How a queue's function is fed."""

    batch_size: int
    concurrency: int
    high_throughput: bool


@dataclass(frozen=True, slots=True)
class Deployment:
    memory_mb: int
    architecture: str
    timeout_seconds: int
    sweep_works_seconds: float
    """Of each minute."""
    database_instances: int
    http_concurrency_max: int
    """0: as many as the account lets."""
    http_functions: int
    workers: Mapping[str, Worker]
    """By the queue's name."""
    through_proxy: bool
    receives_max: int
    reserving_limit_seconds: int
    instance: str
    batch_max: int
    patience_seconds: float
    again_seconds: float
    message_seconds: float
    within_seconds: float
    conversations: int

    @classmethod
    def read(cls, overrides: Mapping[str, str], batch_max: int | None = None) -> Self:
        """With parameters of the template that are set otherwise than by default, and batches of
        another size than the code's."""
        try:
            values = parameters.defaults() | parameters.checked(overrides)
        except SetupError as fault:
            raise ModelError("BAD_OPTION", str(fault)) from fault
        template, database = _load(TEMPLATE), _load(DATABASE)["Parameters"]
        shared = template["Globals"]["Function"]
        functions = _of_type(template, "AWS::Serverless::Function")
        return cls(
            memory_mb=int(_value(shared["MemorySize"], values)),
            architecture=str(_value(shared["Architectures"][0], values)),
            timeout_seconds=int(_value(shared["Timeout"], values)),
            sweep_works_seconds=int(_value(functions["SweepExpired"]["Timeout"], values))
            - signature(time_left).parameters["reserve_seconds"].default,
            database_instances=int(database["Instances"]["Default"]),
            http_concurrency_max=int(values["HttpConcurrencyMax"] or 0),
            http_functions=sum(bool(_events(f, "HttpApi")) for f in functions.values()),
            workers=_workers(template, functions, values),
            through_proxy=values["DatabaseThroughProxy"] == "true",
            receives_max=int(values["ReceiveCountMax"] or 0),
            reserving_limit_seconds=int(values["ReservingLimitSeconds"] or 0),
            instance=str(database["InstanceClass"]["Default"]),
            **_constants(batch_max),
        )


def _constants(batch_max: int | None) -> dict[str, Any]:
    """Of the code; where it decides each order alone, the turns that it would have otherwise."""
    return {
        "batch_max": batch_max or int(_constant("lockstep.orders.hold", "BATCH_MAX", 1)),
        "patience_seconds": _constant("lockstep.orders.turn", "PATIENCE_SECONDS", 1),
        "again_seconds": _constant("lockstep.messaging.visibility", "SOON_SECONDS", 10),
        "message_seconds": float(consumer.MESSAGE_SECONDS),
        "within_seconds": WITHIN_SECONDS,
        "conversations": PARALLEL_MAX,
    }


def _constant(module: str, name: str, otherwise: float) -> float:
    try:
        return float(getattr(import_module(module), name, otherwise))
    except ModuleNotFoundError:
        return otherwise


def _workers(
    template: Mapping[str, Any], functions: Mapping[str, Any], values: Mapping[str, str | None]
) -> dict[str, Worker]:
    queues = _of_type(template, "AWS::SQS::Queue")
    workers = {}
    for command, queue in QUEUE_OF.items():
        [event] = _events(functions[command.__name__], "SQS")
        # What Lambda hands over where the template says nothing, and the most of a FIFO queue.
        batch_size = int(_value(event.get("BatchSize", 10), values))
        concurrency = int(_value(event["ScalingConfig"]["MaximumConcurrency"], values))
        settings = queues[f"{queue.title()}Queue"]
        high = settings.get("FifoThroughputLimit") == "perMessageGroupId"
        workers[queue] = Worker(batch_size, concurrency, high)
    return workers


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader


def _of_type(template: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        name: resource["Properties"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def _events(function: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    events = function.get("Events", {}).values()
    return [event["Properties"] for event in events if event["Type"] == kind]


def _value(written: Any, values: Mapping[str, str | None]) -> Any:
    return values[written] if isinstance(written, _Reference) else written
