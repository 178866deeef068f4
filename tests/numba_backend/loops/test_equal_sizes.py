"""Equal sizes in the indices of one array have one name; numbers with other meanings or types keep theirs."""

from __future__ import annotations

from hloom.numba_backend.loops.equal_sizes import with_equal_sizes
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import LoopProgram
from hloom.numba_backend.native_loops.emit import _finished

import hloom
import hloom.numpy as jnp
from hloom import lax

TYPES = {"lo": "int64", "hi": "int64", "x": "int32*", "y": "int32*", "z": "int32*", "c": "int32"}
TYPES |= dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6"), "int64")
TEXT = """def k(lo, hi, x, y, z, c, n1, n2, n3, n4, n5, n6):
    for i in range(lo, hi):
        start = minimum(maximum(i, 0), n2 - 1)
        v = y[start * n1 + i]
        if n3 > i:
            y[i * n3 + int64(c)] = add(v, c)
        for j in range(n1, n5):
            other = minimum(j, n4 - 1)
            y[other * n5 + j] = x[i * n6 + j]
"""
SAME = """def k(lo, hi, x, y, z, c, n1, n2, n3, n4, n5, n6):
    for i in range(lo, hi):
        start = minimum(maximum(i, 0), n2 - 1)
        v = y[start * n1 + i]
        if n1 > i:
            y[i * n1 + int64(c)] = add(v, c)
        for j in range(n1, n1):
            other = minimum(j, n2 - 1)
            y[other * n1 + j] = x[i * n6 + j]
"""


def changed(text: str, sizes: dict[str, int]) -> str:
    program = read(text, TYPES, "k")
    return to_text(LoopProgram("k", program.parameters, with_equal_sizes(program.body, sizes)))


def test_equal_sizes() -> None:
    """Strides and limits apart, each array by itself; `c` is no int64."""
    sizes = dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6", "c"), 90)
    assert changed(TEXT, sizes) == SAME
    assert changed(TEXT, sizes | {"n5": 91}) == SAME.replace("range(n1, n1)", "range(n1, n5)").replace(
        "other * n1", "other * n5"
    )
    assert changed(TEXT, {f"n{k}": k for k in range(1, 7)}) == to_text(read(TEXT, TYPES, "k"))


def test_rows_and_columns_of_other_numbers_have_the_same_text() -> None:
    """Whether a matrix is square is not asked."""

    def f(t):  # type: ignore[no-untyped-def]
        def row(i, t):  # type: ignore[no-untyped-def]
            return lax.fori_loop(
                0, t.shape[1] - 1, lambda j, t: t.at[i, j].set(jnp.maximum(t[i, j], t[i, j + 1] + t[i + 1, j])), t
            )

        return lax.fori_loop(0, t.shape[0] - 1, row, t)

    _finished.clear()
    texts = set()
    for shape in ((90, 90), (80, 100), (100, 80)):
        kernels = hloom.jit(f).lower(jnp.zeros(shape, jnp.int32)).compile().kernels()
        (text,) = [str(text) for text in kernels.values() if "native_loop" in str(text)]
        texts.add(text[text.index("def ") :])
    assert len(texts) == 1
