"""Products of matrices as algorithms: ``c[i, j] = sum over p of a[i, p] * b[p, j]``, in batches, of any element types.

Operands may lie in any order of rows and columns. Integers wrap around, so sums of 8 bits may be kept in 16, which
processors multiply. The operands may have other types than the result; nothing is converted in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...hlo.element_type import ElementType
from ...hlo.memory_pressure import on_pressure
from ..dot import Strides
from ..loops.expressions import Expr, Name, product_of, sum_of
from ..loops.statements import KernelParameter, LoopProgram, PointerParameter, SizeParameter
from ..loops.typing import is_float, pointer_to
from ..loops.writer import Writer, cast
from ..schedule.algorithm import TOTAL, Access, Algorithm, Dimension
from ..schedule.apply import write
from ..schedule.steps import Schedule
from .kernel import EmittedKernel, memory_type, program_of


@dataclass(frozen=True, slots=True)
class Form:
    """All that the text of a kernel depends on, besides its schedule: products of other sizes have the same."""

    name: str
    types: tuple[ElementType, ElementType, ElementType]
    """Of the operands and the result."""
    batch: int
    """The number of its dimensions."""
    sizes: tuple[str, ...]
    """The parameters."""
    given: tuple[tuple[str, Expr], ...]
    """Extents and strides that are no parameters: "n", "a1"."""


def type_of_sums(result: ElementType) -> str:
    """The type in which sums are kept."""
    name = memory_type(result)
    return name if is_float(name) else f"{'int' if result.is_signed else 'uint'}{8 * max(result.byte_width, 2)}"


def algorithm_of(form: Form) -> Algorithm:
    """The algorithm; its dimensions are those of the batch (`index0`, ...), and i, j and p."""
    total = type_of_sums(form.types[2])
    pointers = [Name(name, pointer_to(memory_type(t))) for name, t in zip(("x0", "x1", "out"), form.types, strict=True)]

    def access(name: str, pointer: Name, *strides: tuple[str, Expr]) -> Access:
        outer = [(f"index{d}", Name(f"step{d}_{name}")) for d in range(form.batch)]
        return Access(name, pointer, (*outer, *strides))

    given = dict(form.given)

    def value(name: str) -> Expr:
        return given.get(name, Name(name))

    return Algorithm(
        form.name,
        (
            *[Dimension(f"index{d}", Name(f"count{d}")) for d in range(form.batch)],
            Dimension("i", value("m")), Dimension("j", value("n")), Dimension("p", value("k"), is_reduced=True),
        ),
        (
            access("a", pointers[0], ("i", value("a0")), ("p", value("a1"))),
            access("b", pointers[1], ("p", value("b0")), ("j", value("b1"))),
        ),
        access("c", pointers[2], ("i", value("c0")), ("j", value("c1"))),
        sum_of(Name(TOTAL, total), product_of(Name("a", total), Name("b", total))),
        total,
        cast(total, 0),
    )  # fmt: skip


def sizes_of(
    strides: Strides, ones: frozenset[str], bands: Mapping[str, int], parts: Mapping[str, int]
) -> dict[str, int]:
    """The parameters of a product with their values. `ones`: strides that are 1 in the text. `bands`, `parts`: what a
    schedule adds."""
    steps = {"a0": strides.a[0], "a1": strides.a[1], "b0": strides.b[0], "b1": strides.b[1]}
    found = {"m": strides.m, "n": strides.n, "k": strides.k, **bands}
    found |= {**{name: value for name, value in steps.items() if name not in ones}, **parts}
    for d, dimension in reversed(list(enumerate(strides.batch))):
        of_array = zip("abc", (dimension.a_stride, dimension.b_stride, dimension.c_stride), strict=True)
        found |= {f"count{d}": dimension.count, **{f"step{d}_{name}": step for name, step in of_array}}
    return found


def emit_product(
    form: Form, schedule: Schedule, sizes: Mapping[str, int], extent: int, cost: float, least: int = 1
) -> EmittedKernel:
    """The kernel of a product under a schedule. ScheduleError if the schedule does not fit."""
    named = [SizeParameter(name, sizes[name]) for name in form.sizes]
    parameters: tuple[KernelParameter, ...] = (*_pointers(form), *named)
    return EmittedKernel(_program(form, schedule), parameters, extent, cost, least=least)


def _pointers(form: Form) -> tuple[PointerParameter, ...]:
    lhs, rhs, result = form.types
    return (
        PointerParameter("x0", lhs, 0, None), PointerParameter("x1", rhs, 1, None),
        PointerParameter("out", result, None, 0),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _program(form: Form, schedule: Schedule) -> LoopProgram:
    """It sees no size, only the form: so a program is right for all sizes that have its form."""
    writer = Writer()
    algorithm = algorithm_of(form)
    write(algorithm, schedule, writer)
    parameters: tuple[KernelParameter, ...] = (*_pointers(form), *[SizeParameter(name, 0) for name in form.sizes])
    return program_of(form.name, parameters, writer, notes=(str(algorithm), *map(str, schedule)))


def _forget() -> int:
    """Forget the programs. Nobody knows how much memory that is."""
    _program.cache_clear()
    return 0


on_pressure(_forget)
