"""What an account and its region allow, and what a database class is: quotas.json, with sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from infra.load import documents
from infra.load.errors import ModelError

FILE: Final = Path(__file__).with_name("quotas.json")
ERROR: Final = "BAD_QUOTAS"


@dataclass(frozen=True, slots=True)
class Instance:
    name: str
    cores: int
    connections: int


@dataclass(frozen=True, slots=True)
class Quotas:
    """Of one region. Requests a second are ``_rps``; of ``fifo_rps`` each kind of call has so many,
    and a batch of ten is one call."""

    region: str
    as_of: str
    fifo_rps: float
    fifo_rps_without_high_throughput: float
    fifo_batch: int
    in_flight: float
    api_rps: float
    api_burst: float
    lambda_concurrency: int
    lambda_rps_per_copy: float
    lambda_copies_burst: float
    lambda_copies_per_second: float
    worker_concurrency: int
    instances: tuple[Instance, ...]
    """Ascending by cores."""

    @classmethod
    def read(cls, region: str, raised: Mapping[str, float], path: Path = FILE) -> Self:
        """Those of ``region``, with those that are ``raised`` (or lowered) in their place."""
        document = documents.read(path, ERROR)
        if region not in document["regions"]:
            known = ", ".join(document["regions"])
            raise ModelError("BAD_OPTION", f"region is none of {known}: {region!r}")

        def of(name: str) -> float:
            return documents.number(document, name, ERROR)

        api_rps = raised.get("api_rps", _of_region(document, "api_rps", region))
        burst = api_rps * of("api_burst_share")
        return cls(
            region=region,
            as_of=str(document["as_of"]),
            fifo_rps=raised.get("fifo_rps", _of_region(document, "fifo_rps", region)),
            api_rps=api_rps,
            api_burst=raised.get("api_burst", burst),
            lambda_concurrency=int(raised.get("lambda_concurrency", of("lambda_concurrency"))),
            lambda_rps_per_copy=of("lambda_rps_per_copy"),
            lambda_copies_burst=of("lambda_copies_burst"),
            lambda_copies_per_second=of("lambda_copies_per_second"),
            worker_concurrency=int(of("worker_concurrency")),
            fifo_rps_without_high_throughput=of("fifo_rps_without_high_throughput"),
            fifo_batch=int(of("fifo_batch")),
            in_flight=of("in_flight"),
            instances=_instances(document["instances"]),
        )

    def instance(self, name: str) -> Instance:
        for instance in self.instances:
            if instance.name == name:
                return instance
        known = ", ".join(instance.name for instance in self.instances)
        raise ModelError("BAD_OPTION", f"instance is one of {known}, not {name!r}")

    def queue_rps(self, *, high_throughput: bool) -> float:
        return self.fifo_rps if high_throughput else self.fifo_rps_without_high_throughput


RAISED: Final = ("api_rps", "api_burst", "lambda_concurrency", "fifo_rps")


def _of_region(document: Mapping[str, Any], name: str, region: str) -> float:
    table = document[name]
    return documents.number(table, region if region in table else "elsewhere", ERROR, least=1)


def _instances(table: Mapping[str, Any]) -> tuple[Instance, ...]:
    instances = (
        Instance(
            name,
            int(documents.number(entry, "cores", ERROR, least=1)),
            int(documents.number(entry, "connections", ERROR, least=1)),
        )
        for name, entry in table.items()
    )
    return tuple(sorted(instances, key=lambda instance: instance.cores))
