"""The resolver that the HTTP functions share, and their faults' way out."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from lockstep.api.problems import Problem, problem
from lockstep.errors import TryAgain
from lockstep.observability import count

# What the resolver matches in a parameter of an address, "/" between them, and what is escaped.
_MATCHED: Final = "/%-._~()'!*:@,;=+&$<> []{}|^"


class _Resolver(APIGatewayHttpResolver):
    """The API has matched the route; whatever stands in the address, its operation refuses it.

    Powertools' patterns match some characters only, and overlook a newline at the end.
    """

    def resolve(self, event: Any, context: Any) -> dict[str, Any]:
        path = quote(event["rawPath"], safe=_MATCHED, errors="surrogatepass")
        resolved: dict[str, Any] = super().resolve({**event, "rawPath": path}, context)
        return resolved


def new_app() -> APIGatewayHttpResolver:
    """A resolver that answers refusals and passing faults as problem documents."""
    app = _Resolver()

    @app.exception_handler(Problem)  # type: ignore[untyped-decorator]
    def refuse(refusal: Problem) -> Response[str]:
        count("Refused", refusal.code)
        return problem(refusal.code, **refusal.extra)

    @app.exception_handler(TryAgain)  # type: ignore[untyped-decorator]
    def try_again(_: TryAgain) -> Response[str]:
        return problem("TRY_AGAIN")

    @app.not_found
    def not_found(_: NotFoundError) -> Response[str]:
        return problem("ROUTE_NOT_FOUND")

    return app


def answer(
    status: int, document: Mapping[str, Any], *, retry_after_seconds: int | None = None
) -> Response[str]:
    """A JSON answer."""
    headers = {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)}
    return Response(status, "application/json", json.dumps(document), headers)
