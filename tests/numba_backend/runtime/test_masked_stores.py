"""In-place updates of some elements store whole vectors, and give the same results."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.numba_backend.runtime import llvm_backend
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.masked_stores import without_masked_stores

import hloom
import hloom.numpy as jnp

LINES = """\
  %old = load <8 x float>, ptr %p, align 4
  %b.1 = load <8 x float>, ptr %q, align 4, !noalias !0
"""
NEW = "  store <8 x float> %new, ptr %p, align 4\n"


@pytest.mark.parametrize(("select", "is_marked"), [
    ("<8 x i1> %m, <8 x float> %old, <8 x float> %b.1", True),
    ("<8 x i1> %m, <8 x float> %b.1, <8 x float> %old, !prof !1", True),
    ("nnan ninf <8 x i1> %m, <8 x float> zeroinitializer, <8 x float> %old", True),
    ("<8 x i1> %m, <8 x float> <float 1.0, float 2.0>, <8 x float> %old", True),
    ("<8 x i1> %m, <8 x float> %old, <8 x float> splat (float 1.0)", True),
    ("<8 x i1> %m, <8 x float> %b.1, <8 x float> zeroinitializer", False),
])  # fmt: skip
def test_loads_that_are_stored_again_are_volatile(select: str, is_marked: bool) -> None:
    text = f"{LINES}  %new = select {select}\n{NEW}"
    marked = text.replace("%old = load ", "%old = load volatile ") if is_marked else text
    assert without_masked_stores(text) == marked
    assert without_masked_stores(text.replace("store <8 x float> %new", "store <8 x float> %b.1")) == (
        text.replace("store <8 x float> %new", "store <8 x float> %b.1")
    )


@pytest.mark.parametrize("element", ["f32", "f64", "s32", "s64"])
@pytest.mark.parametrize("chosen", ["x[i], c", "c, x[i]"])
def test_code_of_a_kernel_has_no_masked_stores(element: str, chosen: str) -> None:
    text = f"def update(lo, hi, x, m, c):\n    for i in range(lo, hi):\n        x[i] = select(m[i] != 0, {chosen})\n"
    parameters = (Parameter("pointer", element), Parameter("pointer", "u8"), Parameter("scalar", element))
    ir = to_llvm(KernelSource("update", text, parameters), SCOPE)
    with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
        llvm_backend.optimise(module, llvm_backend.widens_straight_lines(ir))
        with llvm_backend.for_code_generator(module, context) as final:
            assert "load volatile <" in str(final)
            code = llvm_backend.target_machine().emit_assembly(final)
    assert "maskmov" not in code and "{%k" not in "".join(line for line in code.splitlines() if line.endswith(")"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int16", "uint8"])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 33, 1000])
def test_results(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    x, mask = (9 * rng.normal(size=size)).astype(dtype), rng.random(size) < 0.5
    threes = lambda x: jnp.full_like(x, 3)  # noqa: E731
    with hloom.enable_x64():
        keep = hloom.jit(lambda x, mask: jnp.where(mask, x, threes(x)), donate_argnums=0)
        change = hloom.jit(lambda x, mask: jnp.where(mask, threes(x), x), donate_argnums=0)
        kept, changed = keep(jnp.asarray(x), mask), change(jnp.asarray(x), mask)
    np.testing.assert_array_equal(kept, np.where(mask, x, np.array(3, dtype)))
    np.testing.assert_array_equal(changed, np.where(mask, np.array(3, dtype), x))
