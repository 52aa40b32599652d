"""What it costs, by service, with the prices of a file that anybody can change."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from infra.load import documents
from infra.load.errors import ModelError

FILE: Final = Path(__file__).with_name("prices.json")
ERROR: Final = "BAD_PRICES"
MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What is billed."""

    api_requests: float
    invocations: float
    gb_seconds: float
    sqs_requests: float
    log_gb: float
    ios: float
    order_gb: float
    core_hours: float
    """Of all instances."""
    proxy_core_hours: float


@dataclass(frozen=True, slots=True)
class Prices:
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path | None) -> Self:
        document = documents.read(path or FILE, ERROR)
        for name in ("region", "as_of", "currency", "source"):
            if not isinstance(document.get(name), str):
                raise ModelError(ERROR, f"{name} is a text, not {document.get(name)!r}")
        return cls(document)

    def of(self, usage: Usage, architecture: str) -> dict[str, float]:
        """The cost of each service, in the file's currency."""
        gb_second = documents.number(self._table("lambda_gb_second"), architecture, ERROR)
        requests = usage.invocations / MILLION * self._price("lambda_million")
        storage = usage.order_gb * self._price("storage_gb_month")
        return {
            "API Gateway": usage.api_requests / MILLION * self._price("api_million"),
            "Lambda": requests + usage.gb_seconds * gb_second,
            "SQS": usage.sqs_requests / MILLION * self._price("sqs_fifo_million"),
            "CloudWatch Logs": usage.log_gb * self._price("log_gb"),
            "Aurora instances": usage.core_hours * self._price("instance_core_hour"),
            "Aurora I/O": usage.ios / MILLION * self._price("io_million"),
            "Aurora storage, a month": storage,
            "RDS Proxy": usage.proxy_core_hours * self._price("proxy_core_hour"),
        }

    def says(self) -> str:
        d = self.document
        return f"{d['currency']}, {d['region']}, {d['as_of']}: {d['source']}"

    @property
    def currency(self) -> str:
        return str(self.document["currency"])

    @property
    def region(self) -> str:
        return str(self.document["region"])

    def _price(self, name: str) -> float:
        return documents.number(self.document, name, ERROR)

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self.document.get(name)
        if not isinstance(table, dict):
            raise ModelError(ERROR, f"{name} is a table, not {table!r}")
        return table
