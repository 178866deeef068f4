"""Build the site: `python -m tools.website`, which `make docs` calls. A warning of Sphinx, such as a link that leads
nowhere, is an error. Nothing is fetched from the network."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import pages


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--output", type=Path, default=pages.ROOT / "out" / "docs", help="the folder of the site")
    options = parser.parse_args()
    from sphinx.cmd.build import build_main

    start = time.perf_counter()
    sources = options.output.with_name(options.output.name + "-sources")
    pages.write(sources)
    settings = ["-q", "-b", "html", "-W", "--keep-going", "-d", str(sources / ".doctrees")]
    code = build_main([*settings, "-c", str(Path(__file__).parent), str(sources), str(options.output)])
    if code == 0:
        index = options.output.resolve() / "index.html"
        print(f"{index.as_uri()}: {time.perf_counter() - start:.0f} s")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
