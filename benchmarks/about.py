"""The version of a peer and of its Python, and how many threads it has: `python -m benchmarks.about PEER`."""

from __future__ import annotations

import importlib
import platform
import sys
from importlib import metadata

DISTRIBUTIONS = {"iree": "iree-base-runtime"}
"""Of peers whose distribution has another name, and which do not say their version."""
THREADS = {"torch": "get_num_threads", "numba": "get_num_threads"}


def about(peer: str) -> str:
    """`peer`: its package, or a kind of it, as in `torch.compile`. ImportError if there is none."""
    package = peer.partition(".")[0].partition(" ")[0].partition("-")[0]
    module = importlib.import_module(package)
    version = getattr(module, "__version__", None) or metadata.version(DISTRIBUTIONS.get(package, package))
    text = f"{version} on Python {platform.python_version()}"
    if package in THREADS:
        text += f", {getattr(module, THREADS[package])()} threads"
    return text


if __name__ == "__main__":
    print(about(sys.argv[1]))
