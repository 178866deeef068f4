"""hloom.hlo runs without Numba: a person who only reads, edits or evaluates HLO does not pay for a compiler."""

from __future__ import annotations

import subprocess
import sys

from hloom import hlo

PROGRAM = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # importing them fails
import numpy as np
from hloom import hlo
x = hlo.make_parameter(0, hlo.Shape.parse("f32[3]"))
module = hlo.make_module("m", hlo.make_computation("main", hlo.make_instruction(hlo.Opcode.NEGATE, [x])))
module = hlo.parse(module.to_text())
hlo.verify(module)
print(*hlo.evaluate(module, np.arange(3, dtype=np.float32)))
"""


def test_hlo_needs_no_numba() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[-0. -1. -2.]", done.stderr


def test_public_names_exist() -> None:
    assert [name for name in hlo.__all__ if not hasattr(hlo, name)] == []
