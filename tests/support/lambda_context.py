"""The context that Lambda hands to a function."""

from infra.local.lambda_events import Context

__all__ = ["Context"]
