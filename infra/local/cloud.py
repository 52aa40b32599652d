"""The local cloud: ministack, an AWS in one process, started for a home and found again later.

It keeps its state in memory: what was deployed is gone once it has been stopped. Functions run as
its child processes and inherit its environment, which is therefore made from what is named here
and nothing else.
"""

import json
import os
import shutil
from pathlib import Path

import boto3

from infra.local import processes
from infra.local.paths import CLOUD_BIN
from infra.local.steps import step

NAME = "ministack"
REGION = "us-east-1"


def ensure(home: Path) -> str:
    """Its endpoint URL, after starting it if need be."""
    running = processes.find(home, NAME)
    if running is None:
        with step("Starting the local cloud"):
            running = _start(home)
    return f"http://127.0.0.1:{running.port}"


def stop(home: Path) -> bool:
    return processes.stop(home, NAME)


def files(home: Path) -> Path:
    """What it keeps on disk, and what belongs to this run of it alone: emptied at each start."""
    return home / "cloud-files"


def session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)


def keep_secret(endpoint: str, name: str, value: dict[str, str]) -> str:
    """Put it into Secrets Manager, or replace it there; return its ARN."""
    secrets = session().client("secretsmanager", endpoint_url=endpoint)
    text = json.dumps(value)
    try:
        return secrets.create_secret(Name=name, SecretString=text)["ARN"]
    except secrets.exceptions.ResourceExistsException:
        return secrets.put_secret_value(SecretId=name, SecretString=text)["ARN"]


def client_environment(home: Path, endpoint: str) -> dict[str, str]:
    """For tools that talk to it; an AWS account this machine is set up for stays out of it."""
    return {
        "PATH": f"{CLOUD_BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(files(home)),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.5",
    }


def _start(home: Path) -> processes.Running:
    port = processes.free_port()
    work = files(home)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = {
        "PATH": f"{CLOUD_BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(work),
        "TMPDIR": str(work),
        "LANG": "C.UTF-8",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "S3_DATA_DIR": str(work / "s3"),
        "STATE_DIR": str(work / "state"),
        # A function that was not called for a while need not start again before a person's eyes.
        "LAMBDA_WARM_TTL_SECONDS": "3600",
    }
    running = processes.start(home, NAME, [CLOUD_BIN / "ministack"], port, environment)
    processes.wait_until(home, NAME, lambda: processes.answers(port), seconds=60)
    return running
