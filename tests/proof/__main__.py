"""Runs the proof's command, with asserts that say what they found: pytest's own rewriting of them,
installed before anything of the proof is imported, here and in the processes that are spawned."""

import sys

from tests.proof import asserts

asserts.install()

if __name__ == "__main__":
    try:
        from tests.proof.command import INTERRUPTED, main
    except KeyboardInterrupt:
        sys.exit("Interrupted.")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # a second time, while the first one is seen to
        sys.exit(INTERRUPTED)
