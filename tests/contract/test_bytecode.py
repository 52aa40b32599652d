"""The layers' bytecode is what Lambda runs.

SAM packs a layer, which dates every file 1980, and Lambda unpacks it where nothing can be written.
The same is done here, by SAM's own packer; then what Python compiles on its way is written down.
"""

import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra.local.paths import CLOUD_BIN, ROOT
from tests.support import layers

PACK = """
import shutil, sys
from samcli.lib.package.utils import make_zip_with_lambda_permissions, zip_folder
with zip_folder(sys.argv[1], zip_method=make_zip_with_lambda_permissions) as (packed, _):
    shutil.copy(packed, sys.argv[2])
"""
COMPILED = """
import sys
from importlib.machinery import SourceFileLoader
compiling = SourceFileLoader.source_to_code
def compiled(self, data, path, *, _optimize=-1):
    print(path)
    return compiling(self, data, path, _optimize=_optimize)
SourceFileLoader.source_to_code = compiled
sys.path[:0] = sys.argv[2:]
__import__(sys.argv[1])
"""
# Of a .pyc's flags: it is known by a hash of its source, and the hash is never looked at.
UNCHECKED_HASH = 0b01


def unpacked(folder: Path, there: Path) -> Path:
    """``folder`` as it lies on Lambda's disk after ``sam deploy``."""
    packed = there / f"{folder.name}.zip"
    command = [str(CLOUD_BIN / "python"), "-c", PACK, str(folder), str(packed)]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"], "HOME": str(there)})
    home = there / folder.name
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(home)
        for entry in archive.infolist():
            assert entry.date_time[0] == 1980
            os.utime(home / entry.filename, (315_532_800, 315_532_800))
    return home


def compiled_by(module: str, paths: list[Path]) -> list[str]:
    return layers.start(COMPILED, module, paths).split()


@pytest.fixture(scope="module")
def opt(tmp_path_factory):
    """Every layer as it lies below /opt."""
    there = tmp_path_factory.mktemp("opt")
    for name in layers.FOLDERS:
        unpacked(layers.built()[name].parent, there)
    return there


@pytest.mark.parametrize("function", ["reserve_stock", "refund_payment", "create_order", "migrate"])
def test_only_the_handler_itself_is_compiled_when_a_function_starts(opt, tmp_path, function):
    handler = tmp_path / f"{function}.py"
    handler.write_bytes((ROOT / "functions" / handler.name).read_bytes())
    names = [path.parent.name for path in layers.paths_of(function)[1:]]
    paths = [tmp_path, *(opt / name / "python" for name in names)]
    assert compiled_by(function, paths) == [str(handler)]


@pytest.mark.parametrize("name", layers.FOLDERS)
def test_every_module_has_bytecode_that_is_never_checked(opt, name):
    sources = list((opt / name / "python").rglob("*.py"))
    assert sources
    for source in sources:
        cached = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        (flags,) = struct.unpack_from("<I", cached.read_bytes(), 4)
        assert flags == UNCHECKED_HASH


def test_a_traceback_names_the_place_where_lambda_has_the_file(opt):
    cached = next((opt / "LockstepLayer/python/lockstep/__pycache__").glob("settings.*.pyc"))
    assert b"/opt/python/lockstep/settings.py" in cached.read_bytes()


@pytest.mark.parametrize(
    ("mode", "is_used"), [("timestamp", False), ("unchecked-hash", True), ("checked-hash", True)]
)
def test_bytecode_known_by_its_date_does_not_survive_the_packing(tmp_path, mode, is_used):
    folder = tmp_path / "layer"
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "dated.py").write_text("handler = print\n")
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", mode, str(folder)]
    subprocess.run(command, check=True)
    (tmp_path / "opt").mkdir()
    home = unpacked(folder, tmp_path / "opt")
    source = home / "python" / "dated.py"
    assert compiled_by("dated", [home / "python"]) == ([] if is_used else [str(source)])
