"""Kernels of the eigenvalues and eigenvectors of many small symmetric matrices, side by side as in `lanes.py`.

Jacobi's method: each rotation makes one number beside the diagonal zero, and a sweep rotates all of them in turn::

    for p in range(2):
        for q in range(p + 1, 3):
            for l in range(16):
                ...                                     tangent[l] of the angle that makes w[p, q] zero
            for k in ...:
                for l in range(16):
                    w[k, p], w[k, q] = ...              and so on for rows of the eigenvectors v

It is LAPACK's accuracy or better, in some five sweeps, and all matrices do the same in each. A matrix that is done, as
what is beside its diagonal is below its rounding errors, is rotated by nothing: its results do not depend on those
beside it. Eigenvalues are put in order by exchanges of neighbours. Eigenvectors have norm 1; which of v and -v it is,
differs from LAPACK's choice. Matrices whose numbers would overflow are scaled, as in LAPACK; NaN or an infinity
anywhere in a matrix gives NaN everywhere.

Source: G. H. Golub, C. F. Van Loan, Matrix Computations, 8.5; H. Rutishauser, The Jacobi method for real symmetric
matrices (1966).
"""

from __future__ import annotations

from ...hlo.element_type import ElementType
from .kernel import EmittedKernel
from .lanes import LanesText, fits_lanes
from .texts import indented

LARGEST_SYMMETRIC = 16
"""Rows of the largest matrix: for larger ones LAPACK takes less work."""
_SWEEPS = 30
"""Far more than any matrix takes."""


def fits_symmetric(element_type: ElementType, count: int, n: int) -> bool:
    """Whether so many matrices are better rotated side by side."""
    return 0 < n <= LARGEST_SYMMETRIC and fits_lanes(element_type, count, n * n)


def symmetric_lanes(
    element_type: ElementType, count: int, n: int, lower: bool, vectors: bool, with_info: bool
) -> EmittedKernel:
    """Of operand 0, of which one triangle is read: output 0 has the eigenvectors in columns, output 1 the eigenvalues,
    in ascending order. `with_info`: output 2 is 0, or n for a matrix without result; else such a result is NaN. Without
    `vectors`, output 0 is arbitrary."""
    t = LanesText(element_type)
    t.array("w", n * n)
    if vectors:
        t.array("v", n * n)
    t.array("d", n)
    t.array("turned", 4 * n * n, shared=False)
    for name in ("size", "off", "going", "tangent", "sine", "ratio", "by"):
        t.array(name, 1)
    t.read("w", "x", n * n)
    upper = f"for i in range({n}):"
    over = "    for j in range(i + 1, N):".replace("N", str(n))

    def at(i: str, j: str, array: str = "w") -> str:
        return f"{array}[{t.at(f'{i} * {n} + {j}')}]"

    if lower:
        t.lines += [upper, over, *indented(t.each([f"{at('i', 'j')} = {at('j', 'i')}"]), 2)]
    t.lines += [
        *t.each(["size[l] = R(0)", "off[l] = R(0)"]),
        upper, f"    for j in range(i, {n}):",
        *indented(t.each([
            f"found = abs({at('i', 'j')})", "size[l] = maximum(size[l], found)", "off[l] = off[l] + (found - found)",
        ]), 2),
        *t.each([
            "size[l] = size[l] + off[l]",  # NaN, if anything is not finite
            "by[l] = select(size[l] > LARGE or (size[l] < SMALL and size[l] > R(0)), size[l], R(1))",
        ]),
        upper, f"    for j in range(i, {n}):", *indented(t.each([f"{at('i', 'j')} = {at('i', 'j')} / by[l]"]), 2),
        *t.each(["size[l] = EPS * R(0.25) * (size[l] / by[l])"]),
        upper, *indented(t.each([f"d[{t.at('i')}] = {at('i', 'i')}"])),
    ]  # fmt: skip
    if vectors:
        one = t.each([f"{at('i', 'j', 'v')} = select(i == j, R(1), R(0))"])
        t.lines += [upper, f"    for j in range({n}):", *indented(one, 2)]
    t.lines += ["left = 1", "sweep = 0", f"while left > 0 and sweep < {_SWEEPS}:", "    sweep = sweep + 1"]
    t.lines += indented(_sweep(t, n, vectors))
    t.lines += [
        *t.each(["going[l] = select(off[l] <= size[l], R(1), R(0) / R(0))"]),
        upper, *indented(t.each([f"d[{t.at('i')}] = d[{t.at('i')}] * by[l] * going[l]"])),
    ]  # fmt: skip
    t.lines += _in_order(t, n, vectors)
    if vectors:
        t.lines += [f"for i in range({n * n}):", *indented(t.each([f"v[{t.at('i')}] = v[{t.at('i')}] * going[l]"]))]
    t.write("out", "v" if vectors else "w", n * n)
    last = [f"for i in range({n}):", f"    values[it * {n} + i] = d[{t.at('i')}]"]
    roles = {"x": (element_type, 0, None), "out": (element_type, None, 0), "values": (element_type, None, 1)}
    if with_info:
        last.append(f"info[it] = select(off[l] <= size[l], int32(0), int32({n}))")
        roles["info"] = ElementType.S32, None, 2
    t.lines += t.items(last)
    width = element_type.byte_width / 4
    return t.finish("symmetric_lanes", roles, count, (8.0 * n * n + (2.2 if vectors else 1.6) * n**3 * 0.6) * width)


def _off(t: LanesText, n: int) -> list[str]:
    """The largest number beside the diagonal, whether a matrix is going on, and whether any is."""
    return [
        *t.each(["off[l] = R(0)"]),
        f"for i in range({n}):", f"    for j in range(i + 1, {n}):",
        *indented(t.each([f"off[l] = maximum(off[l], abs(w[{t.at(f'i * {n} + j')}]))"]), 2),
        *t.each(["going[l] = select(off[l] > size[l], R(1), R(0))"]),
        "left = 0",
        f"for l in range({t.lanes}):", "    left = select(going[l] > R(0), 1, left)",
    ]  # fmt: skip


def _sweep(t: LanesText, n: int, vectors: bool) -> list[str]:
    """Each number beside the diagonal in turn: the tangent of the smaller angle that makes it zero, the rotation."""
    here, dp, dq = f"w[{t.at(f'p * {n} + q')}]", f"d[{t.at('p')}]", f"d[{t.at('q')}]"
    angle = t.each([
        f"twice = {here} + {here}",
        f"gap = {dq} - {dp}",
        "down = abs(gap) + sqrt(gap * gap + twice * twice)",
        "found = twice / select(down > R(0), down, R(1))",
        "turn = select(gap < R(0), -found, found) * going[l]",
        "tangent[l] = turn",
        "whole = sqrt(turn * turn + R(1))",
        "sine[l] = turn / whole",
        "ratio[l] = turn / (whole + R(1))",
        f"moved = turn * {here}",
        f"{dp} = {dp} - moved",
        f"{dq} = {dq} + moved",
        f"{here} = select(going[l] > R(0), {here} - {here}, {here})",
    ])  # fmt: skip

    def rotated(one: str, other: str) -> list[str]:
        return t.each([
            f"first = {one}", f"second = {other}",
            f"{one} = first - sine[l] * (second + first * ratio[l])",
            f"{other} = second + sine[l] * (first - second * ratio[l])",
        ])  # fmt: skip

    def at(i: str, j: str) -> str:
        return f"w[{t.at(f'{i} * {n} + {j}')}]"

    lines = [
        *angle,
        "for k in range(p):", *indented(rotated(at("k", "p"), at("k", "q"))),
        "for k in range(p + 1, q):", *indented(rotated(at("p", "k"), at("k", "q"))),
        f"for k in range(q + 1, {n}):", *indented(rotated(at("p", "k"), at("q", "k"))),
    ]  # fmt: skip
    if vectors:
        one, other = f"v[{t.at(f'k * {n} + p')}]", f"v[{t.at(f'k * {n} + q')}]"
        lines += [f"for k in range({n}):", *indented(rotated(one, other))]
    return [*_off(t, n), "if left > 0:", f"    for p in range({n - 1}):", f"        for q in range(p + 1, {n}):",
            *indented(lines, 3)]  # fmt: skip


def _in_order(t: LanesText, n: int, vectors: bool) -> list[str]:
    """Neighbours change places until the eigenvalues ascend, and their vectors with them."""
    one, other = f"d[{t.at('j')}]", f"d[{t.at('j + 1')}]"
    exchange = t.each([
        f"first = {one}", f"second = {other}", "swaps = second < first", "tangent[l] = select(swaps, R(1), R(0))",
        f"{one} = select(swaps, second, first)", f"{other} = select(swaps, first, second)",
    ])  # fmt: skip
    if vectors:
        one, other = f"v[{t.at(f'k * {n} + j')}]", f"v[{t.at(f'k * {n} + j + 1')}]"
        exchange += [f"for k in range({n}):", *indented(t.each([
            f"first = {one}", f"second = {other}", "swaps = tangent[l] > R(0)",
            f"{one} = select(swaps, second, first)", f"{other} = select(swaps, first, second)",
        ]))]  # fmt: skip
    return [f"for i in range({n - 1}):", f"    for j in range({n - 1} - i):", *indented(exchange, 2)]
