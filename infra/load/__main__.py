"""make model [name=value …], or python -m infra.load [name=value …]; options.py says which."""

import os
import sys
from collections.abc import Sequence

from infra.load import options, report
from infra.load.errors import ModelError
from infra.load.model import Model


def main(words: Sequence[str]) -> None:
    try:
        model = Model(options.read(words, os.environ))
    except ModelError as error:
        sys.exit(str(error))
    for line in report.lines(model, model.sale(), model.steady()):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
