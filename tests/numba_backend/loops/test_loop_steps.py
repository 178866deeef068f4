"""Steps of loop programs: a changed program computes what the text said, as Python runs both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.inward import CannotGoInward, Inward
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.registers import Registers, Unroll
from hloom.numba_backend.loops.statements import LoopProgram

SCOPE: dict[str, Any] = {
    "local_array": lambda count, dtype: np.zeros(count, dtype),
    "float64": float, "select": lambda c, a, b: a if c else b, "maximum": max, "minimum": min, "any_of": bool,
}  # fmt: skip
SCALARS = """
for l in range(4):
    total = 0.0
    for i in range(3):
        total = total + w[i * 4 + l]
    w[l] = total
"""
BRANCHES = """
for l in range(4):
    best = w[l]
    chosen = 0
    for i in range(1, 3):
        size = w[i * 4 + l]
        if size > best:
            best = size
            chosen = i
        elif size < 0.0:
            best = best + 1.0
        else:
            best = best + 2.0
    big = best > 5.0
    for i in range(3):
        if big and i > 0:
            w[i * 4 + l] = w[i * 4 + l] / 2.0
    w[l] = w[l] + best + chosen
"""
ROWS = """
for l in range(4):
    chosen = 1
    if w[8 + l] > w[4 + l]:
        chosen = 2
    for i in range(maximum(1, chosen), minimum(3, chosen + 1)):
        for j in range(2):
            kept = w[j * 4 + l]
            w[j * 4 + l] = w[i * 4 + l]
            w[i * 4 + l] = kept
    for i in range(maximum(0, chosen - 1), minimum(3, chosen + 1)):
        w[i * 4 + l] = w[i * 4 + l] + 1.0
"""
WHILE = """
for l in range(4):
    left = True
    turns = 0
    while left and turns < 9:
        turns = turns + 1
        going = w[l] < 6.0
        if going:
            w[l] = w[l] + 1.0
        left = any_of(going)
    w[4 + l] = w[4 + l] + w[l]
"""
TEXTS = {"scalars": SCALARS, "branches": BRANCHES, "rows": ROWS, "while": WHILE}
STEPS = {
    "inward": (Inward("l"),), "registers": (Unroll("l"), Inward("l"), Registers("l")),
}  # fmt: skip


def program_of(text: str) -> LoopProgram:
    lines = ["def f(w_in, w_out):", "    w = local_array(12, float64)"]
    lines += ["    for i in range(12):", "        w[i] = w_in[i]"]
    lines += ["    " + line for line in text.strip().splitlines()]
    lines += ["    for i in range(12):", "        w_out[i] = w[i]", ""]
    return read("\n".join(lines), ["float64*", "float64*"])


def result(program: LoopProgram, w: np.ndarray) -> np.ndarray:
    scope = dict(SCOPE)
    exec(to_text(program), scope)
    out = np.zeros(12)
    scope["f"](w, out)
    return out


def after(program: LoopProgram, *steps: Any) -> LoopProgram:
    block = program.body
    for step in steps:
        block = step.applied(block)
    return LoopProgram(program.name, program.parameters, block)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("text", TEXTS)
def test_iterations_advance_together(text: str, steps: str) -> None:
    if (text, steps) == ("while", "registers"):
        return  # a loop inside has no end that is in the text
    program = program_of(TEXTS[text])
    changed = after(program, *STEPS[steps])
    assert to_text(changed) != to_text(program)
    for seed in range(20):
        w = np.random.default_rng(seed).integers(-3, 9, 12).astype(float)
        if text == "while" and w[:4].max() < 6:
            w[0] = 7  # an iteration that is done before others
        np.testing.assert_array_equal(result(changed, w), result(program, w))


@pytest.mark.parametrize("whole", [False, True])
def test_rows_of_a_length_in_the_text(whole: bool) -> None:
    text = "for j in range(w_in[0] > 0.0, 3):\n    w[j] = w[j] * 2.0"
    program = program_of(text.replace("w_in[0] > 0.0", "1"))
    changed = after(program, Inward("j", widths=((3, 4),), whole=whole))
    w = np.arange(1.0, 13)
    found, expected = result(changed, w), result(program, w)
    start = 1 if whole else 0
    np.testing.assert_array_equal(np.delete(found, [*range(start), 3]), np.delete(expected, [*range(start), 3]))
    assert "range(4)" in to_text(changed)


def test_what_cannot_go_inward_says_why() -> None:
    for text, why in (
        ("for l in range(4):\n    while w[l] > 0.0:\n        w[l] = w[l] - 1.0", "While depends on l"),
        ("for l in range(4):\n    for i in range(l):\n        w[l] = w[i]", "l depends on l, and is no minimum"),
    ):
        with pytest.raises(CannotGoInward, match=why):
            after(program_of(text), Inward("l"))
