"""Where things lie in a clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Everything made here, never committed. It is also the home of the stack that `make up` starts;
# the tests keep theirs in a folder of its own below it.
LOCAL = ROOT / ".local"
TEST_HOME = LOCAL / "test"

# The proof, the experiments and the benchmarks have servers of their own, and end them.
PROOF_HOME = LOCAL / "proof"
PROOF_HOME_DURABLE = LOCAL / "proof-durable"
EXPERIMENTS_HOME = LOCAL / "experiments"
BENCH_HOME = LOCAL / "bench"
BENCH_GROWTH_HOME = LOCAL / "bench-growth"
# A stack of its own, with what `make up` starts.
BENCH_STACK_HOME = LOCAL / "bench-stack"
EVERY_HOME = (
    LOCAL,
    TEST_HOME,
    PROOF_HOME,
    PROOF_HOME_DURABLE,
    EXPERIMENTS_HOME,
    BENCH_HOME,
    BENCH_GROWTH_HOME,
    BENCH_STACK_HOME,
)

UV = LOCAL / "tools" / "bin" / "uv"
CLOUD_BIN = LOCAL / "cloud" / "bin"
POLICIES = LOCAL / "policies"
OSCAR = LOCAL / "oscar"
