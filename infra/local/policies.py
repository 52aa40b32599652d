"""Hold all three templates to checkov's policies: `make policies`.

template.yaml is checked as CloudFormation gets it, so what SAM adds is checked as well. What is not
followed stands in infra/checkov.yaml with its reason. Nothing is run again that has passed.
"""

import hashlib
import json
import shutil
import subprocess
import sys

from infra.local.paths import LOCAL, POLICIES, ROOT
from infra.local.steps import step
from infra.local.transform import processed

CONFIG = ROOT / "infra" / "checkov.yaml"
PLAIN = [ROOT / "infra" / "network.yaml", ROOT / "infra" / "database.yaml"]
FOLDER = LOCAL / "policies-checked"
PASSED = LOCAL / "policies-passed"


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "template.json").write_text(json.dumps(processed(), indent=1))
    for template in PLAIN:
        shutil.copy(template, FOLDER)
    digest = _digest()
    if PASSED.exists() and PASSED.read_text() == digest:
        return
    bootstrap = ROOT / "infra" / "local" / "bootstrap.py"
    subprocess.run([sys.executable, str(bootstrap), "policies"], check=True)
    command = [str(POLICIES / "bin" / "checkov"), "--config-file", str(CONFIG), "-d", str(FOLDER)]
    with step("Checking the templates against checkov's policies"):
        done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}")
    PASSED.write_text(digest)


def _digest() -> str:
    files = [CONFIG, ROOT / "requirements" / "policies.txt", *sorted(FOLDER.iterdir())]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


if __name__ == "__main__":
    main()
