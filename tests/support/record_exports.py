#!/usr/bin/env python3
"""Record functions that JAX has exported, and their results: needs JAX and the package flatbuffers.

    python tests/support/record_exports.py    # writes tests/data/jax_exports.npz
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

from support.export_cases import CASES, export_case

PATH = Path(__file__).resolve().parents[1] / "data" / "jax_exports.npz"


def main() -> None:
    found: dict[str, np.ndarray] = {"versions": np.array([jax.__version__, np.__version__])}  # type: ignore[type-arg]
    for name, case in CASES.items():
        made = export_case(case, jax, jnp, lax, export)
        found[f"{name}/file"] = np.frombuffer(bytes(made.serialize(vjp_order=case.order)), np.uint8)
        for k, leaf in enumerate(jax.tree.leaves(made.call(*case.arguments))):
            array = np.asarray(leaf)
            found[f"{name}/{k}"] = array if array.dtype != jnp.bfloat16 else array.astype(np.float32)
    np.savez_compressed(PATH, **found)
    print(PATH, PATH.stat().st_size)


if __name__ == "__main__":
    main()
