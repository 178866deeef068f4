"""Sums of a product's tile in vector registers, in C.

GCC keeps an array such as ``row0`` in memory, and its sums with it. So the innermost loops of a product are printed
with the vectors of GCC and Clang, and for other compilers as they are::

    #if defined(__AVX__)
        vec32_f32 row0v0, row0v1;
        memcpy(&row0v0, row0, 32);
        ...
        for (int64_t p = 0; p < deep; ++p) {
            const float factor0 = a[from_a + p];
            ...
            vec32_f32 other0, other1;
            memcpy(&other0, panel + p * 16, 32);
            ...
            row0v0 = row0v0 + factor0 * other0;
            ...
        }
        memcpy(row0, &row0v0, 32);
    #elif ...

Products and sums are rounded as in the plain loop.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.support.records import dataclass
from ..loops.expressions import Binary, Expr, Load, Name, Number
from ..loops.statements import Assign, For, LocalArray, Statement, Store

TYPES = {"float32": ("f32", "float", 4), "float64": ("f64", "double", 8)}


@dataclass(frozen=True, slots=True)
class Sums:
    """The loop ``for p: ...; for j in range(width): row[j] = row[j] + factor * other[index + j]`` for several rows."""

    loop: For
    width: int
    assigns: tuple[Assign, ...]
    rows: tuple[tuple[Name, Name], ...]
    """The array of a row, and its factor."""
    other: Name
    index: Expr


def sums_of(loop: Statement, arrays: dict[str, LocalArray]) -> Sums | None:
    """The loop as `Sums`, or None if it is another one."""
    if not isinstance(loop, For) or loop.step != 1 or loop.start is not None:
        return None
    assigns: list[Assign] = []
    rows: list[tuple[Name, Name]] = []
    others: list[tuple[Name, Expr]] = []
    width = 0
    for statement in loop.body:
        match statement:
            case Assign(targets=[_]):
                assigns.append(statement)
            case For(
                variable=Name(name=j), start=None, stop=Number(value=count), step=1,
                body=[Store(pointer=row, index=Name(name=to), value=Binary(
                    op="+", left=Load(pointer=same, index=Name(name=at)),
                    right=Binary(op="*", left=Name() as factor, right=Load(pointer=other, index=Binary(
                        op="+", left=index, right=Name(name=last)))),
                ))],
            ) if j == to == at == last and row.name == same.name and row.name in arrays:  # fmt: skip
                if arrays[row.name].count != count or width not in (0, count):
                    return None
                width = int(count)
                rows.append((row, factor))
                others.append((other, index))
            case _:
                return None
    if not rows or len({(other.name, index.text) for other, index in others}) != 1:
        return None
    kind = TYPES.get(arrays[rows[0][0].name].dtype)
    if kind is None or width * kind[2] % 32 or len({row.name for row, _ in rows}) != len(rows):
        return None
    return Sums(loop, width, tuple(assigns), tuple(rows), *others[0])


def in_vectors(sums: Sums, dtype: str, plain: list[str], text: Callable[[Expr], str], name: Callable[[str], str],
               assigned: Callable[[Assign], list[str]]) -> list[str]:  # fmt: skip
    """The loop in C, in three forms. `plain`: the loop as it is; the functions print parts of it."""
    lines = ["#if defined(__AVX__)", *_form(sums, dtype, 32, text, name, assigned)]
    lines += ["#elif defined(__GNUC__)", *_form(sums, dtype, 16, text, name, assigned)]
    return [*lines, "#else", *plain, "#endif"]


def _form(sums: Sums, dtype: str, nbytes: int, text: Callable[[Expr], str], name: Callable[[str], str],
          assigned: Callable[[Assign], list[str]]) -> list[str]:  # fmt: skip
    short, _, size = TYPES[dtype]
    vector = f"vec{nbytes}_{short}"
    lanes = nbytes // size
    parts = range(sums.width // lanes)
    rows = [(name(row.name), name(factor.name)) for row, factor in sums.rows]
    inner = [line for statement in sums.assigns for line in assigned(statement)]  # the index may be one of them
    other, index = name(sums.other.name), text(sums.index)
    inner += [f"{vector} {', '.join(f'other{v}' for v in parts)};"]
    inner += [f"memcpy(&other{v}, {other} + {index} + {v * lanes}, {nbytes});" for v in parts]
    inner += [f"{row}v{v} = {row}v{v} + {factor} * other{v};" for row, factor in rows for v in parts]
    counter = name(sums.loop.variable.name)
    stop = text(sums.loop.stop)
    lines = [f"{vector} {', '.join(f'{row}v{v}' for row, _ in rows for v in parts)};"]
    lines += [f"memcpy(&{row}v{v}, {row} + {v * lanes}, {nbytes});" for row, _ in rows for v in parts]
    lines += [f"for (int64_t {counter} = 0; {counter} < {stop}; ++{counter}) {{"]
    lines += [*("    " + line for line in inner), "}"]
    lines += [f"memcpy({row} + {v * lanes}, &{row}v{v}, {nbytes});" for row, _ in rows for v in parts]
    return ["{", *("    " + line for line in lines), "}"]


def typedefs(dtype: str) -> str:
    """The types of vectors."""
    short, c, _ = TYPES[dtype]
    lines = [f"typedef {c} vec{n}_{short} __attribute__((vector_size({n})));" for n in (32, 16)]
    return "\n".join(["#ifdef __GNUC__", *lines, "#endif", ""])
