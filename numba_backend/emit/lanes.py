"""Kernels of factorisations of many small matrices: as many side by side as a vector register has numbers.

Element (i, j) of all these matrices is one row of a local array, so every operation is one of vectors, whatever the
size of the matrices is::

    w = local_array(64 * 16, float32)
    for b in range(lo, hi):
        ...                                             w[(i * 8 + j) * 16 + l] = A of matrix 16 b + l
        for k in range(8):
            for l in range(16):
                ...                                     the root of the pivot
            for i in range(k + 1, 8):
                for j in range(i, 8):
                    for l in range(16):
                        w[..] = w[..] - w[..] * w[..]

Pivots are chosen for each matrix: rows change places by selection. The arithmetic is that of `factorize.py`, in its
order. Where less matrices are left, the last one is computed several times and stored once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.element_type import ElementType
from .kernel import EmittedKernel
from .texts import indented
from .written import written

LANES = {ElementType.F32: 16, ElementType.F64: 8}
_MOST_ELEMENTS = 4096
"""Of a local array."""


def fits_lanes(element_type: ElementType, count: int, *arrays: int) -> bool:
    """Whether so many matrices are better factorised side by side. `arrays`: how many numbers of one matrix each local
    array holds."""
    lanes = LANES.get(element_type)
    return lanes is not None and 2 * count >= lanes and max(arrays) * lanes <= _MOST_ELEMENTS


class LanesText:
    """The lines of a kernel for matrices of an element type."""

    def __init__(self, element_type: ElementType) -> None:
        self.element_type = element_type
        self.lanes = LANES[element_type]
        self.lines: list[str] = []

    def array(self, name: str, count: int, shared: bool = True) -> None:
        """A local array of `count` numbers of each matrix, or of `count` numbers."""
        self.lines.append(f"{name} = local_array({count * (self.lanes if shared else 1)}, R)")

    def arrays(self, size: int) -> None:
        """The matrices, and four of them in another order."""
        self.array("w", size)
        self.array("turned", 4 * size, shared=False)

    def each(self, lines: Sequence[str]) -> list[str]:
        """For each matrix; `at(index)` is where its number of this index is."""
        return [f"for l in range({self.lanes}):", *indented(lines)]

    def at(self, index: str) -> str:
        """The index of a number in a local array."""
        return f"({index}) * {self.lanes} + l"

    def read(self, name: str, source: str, size: int) -> None:
        """Fill a local array with matrices of `size` numbers, four at a time, which LLVM makes shuffles of."""
        lanes, four = self.lanes, range(4)
        self.lines += [
            f"if items - b * {lanes} >= {lanes}:",
            f"    for g in range({lanes // 4}):",
            f"        start = (b * {lanes} + g * 4) * {size}",
            f"        for i in independent({size}):",
            *[f"            turned[4 * i + {c}] = {source}[start + {c * size} + i]" for c in four],
            f"        for i in range({size}):",
            "            for c in range(4):",
            f"                {name}[i * {lanes} + g * 4 + c] = turned[4 * i + c]",
            "else:",
            f"    for l in range({lanes}):",
            f"        start = minimum(b * {lanes} + l, items - 1) * {size}",
            f"        for i in range({size}):",
            f"            {name}[{self.at('i')}] = {source}[start + i]",
        ]  # fmt: skip

    def write(self, target: str, name: str, size: int) -> None:
        """Store matrices of `size` numbers."""
        lanes, four = self.lanes, range(4)
        self.lines += [
            f"if items - b * {lanes} >= {lanes}:",
            f"    for g in range({lanes // 4}):",
            f"        start = (b * {lanes} + g * 4) * {size}",
            f"        for i in range({size}):",
            "            for c in range(4):",
            f"                turned[4 * i + c] = {name}[i * {lanes} + g * 4 + c]",
            f"        for i in independent({size}):",
            *[f"            {target}[start + {c * size} + i] = turned[4 * i + {c}]" for c in four],
            "else:",
            *indented(self.items([
                f"for i in range({size}):", f"    {target}[it * {size} + i] = {name}[{self.at('i')}]",
            ])),
        ]  # fmt: skip

    def reflect(self, rows: int, columns: int, factor: str) -> list[str]:
        """w = w - factor v (v^T w) from row k on, in the columns after k; v is 1 and what is below it in column k."""
        top, here = f"w[{self.at(f'k * {columns} + j')}]", f"w[{self.at(f'i * {columns} + j')}]"
        below, down = f"w[{self.at(f'i * {columns} + k')}]", f"for i in range(k + 1, {rows}):"
        lines = self.each([f"sum[l] = {top}"])
        lines += [down, *indented(self.each([f"sum[l] = sum[l] + {below} * {here}"]))]
        lines += self.each([f"sum[l] = sum[l] * {factor}", f"{top} = {top} - sum[l]"])
        lines += [down, *indented(self.each([f"{here} = {here} - {below} * sum[l]"]))]
        return [f"for j in range(k + 1, {columns}):", *indented(lines)]

    def items(self, lines: Sequence[str]) -> list[str]:
        """For each matrix that there is; `it` is its number."""
        head = [f"for l in range(minimum({self.lanes}, items - b * {self.lanes})):", f"    it = b * {self.lanes} + l"]
        return [*head, *indented(lines)]

    def finish(self, name: str, roles: dict[str, tuple[ElementType, int | None, int | None]], count: int,
               nanoseconds: float) -> EmittedKernel:  # fmt: skip
        """The kernel. `nanoseconds`: for one matrix."""
        blocks = -(-count // self.lanes)
        pointers = {key: kind for key, (kind, _, _) in roles.items()}
        kernel, _ = written(
            name, self.lines, self.element_type, pointers, {"items": count}, blocks, nanoseconds * self.lanes,
            {key: (operand, output) for key, (_, operand, output) in roles.items()},
        )  # fmt: skip
        return kernel


def cholesky_lanes(element_type: ElementType, count: int, n: int, lower: bool, with_info: bool) -> EmittedKernel:
    """As `factorize.emit_cholesky`."""
    t = LanesText(element_type)
    t.arrays(n * n)
    t.array("bad", 1)
    t.array("root", 1)
    t.read("w", "x", n * n)
    t.lines += t.each(["bad[l] = R(0)"])

    def at(i: str, j: str) -> str:
        """Element (i, j) of the upper factor, or (j, i) of the lower one."""
        return f"w[{t.at(f'{j} * {n} + {i}' if lower else f'{i} * {n} + {j}')}]"

    fails = "pivot <= R(0)" if with_info else "not pivot > R(0)"
    step = t.each([
        f"pivot = {at('k', 'k')}",
        f"bad[l] = select(bad[l] == R(0) and {fails}, R(k + 1), bad[l])",
        "root[l] = sqrt(pivot)",
        f"{at('k', 'k')} = root[l]",
    ])  # fmt: skip
    step += [f"for j in range(k + 1, {n}):", *indented(t.each([f"{at('k', 'j')} = {at('k', 'j')} / root[l]"]))]
    update = t.each([f"{at('i', 'j')} = {at('i', 'j')} - {at('k', 'i')} * {at('k', 'j')}"])
    step += [f"for i in range(k + 1, {n}):", f"    for j in range(i, {n}):", *indented(update, 2)]
    t.lines += [f"for k in range({n}):", *indented(step)]
    if with_info:
        t.write("out", "w", n * n)
        t.lines += t.items(["info[it] = int32(bad[l])"])
    else:
        nan = f"select(bad[l] == R(0), w[{t.at('i')}], R(0) / R(0))"
        zero = t.each([f"{at('j', 'i')} = R(0)"])
        t.lines += [f"for i in range({n}):", f"    for j in range(i + 1, {n}):", *indented(zero, 2)]
        t.lines += [f"for i in range({n * n}):", *indented(t.each([f"w[{t.at('i')}] = {nan}"]))]
        t.write("out", "w", n * n)
    roles = {"x": (element_type, 0, None), "out": (element_type, None, 0), "info": (ElementType.S32, None, 1)}
    return t.finish("cholesky_lanes", roles, count, 2.0 * n * n + 0.06 * n**3)


def eliminate(
    t: LanesText, rows: int, columns: int, beside: int = 0, keeps: Sequence[str] | None = None
) -> list[str]:
    """Gaussian elimination of w [rows, columns], and with it of v [rows, beside]; `sign` turns with each exchange.

    The pivot's row is gathered into `top` first. Then each row below it is read once, the one that gave the pivot's row
    as what was in its place before. `keeps`: the factors stay below the diagonal, and these are lines for each step,
    where `pivot` is the pivot and `row[l]` its row's number; None: what is below the diagonal is of no interest.
    """
    sides = [("w", "top", columns), ("v", "aside", beside)][: 2 if beside else 1]
    corner, below = f"w[{t.at(f'k * {columns} + k')}]", f"w[{t.at(f'i * {columns} + k')}]"
    down = f"for i in range(k + 1, {rows}):"
    here = "row[l] == R(i)"
    step = t.each([f"best[l] = abs({corner})", "row[l] = R(k)"])
    step += [down, *indented(t.each([
        f"size = abs({below})",
        "better = size > best[l]",
        "best[l] = select(better, size, best[l])",
        "row[l] = select(better, R(i), row[l])",
    ]))]  # fmt: skip

    def each_of(side: tuple[str, str, int], first: str, text: str, depth: int = 0) -> list[str]:
        """A line for each number of a row from `first` on: HERE in row k, THERE in row i, TOP of the pivot's row."""
        array, top, width = side
        for word, place in (("THERE", f"i * {width} + j"), ("HERE", f"k * {width} + j")):
            text = text.replace(word, f"{array}[{t.at(place)}]")
        text = text.replace("TOP", f"{top}[{t.at('j')}]")
        start = f"{first}, " if array == "w" and first else ""
        return indented([f"for j in range({start}{width}):", *indented(t.each([text]))], depth)

    first = "k" if keeps is None else ""
    for side in sides:
        step += each_of(side, first, "TOP = HERE")
        step += [down, *each_of(side, first, f"TOP = select({here}, THERE, TOP)", 1)]
    step += t.each([
        f"pivot = top[{t.at('k')}]",
        "divisor[l] = select(pivot == R(0), R(1), pivot)",
        "sign[l] = select(row[l] == R(k), sign[l], -sign[l])",
        *(keeps or ()),
    ])  # fmt: skip
    update = t.each([f"factor[l] = select({here}, {corner}, {below}) / divisor[l]"])
    if keeps is not None:
        kept = f"w[{t.at(f'i * {columns} + j')}]"
        before = f"{kept} = select({here}, w[{t.at(f'k * {columns} + j')}], {kept})"
        update += ["for j in range(k):", *indented(t.each([before])), *t.each([f"{below} = factor[l]"])]
    for side in sides:
        update += each_of(side, "k + 1", f"THERE = select({here}, HERE, THERE) - factor[l] * TOP")
    step += [down, *indented(update)]
    for side in sides:
        step += each_of(side, first, "HERE = TOP")
    return [*t.each(["sign[l] = R(1)"]), f"for k in range({min(rows, columns)}):", *indented(step)]


def elimination_arrays(t: LanesText, rows: int, columns: int, beside: int = 0) -> None:
    """The local arrays of `eliminate`."""
    t.array("w", rows * columns)
    t.array("top", columns)
    if beside:
        t.array("v", rows * beside)
        t.array("aside", beside)
    t.array("turned", 4 * rows * max(columns, beside), shared=False)
    for name in ("best", "row", "divisor", "factor", "sign"):
        t.array(name, 1)


def lu_lanes(element_type: ElementType, count: int, rows: int, columns: int, order: bool = False) -> EmittedKernel:
    """As `factorize.emit_lu`."""
    t, steps, size = LanesText(element_type), min(rows, columns), rows * columns
    elimination_arrays(t, rows, columns)
    t.array("pivots_at", steps)
    t.read("w", "x", size)
    chosen = f"pivots_at[{t.at('k')}]"
    if order:
        t.array("place", rows)
        t.lines += [f"for i in range({rows}):", *indented(t.each([f"place[{t.at('i')}] = R(i)"]))]
        t.lines += eliminate(t, rows, columns, keeps=[f"{chosen} = row[l]"])
        mine, its = f"place[{t.at('k')}]", f"place[{t.at('i')}]"
        t.lines += [f"for k in range({steps}):", f"    for i in range(k + 1, {rows}):", *indented(t.each([
            f"here = {chosen} == R(i)", f"kept = {mine}",
            f"{mine} = select(here, {its}, kept)", f"{its} = select(here, kept, {its})",
        ]), 2)]  # fmt: skip
        last = [f"for i in range({rows}):", f"    order[it * {rows} + i] = int32({its})"]
    else:
        t.array("bad", 1)
        t.lines += t.each(["bad[l] = R(0)"])
        is_first = "bad[l] == R(0) and pivot == R(0)"
        t.lines += eliminate(
            t, rows, columns, keeps=[f"{chosen} = row[l]", f"bad[l] = select({is_first}, R(k + 1), bad[l])"]
        )
        last = ["info[it] = int32(bad[l])"]
    t.write("out", "w", size)
    first = "" if order else " + 1"
    t.lines += t.items([
        f"for k in range({steps}):", f"    pivots[it * {steps} + k] = int32({chosen}){first}", *last,
    ])  # fmt: skip
    roles = {
        "x": (element_type, 0, None), "out": (element_type, None, 0), "pivots": (ElementType.S32, None, 1),
        "order" if order else "info": (ElementType.S32, None, 2),
    }  # fmt: skip
    return t.finish("lu_lanes", roles, count, 2.0 * size + 0.2 * size * steps)


def qr_lanes(element_type: ElementType, count: int, rows: int, columns: int) -> EmittedKernel:
    """As `factorize.emit_qr`."""
    t, steps, size = LanesText(element_type), min(rows, columns), rows * columns
    t.arrays(size)
    t.array("tau", steps)
    for name in ("largest", "scale", "total", "beta", "divisor", "sum"):
        t.array(name, 1)
    t.read("w", "x", size)
    alpha, below = f"w[{t.at(f'k * {columns} + k')}]", f"w[{t.at(f'i * {columns} + k')}]"
    down = f"for i in range(k + 1, {rows}):"
    factor = f"tau[{t.at('k')}]"
    step = t.each(["largest[l] = R(0)"])
    step += [down, *indented(t.each([f"largest[l] = maximum(largest[l], abs({below}))"]))]
    step += t.each([
        f"alpha = {alpha}",
        "scale[l] = select(largest[l] == R(0), R(1), maximum(largest[l], abs(alpha)))",
        "ratio = alpha / scale[l]",
        "total[l] = ratio * ratio",
    ])  # fmt: skip
    step += [down, *indented(t.each([f"ratio = {below} / scale[l]", "total[l] = total[l] + ratio * ratio"]))]
    step += t.each([
        f"alpha = {alpha}",
        "nothing = largest[l] == R(0)",
        "norm = scale[l] * sqrt(total[l])",
        "found = select(alpha < R(0), norm, -norm)",
        f"{factor} = select(nothing, R(0), (found - alpha) / found)",
        "divisor[l] = select(nothing, R(1), alpha - found)",
        "beta[l] = select(nothing, alpha, found)",
    ])  # fmt: skip
    step += [down, *indented(t.each([f"{below} = {below} / divisor[l]"]))]
    step += [*t.reflect(rows, columns, factor), *t.each([f"{alpha} = beta[l]"])]
    t.lines += [f"for k in range({steps}):", *indented(step)]
    t.write("out", "w", size)
    t.lines += t.items([f"for k in range({steps}):", f"    factors[it * {steps} + k] = {factor}"])
    roles = {"x": (element_type, 0, None), "out": (element_type, None, 0), "factors": (element_type, None, 1)}
    return t.finish("qr_lanes", roles, count, 2.0 * size + 0.2 * size * steps)


def reflections_lanes(
    element_type: ElementType, count: int, rows: int, columns: int, number: int
) -> EmittedKernel:
    """As `factorize.emit_reflections`, in place as org2r: a column holds a reflection until its turn comes."""
    t, size = LanesText(element_type), rows * columns
    t.arrays(size)
    t.array("factor", number)
    t.array("sum", 1)
    t.read("w", "x", size)
    t.read("factor", "tau", number)
    for j in range(number, columns):
        one = f"w[{t.at(f'i * {columns} + {j}')}]"
        t.lines += [f"for i in range({rows}):", *indented(t.each([f"{one} = select(i == {j}, R(1), R(0))"]))]
    factor = f"factor[{t.at('k')}]"
    below, above = f"w[{t.at(f'i * {columns} + k')}]", f"w[{t.at(f'k * {columns} + k')}]"
    t.lines += [
        f"for step in range({number}):", f"    k = {number - 1} - step", *indented(t.reflect(rows, columns, factor)),
        f"    for i in range(k + 1, {rows}):", *indented(t.each([f"{below} = -(factor[{t.at('k')}] * {below})"]), 2),
        "    for i in range(k):", *indented(t.each([f"{below} = R(0)"]), 2),
        *indented(t.each([f"{above} = R(1) - {factor}"])),
    ]  # fmt: skip
    t.write("out", "w", size)
    roles = {"x": (element_type, 0, None), "tau": (element_type, 1, None), "out": (element_type, None, 0)}
    return t.finish("reflections_lanes", roles, count, 3.0 * size + 0.2 * size * number)
