"""`python -m benchmarks NAME [--json]`, in a clone of the repository."""

from __future__ import annotations

import argparse
import json

from rich.console import Console

from benchmarks import BENCHMARKS
from regard.errors import RegardError


def main() -> None:
    """Run one benchmark and print its ratios. A wrong name ends with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed.")
    parser.add_argument("name", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args()
    try:
        found = BENCHMARKS[asked.name]()
    except RegardError as error:
        parser.error(" ".join(error.faults))
    if asked.json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        Console().print(found.table().rich())


if __name__ == "__main__":
    main()
