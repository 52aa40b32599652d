"""Say in plain words what is wrong with the settings of an Alipay app.

    make alipay-check [file=alipay.env]

The file holds NAME=value lines: the template's parameters (AlipayAppId, AlipaySellerIds,
AlipayPublicKey, AlipayGatewayUrl, AlipayNotifyUrl, AlipayReturnUrl) and the paths of what becomes
the secret, from where the file lies: PrivateKeyFile, and with certificates in place of
AlipayPublicKey also AppCertificateFile, AlipayCertificateFile and AlipayRootCertificateFile.
Without a file, the local stack is checked.

Each line says ok or wrong. At last the gateway is asked about an order that nobody made: that it
does not know it, in an answer that it signed, is the proof of all of them. 1 if something is wrong.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from infra import alipay_findings, alipay_probe
from infra.alipay_given import Finding, Given, read_file
from infra.local import alipay
from infra.local.alipay_gateway import process as alipay_process
from infra.local.paths import LOCAL


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Say what is wrong with an Alipay app's settings.")
    parser.add_argument("file", nargs="?", type=Path)
    file = parser.parse_args(arguments).file
    try:
        given = read_file(file) if file else local_stack()
    except (OSError, ValueError) as fault:
        sys.exit(f"The settings cannot be read: {fault}")
    is_wrong = False
    for finding in findings(given):
        is_wrong = is_wrong or not finding.is_ok
        sys.stdout.write(f"{'ok   ' if finding.is_ok else 'WRONG'}  {finding.text}\n")
    for name, value in alipay_findings.to_fill_in(given).items():
        sys.stdout.write(f"fill in  {name} = {value}\n")
    sys.exit(1 if is_wrong else 0)


def findings(given: Given) -> Iterator[Finding]:
    """One for each thing that was looked at; the gateway is asked only where that makes sense."""
    yield from alipay_findings.of_settings(given)
    if app := alipay_findings.app(given):
        yield from alipay_probe.of_gateway(app)
    else:
        yield Finding(False, "The gateway was not asked: without readable keys it cannot be.")


def local_stack() -> Given:
    channel = alipay_process.find(LOCAL)
    if channel is None:
        raise ValueError("start the local stack (make up), or name a file: file=alipay.env")
    app = alipay.ensure(LOCAL)
    values = {
        "AlipayAppId": app.app_id,
        "AlipaySellerIds": app.seller_id,
        "AlipayPublicKey": app.public_key,
        "AlipayGatewayUrl": channel.gateway_url,
        "PrivateKeyFile": str(app.app_key_file),
    }
    return Given(values, LOCAL)


if __name__ == "__main__":
    main()
