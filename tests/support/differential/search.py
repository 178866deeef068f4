"""Draws cases for as long as it is told, and prints what differs from JAX.

python tests/support/differential/search.py --minutes 5 [--seed 0] [--only numpy.fft] [--name sort] [--parts ...]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("HLOOM_CACHE_DIR", str(Path(__file__).resolve().parents[3] / "build" / "test-kernels"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.differential.checks import differences
from support.differential.kinds import RandomSource
from support.differential.libraries import Library
from support.differential.table import NAMESPACES, draw_case, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=list(NAMESPACES), help="a namespace")
    parser.add_argument("--name", action="append", help="a function")
    parser.add_argument("--parts", default="plain jit vmap grad modes")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--alone", action="store_true", help="without JAX")
    given = parser.parse_args()
    ours, theirs = Library("hloom"), None if given.alone else Library("jax")
    table = [r for r in rows(tuple(given.only or NAMESPACES)) if not given.name or r.name in given.name]
    end = time.monotonic() + 60 * given.minutes
    count = 0
    seen: dict[tuple[str, ...], int] = {}
    for turn in range(given.rounds):
        for k, row in enumerate(table):
            if time.monotonic() > end:
                print(f"{count} cases, {turn} rounds", flush=True)
                return
            source = RandomSource(given.seed * 1_000_003 + turn * 10_007 + k)
            try:
                case = draw_case(row, source, wide=source.integer(0, 6) == 0)
            except Exception as error:
                print(f"DRAW {row}: {type(error).__name__} {error}", flush=True)
                continue
            count += 1
            for text in differences(case, ours, theirs, given.parts):
                sort = (row.name, row.kinds, text.split(":")[0], text[:40])
                seen[sort] = seen.get(sort, 0) + 1
                if seen[sort] <= 2:
                    print(f"{case}\n    {text}", flush=True)
    print(f"{count} cases", flush=True)


if __name__ == "__main__":
    main()
