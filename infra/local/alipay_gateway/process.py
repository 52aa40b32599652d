"""The local Alipay of a home, as a process of its own.

    python -m infra.local.alipay_gateway.process --home .local/test --port 0 --time-factor 1/60

Its books lie in `<home>/alipay/books.jsonl` and outlive it. `ensure` starts it and finds it again;
it keeps its port over stops where it can, so that a pay link from before is still good.
"""

import argparse
import json
import os
import signal
import socket
import sys
import threading
import urllib.request
from fractions import Fraction
from pathlib import Path

from infra.local import alipay, processes
from infra.local.alipay_gateway.addresses import Addresses
from infra.local.alipay_gateway.envelope import App
from infra.local.alipay_gateway.journal import Journal
from infra.local.alipay_gateway.server import HOST, Server
from infra.local.alipay_gateway.service import Service
from infra.local.alipay_sign import load_key
from infra.local.paths import ROOT
from infra.local.steps import step

NAME = "alipay"
# An hour of Alipay's schedule takes a minute here.
TIME_FACTOR = "1/60"


def ensure(home: Path) -> Addresses:
    """Its addresses, after starting it if need be."""
    found = find(home)
    if found is not None:
        return found
    with step("Starting the local Alipay"):
        return _at(_start(home))


def find(home: Path) -> Addresses | None:
    """Its addresses, if it runs."""
    running = processes.find(home, NAME)
    return None if running is None else _at(running)


def _at(running: processes.Running) -> Addresses:
    return Addresses(base_url=f"http://{HOST}:{running.port}")


def stop(home: Path) -> bool:
    return processes.stop(home, NAME)


def tell_merchant(at: Addresses, notify_url: str) -> None:
    """Say where the seller takes its notices from now on."""
    body = json.dumps({"notify_url": notify_url}).encode()
    request = urllib.request.Request(f"{at.control_url}/merchant", body)  # noqa: S310 - loopback
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310


def _start(home: Path) -> processes.Running:
    port = _last_port(home) or processes.free_port()
    _port_file(home).parent.mkdir(parents=True, exist_ok=True)
    _port_file(home).write_text(str(port))
    module = "infra.local.alipay_gateway.process"
    command = [sys.executable, "-m", module, "--home", str(home), "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = processes.start(
        home, NAME, [*command, "--time-factor", TIME_FACTOR], port, environment
    )
    processes.wait_until(home, NAME, lambda: processes.answers(port), seconds=20)
    return running


def _last_port(home: Path) -> int | None:
    """The port of the last time, unless somebody else has it by now."""
    try:
        port = int(_port_file(home).read_text())
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except (OSError, ValueError):
        return None
    return port


def _port_file(home: Path) -> Path:
    return home / "alipay" / "port"


def serve(home: Path, port: int, factor: Fraction) -> None:
    """Serve until somebody ends it."""
    payee = alipay.ensure(home)
    server = Server(port)
    service = Service(
        app=App(payee.app_id, load_key(payee.app_key_file).public_key()),
        seller_id=payee.seller_id,
        key=load_key(payee.signing_key_file),
        base_url=server.base_url,
        journal=Journal(home / "alipay" / "books.jsonl"),
        factor=factor,
    )
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    server.start(service)
    over.wait()
    server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the local Alipay of a home.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--time-factor", type=Fraction, default=Fraction(1), help="such as 1/60")
    asked = parser.parse_args()
    serve(asked.home, asked.port, asked.time_factor)


if __name__ == "__main__":
    main()
