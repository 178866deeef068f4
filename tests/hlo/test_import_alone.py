"""hloom.hlo runs with NumPy alone: reading, editing, optimising or evaluating HLO does not import a compiler."""

from __future__ import annotations

import subprocess
import sys

from hloom import hlo

PROGRAM = """
import sys
for name in ("numba", "llvmlite", "scipy", "optree", "opt_einsum", "tqdm", "jax"):
    sys.modules[name] = None  # importing it fails
import numpy as np
from hloom import hlo
x = hlo.make_parameter(0, hlo.Shape.parse("f32[3]"))
module = hlo.make_module("m", hlo.make_computation("main", hlo.make_instruction(hlo.Opcode.NEGATE, [x])))
module = hlo.parse(module.to_text())
hlo.verify(module)
print(*hlo.evaluate(module, np.arange(3, dtype=np.float32)))
for target in ("cpu", "tpu"):
    optimized, records = hlo.optimize(module, target)
    print(optimized.entry.root.opcode.value, len(records) > 10)
"""


def test_hlo_needs_numpy_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["[-0. -1. -2.]", "fusion True", "fusion True"], done.stderr


def test_public_names_exist() -> None:
    assert [name for name in hlo.__all__ if not hasattr(hlo, name)] == []
