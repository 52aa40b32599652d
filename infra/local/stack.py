"""The whole system on this machine: `up` and `down`.

    python -m infra.local.stack up|down

A home is a folder that holds everything of one stack: MySQL's data, keys, logs, and `stack.json`,
which tells every other tool where to find what. Two homes can be up at the same time.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from infra import migrate
from infra.local import alipay, build, cloud, deploy, mysql, parameters, seed, tokens
from infra.local.alipay_gateway import process as alipay_process
from infra.local.alipay_gateway.addresses import Addresses
from infra.local.paths import EVERY_HOME, LOCAL
from infra.local.processes import locked
from infra.local.steps import SetupError, step


def up(home: Path, overrides: Mapping[str, str], *, durable: bool = True) -> dict[str, Any]:
    """Start what is not running, deploy what has changed, and return what `stack.json` says.

    `overrides` are values for parameters of the template; those of the last time do not stay.
    """
    home.mkdir(parents=True, exist_ok=True)
    with locked(home, "stack"):
        database = _database(home, durable=durable)
        issuer = tokens.ensure(home)
        payee, channel = alipay.ensure(home), alipay_process.ensure(home)
        endpoint = cloud.ensure(home)
        given = {
            "Architecture": build.architecture(),
            "Revision": build.fingerprint(),
            **_database_parameters(endpoint, database),
            "TokenIssuer": issuer,
            "TokenAudience": tokens.AUDIENCE,
            **_alipay_parameters(endpoint, payee, channel),
            **overrides,
        }
        name = stack_name(home)
        deployed = deploy.ensure(home, endpoint, name, given)
        alipay_process.tell_merchant(channel, f"{deployed.api_url}/alipay/notify")
        return _write(
            home / "stack.json",
            {
                "api_url": deployed.api_url,
                "mysql": database,
                "aws_endpoint_url": endpoint,
                "region": cloud.REGION,
                "stack_name": name,
                "member_id_claim": given.get("MemberIdClaim", "sub"),
                "functions": deployed.functions,
                "queues": deployed.queues,
                "alipay": _alipay(payee, channel),
            },
        )


def down(home: Path) -> None:
    """End what `up` started; the data stays for the next time."""
    if not home.exists():
        return
    with locked(home, "stack"), step(f"Stopping what runs for {home.name}"):
        cloud.stop(home)
        tokens.stop(home)
        alipay_process.stop(home)
        mysql.stop(home)
        (home / "stack.json").unlink(missing_ok=True)


def stack_name(home: Path) -> str:
    """`lockstep`, or with the home's name where it is not the usual one."""
    return "lockstep" if home == LOCAL else f"lockstep-{home.name}"


def _database(home: Path, *, durable: bool) -> dict[str, Any]:
    """A server with the tables and a few SKUs; returns how the functions' account connects."""
    server = mysql.ensure(home, durable=durable)
    name = stack_name(home).replace("-", "_")
    password = _password(home / "database-password")
    with mysql.connect(server) as connection:
        seed.create_database(connection, name, password)
    account = replace(server, user=name, password=password)
    with step("Bringing the tables up to date"), mysql.connect(account, name) as connection:
        migrate.apply(connection)
        seed.seed_skus(connection)
    return {**asdict(account), "database": name}


def _database_parameters(endpoint: str, database: Mapping[str, Any]) -> dict[str, str]:
    account = {"username": database["user"], "password": database["password"]}
    return {
        "DatabaseHost": database["host"],
        "DatabasePort": str(database["port"]),
        "DatabaseName": database["database"],
        # A server of the user's own, or in a container, shows a certificate that nobody can check.
        "DatabaseTls": "verified" if database["ca"] else "off",
        "DatabaseTlsCa": database["ca"] or "",
        "DatabaseSecretArn": cloud.keep_secret(endpoint, "lockstep/database", account),
    }


def _alipay_parameters(endpoint: str, payee: alipay.Alipay, channel: Addresses) -> dict[str, str]:
    app = {"private_key": payee.app_key_file.read_text()}
    return {
        "AlipayAppId": payee.app_id,
        "AlipaySellerIds": payee.seller_id,
        "AlipayPublicKey": payee.public_key,
        "AlipaySecretArn": cloud.keep_secret(endpoint, "lockstep/alipay", app),
        "AlipayGatewayUrl": channel.gateway_url,
        # The API's own address is not known before it has been deployed.
        "AlipayNotifyUrl": channel.merchant_url,
    }


def _alipay(payee: alipay.Alipay, channel: Addresses) -> dict[str, Any]:
    return {
        "gateway_url": channel.gateway_url,
        "cashier_url": channel.cashier_url,
        "control_url": channel.control_url,
        "app_id": payee.app_id,
        "seller_id": payee.seller_id,
        "signing_key_file": str(payee.signing_key_file),
    }


def _password(file: Path) -> str:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24))
    return file.read_text()


def _write(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    file.touch(mode=0o600)
    file.write_text(json.dumps(content, indent=2) + "\n")
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description="Start or stop the whole system on this machine.")
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument("--all", action="store_true", help="down: all servers of its own")
    asked = parser.parse_args()
    try:
        if asked.action == "up":
            stack = up(LOCAL, parameters.from_make())
            print(f"Up: {stack['api_url']}\nEverything else: {LOCAL / 'stack.json'}")
        else:
            for home in EVERY_HOME if asked.all else [LOCAL]:
                down(home)
    except (SetupError, migrate.MigrationRefused) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
