"""Where things lie in a clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Everything made here, never committed. It is also the home of the stack that `make up` starts;
# the tests keep theirs in a folder of its own below it.
LOCAL = ROOT / ".local"
TEST_HOME = LOCAL / "test"

UV = LOCAL / "tools" / "bin" / "uv"
CLOUD_BIN = LOCAL / "cloud" / "bin"
POLICIES = LOCAL / "policies"
