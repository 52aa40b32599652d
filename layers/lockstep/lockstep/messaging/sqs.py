"""The SQS client, made on first use: boto3 takes 200 ms that only a function which sends should
pay."""

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

# The member, or Alipay with its three seconds, waits for a send; the relay does not mind a failure.
TIMEOUT_SECONDS: Final = 1


@cache
def client() -> "SQSClient":
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client(
        "sqs",
        config=Config(
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"total_max_attempts": 1},
        ),
    )
