"""Kernels of whole linear systems: Gaussian elimination with the right-hand sides beside the matrix, in one pass.

`solve` of small matrices is LU factors, a permutation of rows and two triangular solves. Where nobody else wants the
factors, elimination takes the right-hand sides with it, in the same order of the same operations::

    for k in range(n):
        ...                                             the row with the largest element of column k is the pivot's row
        for i in range(k + 1, n):
            w[i, :], v[i, :] = what is left of them     factor = w[i, k] / pivot
    for k in range(n - 1, -1, -1):
        ...                                             v[k, :] / w[k, k], and the rows above without it

There are three forms. Of many matrices, as many as a vector register has numbers are solved side by side, as in
`lanes.py`: up to `_MOST_NAMES` numbers as local variables, which stay in registers; larger ones in local arrays. Of a
few matrices, or complex ones, rows are vectors, as in `factorize.py`. A pivot is the first of the largest size; NaN is
only chosen where it is the first one. A pivot of zero is not divided by until the end, where it gives infinity or NaN.
Triangular solves of many matrices, which are half of a solve with LU factors, are here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.element_type import ElementType
from ...hlo.ops.linalg import TransposeKind, TriangularSolveAttributes
from .factorize import padded
from .kernel import EmittedKernel
from .lanes import LanesText, eliminate, elimination_arrays, fits_lanes
from .texts import indented
from .written import written

_MOST_NAMES = 32
"""Numbers of one matrix and its right-hand sides that are local variables: there are as many vector registers."""


def emit_solve(element_type: ElementType, count: int, n: int, columns: int) -> EmittedKernel:
    """x of a x = b for `count` matrices: operands a [n, n] and b [n, columns], output x."""
    if not fits_lanes(element_type, count, n * n, n * columns):
        return _solve_rows(element_type, count, n, columns, False)
    if n * (n + columns) <= _MOST_NAMES:
        return _solve_names(element_type, count, n, columns, False)
    return _solve_lanes(element_type, count, n, columns, False)


def emit_inverse(element_type: ElementType, count: int, n: int) -> EmittedKernel:
    """The inverses of `count` matrices: `solve` whose right-hand sides are identities."""
    if not fits_lanes(element_type, count, n * n):
        return _solve_rows(element_type, count, n, n, True)
    if 2 * n * n <= _MOST_NAMES:
        return _solve_names(element_type, count, n, n, True)
    return _solve_lanes(element_type, count, n, n, True)


def emit_determinant(element_type: ElementType, count: int, n: int) -> EmittedKernel:
    """The determinants of `count` matrices: the product of the pivots, and -1 for each exchange of rows."""
    if not fits_lanes(element_type, count, n * n):
        return _determinant_rows(element_type, count, n)
    if n * n <= _MOST_NAMES:
        return _determinant_names(element_type, count, n)
    return _determinant_lanes(element_type, count, n)


def emit_lu_solve(element_type: ElementType, count: int, n: int, columns: int, trans: int) -> EmittedKernel:
    """x of op(a) x = b from a's factors: operands a, which is not read, the factors [n, n], which row of a is in which
    place [n], and b [n, columns]; output x. `trans`: 0 for a itself, 1 for its transpose, 2 for its adjoint."""
    if not fits_lanes(element_type, count, n * n, n * columns):
        return _lu_solve_rows(element_type, count, n, columns, trans)
    return _lu_solve_lanes(element_type, count, n, columns, trans)


def triangular_lanes(
    element_type: ElementType, count: int, rows: int, columns: int, attributes: TriangularSolveAttributes
) -> EmittedKernel:
    """As `factorize.emit_triangular_solve`, side by side, in its order; of real matrices. The other triangle of a, and
    its diagonal where that is ones, are copied and not computed with."""
    left = attributes.left_side
    n, others = (rows, columns) if left else (columns, rows)
    trans = attributes.transpose_a is not TransposeKind.NO_TRANSPOSE
    forwards = (attributes.lower != trans) == left
    t = LanesText(element_type)
    t.array("w", n * n)
    t.array("v", rows * columns)
    t.array("turned", 4 * max(n * n, rows * columns), shared=False)
    t.read("w", "x", n * n)
    t.read("v", "y", rows * columns)

    def of(k: str) -> str:
        """Number j of what is solved in step k: of a row of x, or of a column."""
        return f"v[{t.at(f'{k} * {columns} + j' if left else f'j * {columns} + {k}')}]"

    i, j = ("i", "k") if left != trans else ("k", "i")
    factor = f"w[{t.at(f'{i} * {n} + {j}')}]"
    over = f"for j in range({others}):"
    quotient = t.each([f"{of('k')} = {of('k')} / w[{t.at(f'k * {n} + k')}]"])
    update = t.each([f"{of('i')} = {of('i')} - {factor} * {of('k')}"])
    t.lines += [
        f"for step in range({n}):", "    k = step" if forwards else f"    k = {n - 1} - step",
        *indented([] if attributes.unit_diagonal else [over, *indented(quotient)]),
        f"    for i in range({f'k + 1, {n}' if forwards else 'k'}):", f"        {over}", *indented(update, 3),
    ]  # fmt: skip
    t.write("out", "v", rows * columns)
    return t.finish("triangular_lanes", _roles(element_type, False), count, _nanoseconds(element_type, n, others) / 2)


def _nanoseconds(element_type: ElementType, n: int, columns: int) -> float:
    """Of one matrix among many."""
    return (0.1 * n * n * (n + 3 * columns) + 0.5 * n * (n + columns)) * (element_type.byte_width / 4)


def _roles(
    element_type: ElementType, identity: bool
) -> dict[str, tuple[ElementType, int | None, int | None]]:  # fmt: skip
    roles: dict[str, tuple[ElementType, int | None, int | None]] = {"x": (element_type, 0, None)}
    if not identity:
        roles["y"] = element_type, 1, None
    return roles | {"out": (element_type, None, 0)}


# ---- side by side, in registers


def _elimination_names(n: int, columns: int) -> list[str]:
    """Elimination of a0_0 .. with right-hand sides b0_0 ..; `sign` turns with each exchange."""
    lines: list[str] = []
    for k in range(n):
        rest = range(k + 1, n)
        if rest:
            lines += [f"best = abs(a{k}_{k})", f"row = R({k})"]
        for i in rest:
            lines += [f"size = abs(a{i}_{k})", "better = size > best", "best = select(better, size, best)",
                      f"row = select(better, R({i}), row)"]  # fmt: skip
        names = [f"a{{0}}_{j}" for j in range(k, n)] + [f"b{{0}}_{j}" for j in range(columns)]
        for i in rest:
            lines.append(f"here = row == R({i})")
            for name in names:
                upper, lower = name.format(k), name.format(i)
                lines += [f"kept = {upper}", f"{upper} = select(here, {lower}, kept)",
                          f"{lower} = select(here, kept, {lower})"]  # fmt: skip
        if rest:
            lines += [f"sign = select(row == R({k}), sign, -sign)",
                      f"divisor = select(a{k}_{k} == R(0), R(1), a{k}_{k})"]  # fmt: skip
        for i in rest:
            lines.append(f"factor = a{i}_{k} / divisor")
            lines += [f"{name.format(i)} = {name.format(i)} - factor * {name.format(k)}" for name in names[1:]]
    return lines


def _read_names(t: LanesText, array: str, letter: str, rows: int, columns: int) -> list[str]:
    """Local variables of a local array's numbers."""
    return [f"{letter}{i}_{j} = {array}[{t.at(str(i * columns + j))}]" for i in range(rows) for j in range(columns)]


def _of_sides(element_type: ElementType, n: int, columns: int) -> LanesText:
    """A text that has read the matrices, with room for their right-hand sides."""
    t = LanesText(element_type)
    t.array("w", n * n)
    t.array("v", n * columns)
    t.array("turned", 4 * n * max(n, columns), shared=False)
    t.read("w", "x", n * n)
    return t


def _solve_names(element_type: ElementType, count: int, n: int, columns: int, identity: bool) -> EmittedKernel:
    t = _of_sides(element_type, n, columns)
    body = _read_names(t, "w", "a", n, n)
    if identity:
        body += [f"b{i}_{j} = R({int(i == j)})" for i in range(n) for j in range(n)]
    else:
        t.read("v", "y", n * columns)
        body += _read_names(t, "v", "b", n, columns)
    body += ["sign = R(1)", *_elimination_names(n, columns)]
    for k in reversed(range(n)):
        body += [f"b{k}_{j} = b{k}_{j} / a{k}_{k}" for j in range(columns)]
        body += [f"b{i}_{j} = b{i}_{j} - a{i}_{k} * b{k}_{j}" for i in range(k) for j in range(columns)]
    body += [f"v[{t.at(str(i * columns + j))}] = b{i}_{j}" for i in range(n) for j in range(columns)]
    t.lines += t.each([line for line in body if not line.startswith("sign")])
    t.write("out", "v", n * columns)
    nanoseconds = _nanoseconds(element_type, n, columns)
    return t.finish("inverse" if identity else "solve", _roles(element_type, identity), count, nanoseconds)


def _determinant_names(element_type: ElementType, count: int, n: int) -> EmittedKernel:
    t = LanesText(element_type)
    t.array("w", n * n)
    t.array("value", 1)
    t.array("turned", 4 * n * n, shared=False)
    t.read("w", "x", n * n)
    body = [*_read_names(t, "w", "a", n, n), "sign = R(1)", *_elimination_names(n, 0)]
    product = "".join(f" * a{k}_{k}" for k in range(n))
    t.lines += t.each([*body, f"value[l] = sign{product}"])
    t.lines += t.items(["out[it] = value[l]"])
    return t.finish("determinant", _roles(element_type, True), count, _nanoseconds(element_type, n, 0))


# ---- side by side, in local arrays


def _solve_lanes(element_type: ElementType, count: int, n: int, columns: int, identity: bool) -> EmittedKernel:
    t = LanesText(element_type)
    elimination_arrays(t, n, n, columns)
    t.read("w", "x", n * n)
    if identity:
        one = t.each([f"v[{t.at(f'i * {n} + j')}] = select(i == j, R(1), R(0))"])
        t.lines += [f"for i in range({n}):", f"    for j in range({n}):", *indented(one, 2)]
    else:
        t.read("v", "y", n * columns)
    t.lines += eliminate(t, n, n, columns)
    here, above = f"v[{t.at(f'k * {columns} + j')}]", f"v[{t.at(f'i * {columns} + j')}]"
    quotient = t.each([f"{here} = {here} / w[{t.at(f'k * {n} + k')}]"])
    update = t.each([f"{above} = {above} - w[{t.at(f'i * {n} + k')}] * {here}"])
    t.lines += [
        f"for step in range({n}):", f"    k = {n - 1} - step",
        f"    for j in range({columns}):", *indented(quotient, 2),
        "    for i in range(k):", f"        for j in range({columns}):", *indented(update, 3),
    ]  # fmt: skip
    t.write("out", "v", n * columns)
    nanoseconds = _nanoseconds(element_type, n, columns)
    return t.finish("inverse" if identity else "solve", _roles(element_type, identity), count, nanoseconds)


def _determinant_lanes(element_type: ElementType, count: int, n: int) -> EmittedKernel:
    t = LanesText(element_type)
    elimination_arrays(t, n, n)
    t.read("w", "x", n * n)
    t.lines += eliminate(t, n, n)
    t.lines += [f"for k in range({n}):", *indented(t.each([f"sign[l] = sign[l] * w[{t.at(f'k * {n} + k')}]"]))]
    t.lines += t.items(["out[it] = sign[l]"])
    return t.finish("determinant", _roles(element_type, True), count, _nanoseconds(element_type, n, 0))


_PLACE = "int64(minimum(maximum(order[{0}], int32(0)), int32({1})))"
"""Within the matrix, whatever stands there."""


def _lu_solve_lanes(element_type: ElementType, count: int, n: int, columns: int, trans: int) -> EmittedKernel:
    t = _of_sides(element_type, n, columns)
    mine, its = f"v[{t.at(f'k * {columns} + j')}]", f"v[{t.at(f'i * {columns} + j')}]"
    place = _PLACE.format(f"it * {n} + i", n - 1)
    if trans:
        t.read("v", "y", n * columns)
    else:
        t.lines += [
            f"for l in range({t.lanes}):", f"    it = minimum(b * {t.lanes} + l, items - 1)",
            f"    for i in range({n}):", f"        start = it * {n * columns} + {place} * {columns}",
            f"        for j in range({columns}):", f"            {its} = y[start + j]",
        ]  # fmt: skip
    over = f"for j in range({columns}):"
    quotient = [over, *indented(t.each([f"{mine} = {mine} / w[{t.at(f'k * {n} + k')}]"]))]
    factor = f"w[{t.at(f'k * {n} + i' if trans else f'i * {n} + k')}]"
    update = [over, *indented(t.each([f"{its} = {its} - {factor} * {mine}"]))]
    t.lines += [
        f"for k in range({n}):", *indented(quotient if trans else []),
        f"    for i in range(k + 1, {n}):", *indented(update, 2),
        f"for step in range({n}):", f"    k = {n - 1} - step", *indented([] if trans else quotient),
        "    for i in range(k):", *indented(update, 2),
    ]  # fmt: skip
    if trans:
        t.lines += t.items([
            f"for i in range({n}):", f"    start = it * {n * columns} + {place} * {columns}",
            f"    for j in range({columns}):", f"        out[start + j] = {its}",
        ])  # fmt: skip
    else:
        t.write("out", "v", n * columns)
    return t.finish("lu_solve", _lu_roles(element_type), count, _nanoseconds(element_type, n, columns))


def _lu_roles(element_type: ElementType) -> dict[str, tuple[ElementType, int | None, int | None]]:
    return {
        "x": (element_type, 1, None), "order": (ElementType.S32, 2, None), "y": (element_type, 3, None),
        "out": (element_type, None, 0),
    }  # fmt: skip


# ---- one after the other


def _read_rows(target: str, source: str, rows: int, columns: int, width: int) -> list[str]:
    """A matrix with zeros beside it."""
    lines = [f"for i in range({rows}):", f"    for j in range({columns}):",
             f"        {target}[i * {width} + j] = {source}[b * {rows * columns} + i * {columns} + j]"]  # fmt: skip
    if width > columns:
        lines += [f"    for j in range({columns}, {width}):", f"        {target}[i * {width} + j] = T(0)"]
    return lines


def _elimination_rows(n: int, width: int, beside: int) -> list[str]:
    """The same for w [n, width] and v [n, beside], row by row."""
    arrays = [("w", width), ("v", beside)][: 2 if beside else 1]
    lines = [
        f"for k in range({n}):", f"    pivot = w[k * {width} + k]", "    best = abs1(pivot)", "    chosen = k",
        f"    for i in range(k + 1, {n}):", f"        item = w[i * {width} + k]", "        size = abs1(item)",
        "        better = size > best", "        best = select(better, size, best)",
        "        chosen = select(better, i, chosen)",
    ]  # fmt: skip
    for name, length in arrays:
        lines += [f"    for j in range({length}):", f"        kept = {name}[k * {length} + j]",
                  f"        {name}[k * {length} + j] = {name}[chosen * {length} + j]",
                  f"        {name}[chosen * {length} + j] = kept"]  # fmt: skip
    lines += [
        "    sign = select(chosen == k, sign, -sign)",
        f"    pivot = w[k * {width} + k]", "    divisor = select(abs1(pivot) == R(0), T(1), pivot)",
        f"    for i in range(k + 1, {n}):", f"        factor = w[i * {width} + k] / divisor",
    ]  # fmt: skip
    for name, length in arrays:
        here = f"{name}[i * {length} + j]"
        lines += [f"        for j in range({length}):",
                  f"            {here} = {here} - factor * {name}[k * {length} + j]"]  # fmt: skip
    return lines


def _solve_rows(element_type: ElementType, count: int, n: int, columns: int, identity: bool) -> EmittedKernel:
    width, beside = padded(n, element_type), padded(columns, element_type)
    lines = [f"w = local_array({n * width}, T)", f"v = local_array({n * beside}, T)"]
    lines += _read_rows("w", "x", n, n, width)
    if identity:
        lines += [f"for i in range({n}):", f"    for j in range({beside}):",
                  f"        v[i * {beside} + j] = select(i == j, T(1), T(0))"]  # fmt: skip
    else:
        lines += _read_rows("v", "y", n, columns, beside)
    lines += [line for line in _elimination_rows(n, width, beside) if not line.startswith("    sign")]
    lines += [
        f"for step in range({n}):", f"    k = {n - 1} - step", f"    pivot = w[k * {width} + k]",
        f"    for j in range({beside}):", f"        v[k * {beside} + j] = v[k * {beside} + j] / pivot",
        "    for i in range(k):", f"        factor = w[i * {width} + k]", f"        for j in range({beside}):",
        f"            v[i * {beside} + j] = v[i * {beside} + j] - factor * v[k * {beside} + j]",
        f"for i in range({n}):", f"    for j in range({columns}):",
        f"        out[b * {n * columns} + i * {columns} + j] = v[i * {beside} + j]",
    ]  # fmt: skip
    roles = _roles(element_type, identity)
    return _of_rows("inverse" if identity else "solve", lines, element_type, count, n, columns, roles)


def _determinant_rows(element_type: ElementType, count: int, n: int) -> EmittedKernel:
    width = padded(n, element_type)
    lines = [f"w = local_array({n * width}, T)", *_read_rows("w", "x", n, n, width), "sign = R(1)"]
    lines += [*_elimination_rows(n, width, 0), "value = T(sign)"]
    lines += [f"for k in range({n}):", f"    value = value * w[k * {width} + k]", "out[b] = value"]
    return _of_rows("determinant", lines, element_type, count, n, 0, _roles(element_type, True))


def _lu_solve_rows(element_type: ElementType, count: int, n: int, columns: int, trans: int) -> EmittedKernel:
    beside = padded(columns, element_type)
    place = _PLACE.format(f"b * {n} + i", n - 1)
    start = f"b * {n * columns} + {place if not trans else 'i'} * {columns}"
    lines = [f"v = local_array({n * beside}, T)", f"for i in range({n}):", f"    start = {start}",
             f"    for j in range({columns}):", f"        v[i * {beside} + j] = y[start + j]"]  # fmt: skip
    if beside > columns:
        lines += [f"    for j in range({columns}, {beside}):", f"        v[i * {beside} + j] = T(0)"]

    def op(i: str, j: str) -> str:
        """An element of the factors, or of their transposes."""
        if not trans:
            return f"x[b * {n * n} + {i} * {n} + {j}]"
        found = f"x[b * {n * n} + {j} * {n} + {i}]"
        return f"conj({found})" if trans == 2 and element_type.is_complex else found

    quotient = [f"pivot = {op('k', 'k')}", f"for j in range({beside}):",
                f"    v[k * {beside} + j] = v[k * {beside} + j] / pivot"]  # fmt: skip
    update = [f"factor = {op('i', 'k')}", f"for j in range({beside}):",
              f"    v[i * {beside} + j] = v[i * {beside} + j] - factor * v[k * {beside} + j]"]  # fmt: skip
    lines += [
        f"for k in range({n}):", *indented(quotient if trans else []),
        f"    for i in range(k + 1, {n}):", *indented(update, 2),
        f"for step in range({n}):", f"    k = {n - 1} - step", *indented([] if trans else quotient),
        "    for i in range(k):", *indented(update, 2),
        f"for i in range({n}):", f"    start = b * {n * columns} + {place if trans else 'i'} * {columns}",
        f"    for j in range({columns}):", f"        out[start + j] = v[i * {beside} + j]",
    ]  # fmt: skip
    return _of_rows("lu_solve", lines, element_type, count, n, columns, _lu_roles(element_type))


def _of_rows(
    name: str, lines: Sequence[str], element_type: ElementType, count: int, n: int, columns: int,
    roles: dict[str, tuple[ElementType, int | None, int | None]],
) -> EmittedKernel:  # fmt: skip
    pointers = {key: kind for key, (kind, _, _) in roles.items()}
    lanes = 32 / element_type.byte_width
    vectors = math.ceil(n / lanes) + math.ceil(columns / lanes)
    cost = 0.2 * n * n * vectors * (4 if element_type.is_complex else 1) + 5.0 * n + 0.3 * n * (n + columns)
    kernel, _ = written(
        name, lines, element_type, pointers, {}, count, cost,
        {key: (operand, output) for key, (_, operand, output) in roles.items()},
    )  # fmt: skip
    return kernel
