"""The command line: see the package."""

from __future__ import annotations

import argparse
import sys
import time

from .results import run
from .table import DOCUMENT, looked_up_again, report, write
from .walk import libraries


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.library_imports", description="What libraries import.")
    parser.add_argument("command", choices=["run", "report", "names"])
    parser.add_argument("libraries", nargs="*", help="distributions; by default all that require jax")
    parser.add_argument("--jax", action="store_true", help="import with JAX itself")
    parser.add_argument("--go-on", action="store_true", help="put a stand-in for each name that is missing")
    parser.add_argument("--write", action="store_true", help="write the table in docs/jax_programs.md")
    options = parser.parse_intermixed_args()
    if options.command == "names":
        before = DOCUMENT.read_text()
        after = looked_up_again(before)
        if options.write:
            DOCUMENT.write_text(after)
        elif after != before:
            print("other names are there now: add --write")
        return int(after != before and not options.write)
    found = libraries()
    if options.libraries:
        wanted = {name.lower() for name in options.libraries}
        found = {library: packages for library, packages in found.items() if library.split()[0].lower() in wanted}
        if len(found) != len(wanted):
            parser.error(f"of these, only {', '.join(found) or 'none'} is installed and requires jax")
    if options.command == "run":
        way = "jax" if options.jax else "go-on" if options.go_on else "hloom"
        for library, packages in found.items():
            start = time.perf_counter()
            outcomes = run(library, packages, way)
            fine = sum(not outcome["error"] for outcome in outcomes.values())
            print(f"{library}: {fine} of {len(outcomes)}, {time.perf_counter() - start:.0f} s", flush=True)
        return 0
    text = report(found)
    print(text)
    if options.write:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
