"""How large functions and layers are, and how long an import takes: printed, judged by nobody.

    python -m infra.local.sizes

Of the very folders that `sam build` makes, with wheels for this machine's processor. The import is
what a cold start adds to Lambda's own; there it takes longer, by what its processors are slower.
"""

import io
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from infra.local import build, built, coldstart
from infra.local.steps import SetupError

RUNS = 9
UNZIPPED_BYTES_MAX = 250 * 1024 * 1024
# What the notify function loads on its first call, and nobody before.
LATER = ("lockstep.alipay.gateway", "lockstep.alipay.keys")


@dataclass(frozen=True)
class Size:
    """In bytes, as it lies on Lambda's disk and as it is sent there."""

    unzipped: int
    zipped: int

    def __add__(self, other: "Size") -> "Size":
        return Size(self.unzipped + other.unzipped, self.zipped + other.zipped)

    def __str__(self) -> str:
        return f"{_megabytes(self.unzipped)} {_megabytes(self.zipped)}"


def main() -> None:
    try:
        functions = built.functions()
        imports = {(each.handler, each.handler): (each.handler, each.paths()) for each in functions}
        [notify] = [each for each in functions if each.handler == "alipay_notify"]
        imports |= {(notify.handler, module): (module, notify.paths()) for module in LATER}
        seconds = coldstart.median_seconds(imports, RUNS)
    except SetupError as error:
        sys.exit(str(error))
    _print_layers(sorted({name for function in functions for name in function.layers}))
    print(f"\n{'function':16} {'alone':>17} {'with its layers':>21}  of 250 MB   import")
    for function in functions:
        print(_row(function), f"{seconds[function.handler, function.handler] * 1000:5.0f} ms")
    for module in LATER:
        taken = seconds[notify.handler, module] * 1000
        print(f"{f'in {notify.handler}, on its first call: {module}':67} {taken:5.0f} ms")
    print(f"Imports are medians of {RUNS}.")


def _print_layers(names: list[str]) -> None:
    print(f"{'layer':16} {'unzipped':>9} {'zipped':>9}")
    for name in names:
        print(f"{name:16} {size(build.FOLDER / name)}")


def _row(function: built.Function) -> str:
    own = size(function.folder)
    together = sum((size(build.FOLDER / name) for name in function.layers), start=own)
    share = f"{together.unzipped / UNZIPPED_BYTES_MAX:.0%}"
    return f"{function.handler:16} {own}   {together} {share:>10}"


def _megabytes(taken: int) -> str:
    return f"{taken / 2**20:6.2f} MB"


@cache
def size(folder: Path) -> Size:
    """What its files hold."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in files:
            archive.write(path, path.relative_to(folder))
    return Size(sum(path.stat().st_size for path in files), len(packed.getbuffer()))


if __name__ == "__main__":
    main()
