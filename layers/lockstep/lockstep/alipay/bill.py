"""The download of a bill: apart from the gateway's calls, since what comes is a file.

Nobody signs a bill, and its address may be a plain http one: what it says is a reason to ask the
gateway, not to act.
"""

import io
import time
import zipfile
from typing import Final
from urllib.parse import urlsplit

from lockstep.alipay.answers import Done, Unknown
from lockstep.alipay.transport import NoAnswer, Seconds, exchange

ZIP_BYTES_MAX: Final = 32 * 1024 * 1024
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def fetch(url: str, deadline: Seconds) -> Done[bytes] | Unknown:
    """The file at ``url``, a zip and nothing else, by https if the host can be reached by it,
    before time.monotonic() is at ``deadline``."""
    why = "no address"
    for address in _addresses(url):
        try:
            received = exchange(
                address, None, timeout_seconds=deadline - time.monotonic(), bytes_max=ZIP_BYTES_MAX
            )
        except NoAnswer as fault:
            why = str(fault)
            continue
        if _is_zip(received.body):
            return Done(received.body)
        why = "not a zip"
    return Unknown(f"bill: {why}")


def _is_zip(body: bytes) -> bool:
    try:
        return zipfile.is_zipfile(io.BytesIO(body))
    except (zipfile.BadZipFile, ValueError):  # it says that it spans disks, or begins before itself
        return False


def _addresses(url: str) -> list[str]:
    """Alipay says http where the host speaks https as well."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # half an IPv6 address, a port beyond all ports
        return []
    if parts.scheme != "http" or parts.hostname in _THIS_MACHINE or port is not None:
        return [url]
    return [parts._replace(scheme="https").geturl(), url]
