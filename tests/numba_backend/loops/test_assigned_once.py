"""Which variables of a loop program need no memory: a table of texts, and what LLVM is given of them."""

from __future__ import annotations

import pytest
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.single_assignment import assigned_once

TYPES = ["int64", "int64", "float32*", "float32*", "int64"]
ALWAYS = {"lo", "hi", "x", "out", "n"}


def text(*lines: str) -> str:
    return "def k(lo, hi, x, out, n):\n" + "".join(f"    {line}\n" for line in lines)


TABLE = {
    "values": (["for i in range(lo, hi):", "    v = x[i]", "    out[i] = v + v"], {"i", "v"}),
    "a sum": (["s = float32(0)", "for i in range(lo, hi):", "    s = s + x[i]", "out[0] = s"], {"i"}),
    "in place": (["i = lo", "while i < hi:", "    out[i] = x[i]", "    i += 1"], set()),
    "two branches": (
        ["for i in range(lo, hi):", "    if i < n:", "        v = x[i]", "    else:", "        v = x[0]",
         "    out[i] = v"],
        {"i"},
    ),
    "in one branch": (
        ["for i in range(lo, hi):", "    if i < n:", "        v = x[i]", "        out[i] = v"], {"i", "v"}
    ),
    "after its branch": (["if lo < hi:", "    v = x[0]", "out[0] = v"], set()),
    "after its loop": (["for i in range(lo, hi):", "    out[i] = x[i]", "out[i] = x[0]"], set()),
    "two loops": (["for i in range(lo, hi):", "    out[i] = x[i]", "for i in range(n):", "    out[i] = x[i]"], set()),
    "a changed parameter": (["n = n + 1", "out[n] = x[n]"], set()),
    "a changed variable of a loop": (["for i in range(lo, hi):", "    i = i // 2", "    out[i] = x[i]"], set()),
    "a swap": (["a, b = x[0], x[1]", "a, b = b, a", "out[0] = a", "out[1] = b"], set()),
    "a local array": (["t = local_array(4, float32)", "t[0] = x[0]", "out[0] = t[0]"], {"t"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_which_variables_are_values(name: str) -> None:
    lines, values = TABLE[name]
    changed = {"n"} if name == "a changed parameter" else set()
    assert assigned_once(read(text(*lines), TYPES)) == (ALWAYS | values) - changed


def test_values_get_no_memory() -> None:
    parameters = tuple(Parameter(*p) for p in (("pointer", "f32"), ("pointer", "f32"), ("size", "s64")))
    sums = text("s = float32(0)", "for i in range(n):", "    s = s + x[i]", "out[0] = s")
    lines = to_llvm(KernelSource("k", sums, parameters), SCOPE, "one pass").splitlines()
    slots = [line.split("=")[0].strip() for line in lines if "alloca" in line]
    assert len(slots) == 2 and '%"s"' in slots  # and the loop's own counter
