"""Secrets Manager, asked when a secret is needed and not before."""

import json


def read(arn: str) -> dict[str, str]:
    """The secret's JSON object. Raises what boto3 raises, and ValueError where it is none."""
    import boto3  # noqa: PLC0415 - 200 ms that only a cold start with a secret pays
    from botocore.config import Config  # noqa: PLC0415

    patience = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 2})
    client = boto3.client("secretsmanager", config=patience)
    found = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
    if not isinstance(found, dict):
        raise ValueError("the secret is not a JSON object")  # noqa: TRY004 - of its content
    return found
