"""The context that Lambda hands to a function."""

from dataclasses import dataclass

from aws_lambda_powertools.utilities.typing import LambdaContext


@dataclass
class Context(LambdaContext):
    """``milliseconds`` are left; Powertools' own class says that none are. Each look takes some of
    them, so that a loop which goes on while there is time has an end."""

    milliseconds: int = 15_000
    request_id: str = "invocation-1"

    @property
    def aws_request_id(self) -> str:
        return self.request_id

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        left = self.milliseconds
        self.milliseconds -= 10
        return left
