"""Matrix products without a BLAS, as loop programs: for programs that leave this process.

Columns of the result are taken in panels of a few vector registers. A block of a panel's part of B is copied to the
kernel's own memory, where its rows are neighbours; then each tile of six rows of A runs along it, with its sums in
registers. A panel is written once for each block::

    for item in range(lo, hi):                       batch x panels
        for k0 in range(0, k, 256):
            panel[...] = B[k0 : k0 + 256, panel's columns]
            for i in range(0, m, 6):
                row0[...], ..., row5[...] = 0
                for p in range(256):
                    row0[j] += A[i, k0 + p] * panel[p, j]
                    ...
                C[i : i + 6, panel's columns] = or += row0, ..., row5

Goto, van de Geijn: Anatomy of high-performance matrix multiplication, TOMS 34 (2008), describes the scheme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.errors import UnsupportedError
from ..loops.reader import read
from ..loops.typing import SHORT, is_float, pointer_to
from ..runtime.blas import Gemm
from ..runtime.kernel import ELEMENT_BYTES, KernelSource, Parameter
from ..runtime.program import Argument, ProgramBuilder, size

_ROWS = 6
"""Rows of a tile: six rows of two registers, two for a row of the panel and one for a factor fill sixteen registers."""
_REGISTERS, _REGISTER_BYTES = 2, 32
_DEPTH = 256
"""Rows of a panel's block: with two registers a row it takes 16 kB, half of a first-level cache."""
_FEW_ROWS = 3
"""A product with at most so many rows reads B once, where it lies."""


def add_product(builder: ProgramBuilder, gemm: Gemm, a: Argument, b: Argument, c: Argument) -> None:
    """Add the row that computes what a BLAS would, by a kernel. UnsupportedError unless alpha is 1 and beta 0 or 1."""
    if gemm.alpha != 1 or gemm.beta not in (0, 1):
        raise UnsupportedError(f"a product with factors {gemm.alpha} and {gemm.beta} is not compiled ahead of time")
    turned_a, turned_b = gemm.transpose_a != "N", gemm.transpose_b != "N"
    strides = [*((1, gemm.lda) if turned_a else (gemm.lda, 1)), *((1, gemm.ldb) if turned_b else (gemm.ldb, 1))]
    kind = SHORT[gemm.dtype]
    is_blocked = is_float(kind) and gemm.m > _FEW_ROWS and gemm.n > 1
    width = _REGISTERS * _REGISTER_BYTES // ELEMENT_BYTES[gemm.dtype]
    along = gemm.n != 1 and not turned_b
    if is_blocked:
        name, local, body = "product", _local_arrays(kind, width), _blocked(gemm, kind, width)
    else:
        name = "product_of_vectors"
        local, body = _dots(gemm, kind) if _has_dots(gemm, kind) else ([], _plain(gemm, kind, along))
    text = _definition(name, local, body, len(gemm.batch))
    pieces = -(-gemm.n // width) if is_blocked else 1
    values = [gemm.m, gemm.n, gemm.k, *strides, gemm.ldc, pieces]
    values += [value for d in gemm.batch for value in (d.count, d.a_stride, d.b_stride, d.c_stride)]
    parameters = (*[Parameter("pointer", gemm.dtype)] * 3, *[Parameter("size", "s64")] * len(values))
    types = ["int64", "int64", *[pointer_to(kind)] * 3, *["int64"] * len(values)]
    kernel = KernelSource(name, text, parameters, program=read(text, types, name))
    each = max(1, 2 * gemm.m * gemm.n * gemm.k // pieces)
    grain = max(1, -(-_GRAIN_FLOP // each))
    items = math.prod(d.count for d in gemm.batch)
    builder.kernel(kernel, (a, b, c, *map(size, values)), items * pieces, grain)


_GRAIN_FLOP = 1 << 20


def _definition(name: str, local: Sequence[str], body: Sequence[str], dimensions: int) -> str:
    """The definition: a loop over the items of the batch and the pieces of each, with the body inside."""
    names = [f"{part}{d}" for d in range(dimensions) for part in ("count", "step_a", "step_b", "step_c")]
    parameters = ["a", "b", "c", "m", "n", "k", "row_a", "column_a", "row_b", "column_b", "ldc", "pieces", *names]
    lines = [f"def {name}(lo, hi, {', '.join(parameters)}):", *["    " + line for line in local]]
    lines += ["    for item in range(lo, hi):", "        rest = item // pieces", "        piece = item - rest * pieces"]
    if not dimensions:
        body = [line.replace("start_a + ", "").replace("start_b + ", "").replace("start_c + ", "") for line in body]
    else:
        lines += ["        start_a = 0", "        start_b = 0", "        start_c = 0"]
    for d in reversed(range(dimensions)):
        lines += [
            f"        next{d} = rest // count{d}",
            f"        index{d} = rest - next{d} * count{d}",
            f"        start_a += index{d} * step_a{d}",
            f"        start_b += index{d} * step_b{d}",
            f"        start_c += index{d} * step_c{d}",
            f"        rest = next{d}",
        ]
    return "\n".join([*lines, *["        " + line for line in body], ""])


def _local_arrays(kind: str, width: int) -> list[str]:
    """A panel's block, and the sums of a tile's rows."""
    panel = f"panel = local_array({_DEPTH * width}, {kind})"
    return [panel, *[f"row{r} = local_array({width}, {kind})" for r in range(_ROWS)]]


def _blocked(gemm: Gemm, kind: str, width: int) -> list[str]:
    adds, rest = gemm.beta == 1, gemm.m % _ROWS
    lines = [
        f"first = piece * {width}",
        f"columns = minimum({width}, n - first)",
        f"for k0 in range(0, k, {_DEPTH}):",
        f"    deep = minimum({_DEPTH}, k - k0)",
        "    from_b = start_b + k0 * row_b + first * column_b",
        f"    if column_b == 1 and columns == {width}:",
        "        for p in range(deep):",
        f"            for j in range({width}):",
        f"                panel[p * {width} + j] = b[from_b + p * row_b + j]",
        "    else:",
        "        for p in range(deep):",
        f"            for j in range({width}):",
        f"                panel[p * {width} + j] = {kind}(0)",
        "        for j in range(columns):",
        "            for p in range(deep):",
        f"                panel[p * {width} + j] = b[from_b + p * row_b + j * column_b]",
        f"    whole = m // {_ROWS} * {_ROWS}",
        f"    for i in range(0, whole, {_ROWS}):",
        *["        " + line for line in _tile(kind, width, _ROWS, adds)],
    ]
    if rest:
        lines += ["    i = whole", *["    " + line for line in _tile(kind, width, rest, adds)]]
    if not adds:
        lines += ["if k == 0:", "    for i in range(m):", "        for j in range(columns):"]
        lines += [f"            c[start_c + i * ldc + first + j] = {kind}(0)"]
    return lines


def _tile(kind: str, width: int, rows: int, adds: bool) -> list[str]:
    lines = [f"for j in range({width}):"]
    lines += [f"    row{r}[j] = {kind}(0)" for r in range(rows)]
    lines += ["from_a = start_a + i * row_a + k0 * column_a", "for p in range(deep):"]
    lines += [f"    factor{r} = a[from_a + p * column_a + {r} * row_a]" for r in range(rows)]
    for r in range(rows):
        lines += [f"    for j in range({width}):"]
        lines += [f"        row{r}[j] = row{r}[j] + factor{r} * panel[p * {width} + j]"]
    lines += ["to = start_c + i * ldc + first"]
    first, later = [], []
    for r in range(rows):
        where = f"c[to + {r} * ldc + j]"
        first.append(f"{where} = row{r}[j]")
        later.append(f"{where} = {where} + row{r}[j]")
    if adds:
        return [*lines, "for j in range(columns):", *["    " + line for line in later]]
    lines += ["if k0 == 0:", "    for j in range(columns):", *["        " + line for line in first]]
    return [*lines, "else:", "    for j in range(columns):", *["        " + line for line in later]]


_LANES_BYTES = 128
"""The sums of a dot product: four vector registers, so that one sum does not wait for the other."""


def _has_dots(gemm: Gemm, kind: str) -> bool:
    """True if rows of op(A) and columns of op(B) lie in memory as they are multiplied."""
    return is_float(kind) and gemm.transpose_a == "N" and (
        gemm.transpose_b != "N" or (gemm.n == 1 and gemm.ldb == 1)
    )


def _dots(gemm: Gemm, kind: str) -> tuple[list[str], list[str]]:
    """A dot product for each element of the result, with several sums side by side."""
    lanes = _LANES_BYTES // (4 if kind == "float32" else 8)
    column = "0" if gemm.transpose_b == "N" else "j * column_b"
    target = "c[start_c + i * ldc + j]"
    return [f"sums = local_array({lanes}, {kind})"], [
        f"whole = k // {lanes} * {lanes}", "for i in range(m):", "    for j in range(n):",
        "        from_a = start_a + i * row_a", f"        from_b = start_b + {column}",
        f"        for q in range({lanes}):", f"            sums[q] = {kind}(0)",
        f"        for p in range(0, whole, {lanes}):", f"            for q in range({lanes}):",
        "                sums[q] = sums[q] + a[from_a + p + q] * b[from_b + p + q]",
        f"        total = {kind}(0)", f"        for q in range({lanes}):", "            total = total + sums[q]",
        "        for p in range(whole, k):", "            total = total + a[from_a + p] * b[from_b + p]",
        f"        {target} = {target} + total" if gemm.beta == 1 else f"        {target} = total",
    ]  # fmt: skip


def _plain(gemm: Gemm, kind: str, along: bool) -> list[str]:
    """For few rows, for one column, and for complex numbers. `along`: the innermost loop goes along rows of B."""
    left, right = "a[start_a + i * row_a + p * column_a]", "b[start_b + p * row_b + j * column_b]"
    if gemm.transpose_a == "N":
        left = left.replace("p * column_a", "p")
    if along:
        right = right.replace("j * column_b", "j")
    elif gemm.transpose_b != "N":
        right = right.replace("p * row_b", "p")
    left, right = (f"conj({e})" if t == "C" else e for e, t in ((left, gemm.transpose_a), (right, gemm.transpose_b)))
    part = "float32(0)" if kind == "complex64" else "float64(0)"
    zero = f"{kind}(0)" if is_float(kind) else f"complex_from({part}, {part})"
    target = "c[start_c + i * ldc + j]"
    adds = gemm.beta == 1
    if along:
        clear = [] if adds else ["    for j in range(n):", f"        {target} = {zero}"]
        return [
            "for i in range(m):", *clear, "    for p in range(k):", f"        factor = {left}",
            "        for j in range(n):", f"            {target} = reduce_add({target}, multiply(factor, {right}))",
        ]  # fmt: skip
    return [
        "for i in range(m):", "    for j in range(n):", f"        total = {zero}", "        for p in range(k):",
        f"            total = reduce_add(total, multiply({left}, {right}))",
        f"        {target} = add({target}, total)" if adds else f"        {target} = total",
    ]  # fmt: skip
