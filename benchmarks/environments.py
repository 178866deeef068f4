"""Interpreters for peers that do not fit into this one: `python -m benchmarks.environments FOLDER [PEER ...]`.

Each peer gets `FOLDER/PEER`, with what its row of `PACKAGES` names. The last line printed has the options for
`python -m benchmarks`: `--python iree=FOLDER/iree/bin/python ...`.
"""

from __future__ import annotations

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
    subprocess.run([str(python), "-m", "pip", "install", "-q", *SHARED, *PACKAGES[peer]], check=True)
    return python


def options(folder: Path, peers: list[str]) -> str:
    """The options for `python -m benchmarks`, with all environments made. torch.compile runs where torch does."""
    made = {peer: make(folder, peer) for peer in peers}
    if "torch" in made:
        made["torch.compile"] = made["torch"]
    return " ".join(f"--python {peer}={path}" for peer, path in made.items())


if __name__ == "__main__":
    if len(sys.argv) < 2 or (unknown := set(sys.argv[2:]) - set(PACKAGES)):
        sys.exit(f"{__doc__}\npeers: {', '.join(PACKAGES)}")
    print(options(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(PACKAGES)))
