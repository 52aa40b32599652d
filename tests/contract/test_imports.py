"""Each handler starts with what is deployed and nothing more: the layers that the template gives
it, installed from their requirement files, in an interpreter that sees no other package."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local.paths import LOCAL, ROOT, TEST_HOME, UV
from infra.local.processes import locked
from tests.support import template

FOLDERS = {
    "LockstepLayer": ROOT / "layers" / "lockstep",
    "CryptoLayer": ROOT / "layers" / "crypto",
    "MigrationsLayer": ROOT / "infra",
}
FUNCTIONS = sorted(path.stem for path in (ROOT / "functions").glob("*.py"))

START = """
import sys
sys.path[:0] = sys.argv[2:]
module = __import__(sys.argv[1])
assert callable(module.handler)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="session")
def layers() -> dict[str, Path]:
    """Each layer as its Makefile builds it, for the interpreter at hand; built once and kept."""
    with locked(LOCAL, "test-layers"):
        return {name: _built(name, folder) for name, folder in FOLDERS.items()}


def _built(name: str, folder: Path) -> Path:
    home = TEST_HOME / "layers" / name
    sources = [
        path for path in sorted(folder.rglob("*")) if path.suffix != ".pyc" and path.is_file()
    ]
    digest = hashlib.sha256(sys.version.encode())
    for path in sources:
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    stamp = home / "made-from"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(home, ignore_errors=True)
        uv = str(UV) if UV.exists() else shutil.which("uv")
        assert uv, "uv is neither where `make` puts it nor on the PATH"
        # The layers' makes are not children of ours, should `make test` have started this.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        subprocess.run(
            ["make", "-s", f"build-{name}", f"ARTIFACTS_DIR={home}", "PLATFORM=here", f"UV={uv}"],  # noqa: S607
            cwd=folder,
            env=kept,
            check=True,
        )
        stamp.write_text(digest.hexdigest())
    return home / "python"


def start(function: str, paths: list[Path]) -> set[str]:
    """Import the handler as Lambda does, with no variable set; the packages that came with it."""
    arguments = [function, str(ROOT / "functions"), *map(str, paths)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", START, *arguments],
        env={},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def layers_of(function: str, layers: dict[str, Path]) -> list[Path]:
    return [layers[name] for name in sorted(template.functions()[function].layers)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_handler_starts_with_its_layers_alone(layers, function):
    packages = start(function, layers_of(function, layers))
    assert "lockstep" in packages
    # The secret and the queue are asked for on first use: a cold start does not wait for boto3.
    assert "boto3" not in packages


def test_only_whoever_talks_to_alipay_carries_cryptography(layers):
    with_crypto = {
        f for f, declared in template.functions().items() if "CryptoLayer" in declared.layers
    }
    needing = {f for f in FUNCTIONS if "cryptography" in start(f, layers_of(f, layers))}
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


def test_the_gateway_itself_loads_no_cryptography_before_it_connects(layers, tmp_path):
    asking = "from lockstep.alipay import gateway, bill\nhandler = gateway.connect\n"
    (tmp_path / "asking.py").write_text(asking)
    assert "cryptography" not in start("asking", [tmp_path, layers["LockstepLayer"]])


def test_a_package_that_no_layer_has_is_missed(layers):
    with pytest.raises(AssertionError, match="No module named 'cryptography'"):
        start("alipay_notify", [layers["LockstepLayer"]])
    with pytest.raises(AssertionError, match="No module named"):
        start("create_order", [layers["CryptoLayer"]])


def test_a_layer_holds_only_what_its_requirements_name(layers):
    for name, folder in FOLDERS.items():
        file = folder / "requirements.txt"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        wanted = {
            each.replace("-", "_") for each in re.findall(r"^([\w-]+)(?:\[.*?\])?==", text, re.M)
        }
        infos = {path.name.partition("-")[0].lower() for path in layers[name].glob("*.dist-info")}
        assert infos == wanted
