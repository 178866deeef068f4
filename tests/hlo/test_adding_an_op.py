"""The guide "Adding an operation" of docs/architecture/adding.md, for an op without attributes: how many files change?

The opcodes are closed, so the test follows the guide in a copy of the library. The new op is `twice`: x + x.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

EDITS: list[tuple[str, str, str]] = [
    ("hlo/opcode.py", '    TANH = "tanh"\n', '    TANH = "tanh"\n    TWICE = "twice"\n'),
    (
        "hlo/ops/elementwise.py",
        "    *_unary(NUMBERS, _O.NEGATE),\n",
        "    *_unary(NUMBERS, _O.NEGATE),\n    *_unary(NUMBERS, _O.TWICE),\n",
    ),
    (
        "hlo/evaluator/elementwise.py",
        "_arithmetic(Opcode.NEGATE, np.negative)\n",
        "_arithmetic(Opcode.NEGATE, np.negative)\n_arithmetic(Opcode.TWICE, lambda x: x + x)\n",
    ),
    (
        "autodiff/rules/elementwise.py",
        "    _O.EXP: lambda x, ans: ans,\n",
        "    _O.EXP: lambda x, ans: ans,\n    _O.TWICE: lambda x, ans: full_like(x, 2),\n",
    ),
    (
        "numba_backend/emit/elementwise.py",
        "@ELEMENT.register(Opcode.NEGATE)\n",
        """@ELEMENT.register(Opcode.TWICE)
def _twice(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    element = instruction.shape.element
    return rounded(element, call("add", a, a) if element.is_integral else Binary("+", a, a))


@ELEMENT.register(Opcode.NEGATE)
""",
    ),
]
"""File, its present text, its new text."""
MOST_FILES = 6
"""These, and the client's method, which follows from the declaration."""

PROGRAM = """
import numpy as np
import hloom
from hloom import hlo
from hloom.hlo import Opcode
from hloom.tracer.core import bind

assert hloom.__file__.startswith(FOLDER), hloom.__file__
x = np.array([[1.0, -2.5, 0.0], [4.0, 0.5, 3.0]], np.float32)

def f(x):
    return bind(Opcode.TWICE, (x,))

# outside of jit (the evaluator), compiled, differentiated: both modes, to second order
np.testing.assert_array_equal(f(hloom.numpy.asarray(x)), 2 * x)
np.testing.assert_array_equal(hloom.jit(f)(x), 2 * x)
np.testing.assert_array_equal(hloom.jit(f)(x.astype(np.int8)), 2 * x.astype(np.int8))
gradient = hloom.grad(lambda x: (f(x) * f(x)).sum())
np.testing.assert_allclose(gradient(x), 8 * x)
np.testing.assert_allclose(hloom.jit(gradient)(x), 8 * x)
np.testing.assert_allclose(hloom.jvp(lambda x: f(x) * x, (x,), (x,))[1], 4 * x * x)
np.testing.assert_allclose(hloom.grad(lambda x: gradient(x).sum())(x), np.full_like(x, 8))

# text, verifier, layouts, passes
module = hloom.make_hlo(f)(x)
text = module.to_text()
assert "twice(" in text, text
again = hlo.parse(text)
hlo.verify(again)
assert again.to_text() == text
np.testing.assert_array_equal(hlo.evaluate(again, x)[0], 2 * x)
other = hlo.parse('''HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}
ENTRY e { x = f32[2,3]{0,1} parameter(0)\\n ROOT y = f32[2,3]{0,1} twice(x) }''')
np.testing.assert_array_equal(hloom.run_hlo(other.to_text(), x)[0], 2 * x)
kernels = hloom.jit(f).lower(x).compile().as_text()
assert "twice" in kernels, kernels
print("done")
"""


def copied(root: Path, folder: Path) -> None:
    """The library, in the shape of an installed package."""
    shutil.copytree(root / "hloom", folder / "hloom", ignore=shutil.ignore_patterns("__pycache__"))


def test_an_op_without_attributes_touches_few_files(root: Path, tmp_path: Path) -> None:
    copied(root, tmp_path)
    assert len({file for file, _, _ in EDITS}) < MOST_FILES
    for file, old, new in EDITS:
        path = tmp_path / "hloom" / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} has changed: the walk must follow"
        path.write_text(text.replace(old, new))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "HLOOM_CACHE_DIR": "off"}
    program = PROGRAM.replace("FOLDER", repr(str(tmp_path)))
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["done"]


def test_the_document_names_the_files(root: Path) -> None:
    """Each file of the walk, by its name or with its family's place in it, and how many they are."""
    guides = (root / "docs" / "architecture" / "adding.md").read_text()
    walk = guides.partition("## Adding an operation")[2].partition("\n## ")[0]
    for file, _, _ in EDITS:
        assert file in walk or file.replace("elementwise", "<family>") in walk, file
    found = re.search(r"(\w+) files of the library", walk)
    assert found is not None and found.group(1).lower() == "five"
