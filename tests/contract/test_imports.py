"""Each handler starts with what is deployed and nothing more: the layers that the template gives
it, installed from their requirement files, in an interpreter that sees no other package."""

import re
from pathlib import Path

import pytest

from tests.support import layers, template

START = """
import sys
sys.path[:0] = sys.argv[2:]
module = __import__(sys.argv[1])
assert callable(module.handler)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def packages_of(function: str, paths: list[Path] | None = None) -> set[str]:
    """Import the handler as Lambda does, with no variable set; the packages that came with it."""
    return set(layers.start(START, function, paths or layers.paths_of(function)).split())


@pytest.mark.parametrize("function", layers.FUNCTIONS)
def test_a_handler_starts_with_its_layers_alone(function):
    packages = packages_of(function)
    assert "lockstep" in packages
    # The secret and the queue are asked for on first use: a cold start does not wait for boto3.
    assert "boto3" not in packages


def test_only_whoever_talks_to_alipay_carries_cryptography():
    with_crypto = {
        f for f, declared in template.functions().items() if "CryptoLayer" in declared.layers
    }
    needing = {f for f in layers.FUNCTIONS if "cryptography" in packages_of(f)}
    # PyMySQL takes it wherever it lies, for one way to log in, so a layer too many is 60 ms lost.
    assert (
        with_crypto
        == needing
        == {
            "alipay_notify",
            "cancel_order",
            "refund_payment",
            "start_payment",
            "sweep_expired",
        }
    )


def test_the_gateway_itself_loads_no_cryptography_before_it_connects(tmp_path):
    asking = "from lockstep.alipay import gateway, bill\nhandler = gateway.connect\n"
    (tmp_path / "asking.py").write_text(asking)
    assert "cryptography" not in packages_of("asking", [tmp_path, layers.built()["LockstepLayer"]])


def test_a_package_that_no_layer_has_is_missed():
    functions, *_ = layers.paths_of("create_order")
    with pytest.raises(AssertionError, match="No module named 'cryptography'"):
        packages_of("alipay_notify", [functions, layers.built()["LockstepLayer"]])
    with pytest.raises(AssertionError, match="No module named"):
        packages_of("create_order", [functions, layers.built()["CryptoLayer"]])


def test_a_layer_holds_only_what_its_requirements_name():
    for name, folder in layers.FOLDERS.items():
        file = folder / "requirements.txt"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        wanted = {
            each.replace("-", "_") for each in re.findall(r"^([\w-]+)(?:\[.*?\])?==", text, re.M)
        }
        infos = {
            path.name.partition("-")[0].lower() for path in layers.built()[name].glob("*.dist-info")
        }
        assert infos == wanted
