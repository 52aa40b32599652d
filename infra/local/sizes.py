"""How large the notify function is, and how long its import takes: printed, and judged by nobody.

    python -m infra.local.sizes

Of the very folders that `sam build` makes. The import is what a cold start adds to Lambda's own; on
Lambda it takes longer, by what its processors are slower.
"""

import statistics
import subprocess
import sys
from pathlib import Path

from infra.local import build
from infra.local.steps import SetupError

FUNCTION, HANDLER = "AlipayNotify", "alipay_notify"
LAYERS = ("LockstepLayer", "CryptoLayer")
RUNS = 9
UNZIPPED_BYTES_MAX = 250 * 1024 * 1024

TIMED = """
import sys, time
sys.path[:0] = sys.argv[2:]
began = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - began)
"""


def main() -> None:
    try:
        build.ensure()
    except SetupError as error:
        sys.exit(str(error))
    folders = {name: build.FOLDER / name for name in (FUNCTION, *LAYERS)}
    sizes = {name: size(folder) for name, folder in folders.items()}
    for name, taken in sizes.items():
        print(f"{name:14} {taken / 2**20:6.1f} MB")
    share = sum(sizes.values()) / UNZIPPED_BYTES_MAX
    print(
        f"{'together':14} {sum(sizes.values()) / 2**20:6.1f} MB, {share:.0%} of what Lambda takes"
    )
    paths = [folders[FUNCTION], *(folders[name] / "python" for name in LAYERS)]
    for module in (HANDLER, "lockstep.alipay.gateway", "lockstep.alipay.keys"):
        print(
            f"import {module:24} {import_seconds(module, paths) * 1000:4.0f} ms (median of {RUNS})"
        )


def size(folder: Path) -> int:
    """What its files hold, unzipped, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def import_seconds(module: str, paths: list[Path]) -> float:
    """The median over fresh interpreters that see nothing else."""
    arguments = [module, *map(str, paths)]
    command = [sys.executable, "-I", "-S", "-c", TIMED, *arguments]
    return statistics.median(
        float(subprocess.run(command, check=True, env={}, capture_output=True, text=True).stdout)
        for _ in range(RUNS)
    )


if __name__ == "__main__":
    main()
