"""`python -m hloom.backend_check NAME`."""

from __future__ import annotations

import argparse
import sys
import time

from ..hlo.errors import UnsupportedError
from .checking import PARTS, check_backend
from .report import Outcome


def main() -> int:
    """Check one backend; the exit code: 0 if nothing failed, 1 if something did, 2 for a wrong command."""
    parser = argparse.ArgumentParser(prog="python -m hloom.backend_check", description="Check a backend of hloom.")
    parser.add_argument("name", help="of a backend that is registered or brought by an installed package")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of the op table, every N-th case")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("-k", default="", metavar="TEXT", help="only checks with this text in their names")
    options = parser.parse_args()
    if options.every < 1:
        parser.error("--every is at least 1")
    started = time.perf_counter()

    def progress(outcome: Outcome) -> None:
        if outcome.state == "failed":
            print(f"failed: {outcome.part} {outcome.name}", file=sys.stderr, flush=True)

    try:
        report = check_backend(
            options.name,
            parts=options.part or PARTS,
            every=options.every,
            only=lambda name: options.k in name,
            report=progress,
        )
    except UnsupportedError as error:
        parser.error(str(error))
    print(report)
    print(f"{len(report.outcomes)} checks in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
