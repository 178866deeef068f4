"""Interpreters for peers that do not fit into this one: `python -m benchmarks.environments FOLDER [PEER ...]`.

Each peer gets `FOLDER/PEER`, with what its row of `PACKAGES` names. The last line printed has the options for
`python -m benchmarks`: `--python iree=FOLDER/iree/bin/python ...`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SHARED = ("numpy", "ml_dtypes", "numba", "scipy")
"""What the modules of the cases import."""
PACKAGES: dict[str, tuple[str, ...]] = {
    "iree": ("iree-base-compiler>=3.13", "iree-base-runtime>=3.13", "jax[cpu]>=0.10.2"),
    "mlx": ("mlx[cpu]>=0.32",),
    "pytensor": ("pytensor>=3.0",),
    "pythran": ("pythran>=0.19", "scipy-openblas64"),
    "dace": ("dace>=1.0", "networkx<3.6"),  # from 3.6 on, `immediate_dominators` lacks the start, which DaCe looks up
    "torch": ("torch>=2.14",),
}


def make(folder: Path, peer: str) -> Path:
    """The peer's interpreter, made if it is not there. Raises CalledProcessError if a package cannot be installed."""
    python = folder / peer / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / peer)], check=True)
    wheels = "--only-binary=" + ",".join(SHARED)  # no old version from sources where a peer takes old NumPy only
    subprocess.run([str(python), "-m", "pip", "install", "-q", wheels, *SHARED, *PACKAGES[peer]], check=True)
    return python


def options(folder: Path, peers: list[str]) -> str:
    """The options for `python -m benchmarks`, with all environments made. torch.compile runs where torch does."""
    made = {peer: make(folder, peer) for peer in peers}
    if "torch" in made:
        made["torch.compile"] = made["torch"]
    return " ".join(f"--python {peer}={path}" for peer, path in made.items())


DESCRIPTION = "Make an interpreter for each peer, and print the options of benchmarks that name them."

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.environments", description=DESCRIPTION)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("peers", metavar="PEER", nargs="*", help=f"{', '.join(PACKAGES)}; all if none is named")
    arguments = parser.parse_args()
    if unknown := [peer for peer in arguments.peers if peer not in PACKAGES]:
        parser.error(f"no peer is called {', '.join(unknown)}; there are {', '.join(PACKAGES)}")
    print(options(arguments.folder.expanduser().resolve(), arguments.peers or list(PACKAGES)))
