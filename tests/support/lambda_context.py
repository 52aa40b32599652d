"""The context that Lambda hands to a function."""

from dataclasses import dataclass

from aws_lambda_powertools.utilities.typing import LambdaContext


@dataclass
class Context(LambdaContext):
    """``milliseconds`` are left; Powertools' own class says that none are."""

    milliseconds: int = 15_000

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        return self.milliseconds
