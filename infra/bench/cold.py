"""What the import of a queue worker takes in our layer, beside the layer that SAM builds by
default."""

import json
import subprocess
import sys
from importlib.util import find_spec

MEASURED_BY = "infra.local.coldstart"


def cold_import_ratio() -> float | None:
    """The largest of the queue workers, ours over the default; None where nothing measures it."""
    if find_spec(MEASURED_BY) is None:
        return None
    done = subprocess.run(
        [sys.executable, "-m", MEASURED_BY, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    # What it has to build first it says before.
    workers = json.loads(done.stdout[done.stdout.index("{") :])["workers"]
    return max(float(worker["ratio"]) for worker in workers.values())
