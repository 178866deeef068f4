"""Products of matrices as algorithms: ``c[i, j] = sum over p of a[i, p] * b[p, j]``, in batches, of any element types.

Operands may be stored in any order of rows and columns. Integers wrap around, so sums of 8 bits may be kept in 16,
which processors multiply. The operands may have other types than the result; nothing is converted in memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.support.records import dataclass
from ..dot import Strides, strides_of
from ..emitted_kernel import EmittedKernel, memory_type
from ..loops.expressions import Expr, Name, Number, call, sum_of, times
from ..loops.expressions import product_of as times_of
from ..loops.statements import PointerParameter
from ..loops.typing import is_float, pointer_to
from ..loops.writer import cast
from ..runtime.blas import Gemm
from ..schedule.algorithm import TOTAL, Access, Algorithm, Dimension, Word
from ..schedule.apply import kernel_of
from ..schedule.steps import Schedule
from .words import Words


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices, or a batch of them."""

    types: tuple[ElementType, ElementType, ElementType]
    """Of the operands and the result."""
    strides: Strides
    c_row: int
    """The distance between neighbouring rows of the result."""
    conjugates: tuple[str, ...] = ()
    """The operands, "a" or "b", that are conjugated."""
    adds: bool = False
    """The product is added to the stored values."""
    words: Words | None = None
    """The operands are packed into words."""

    @property
    def indices(self) -> tuple[str, ...]:
        """The dimensions of the batch."""
        return tuple(f"index{d}" for d in range(len(self.strides.batch)))

    @property
    def depth(self) -> int:
        """The number of terms, or of words of them, in a sum."""
        return -(-self.strides.k // self.words.per_word) if self.words else self.strides.k

    def sizes(self, bands: Mapping[str, int], parts: Mapping[str, int]) -> dict[str, int]:
        """The sizes and strides by name, and the parameters that a schedule adds."""
        (a0, a1), (b0, b1), strides = self.strides.a, self.strides.b, self.strides
        found = {"m": strides.m, "n": strides.n, "k": self.depth, **bands}
        if self.depth < strides.k:
            found["terms"] = strides.k
        found |= {"a0": a0, "a1": a1, "b0": b0, "b1": b1, "c0": self.c_row, "c1": 1, **parts}
        for d, dimension in reversed(list(enumerate(strides.batch))):
            of_array = zip("abc", (dimension.a_stride, dimension.b_stride, dimension.c_stride), strict=True)
            found |= {f"count{d}": dimension.count, **{f"step{d}_{name}": step for name, step in of_array}}
        return found


def product_of(dot: HloInstruction, words: Words | None = None) -> Product:
    """The product that a `dot` is. Operands and result are dense, and BLAS could take them."""
    lhs, rhs = dot.operands
    strides = strides_of(dot)
    return Product((lhs.shape.element, rhs.shape.element, dot.shape.element), strides, strides.n, words=words)


def product_of_gemm(gemm: Gemm) -> Product:
    """The product of a BLAS call with alpha = 1 and beta = 0 or 1."""
    a = (gemm.lda, 1) if gemm.transpose_a == "N" else (1, gemm.lda)
    b = (gemm.ldb, 1) if gemm.transpose_b == "N" else (1, gemm.ldb)
    element = ElementType(gemm.dtype)
    transposed = (("a", gemm.transpose_a), ("b", gemm.transpose_b))
    return Product(
        (element, element, element), Strides(gemm.m, gemm.n, gemm.k, a, b, tuple(gemm.batch)), gemm.ldc,
        tuple(name for name, how in transposed if how == "C"), gemm.beta == 1,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """All that the text of a kernel depends on, besides its schedule: products of other sizes have the same."""

    name: str
    types: tuple[ElementType, ElementType, ElementType]
    """Of the operands and the result."""
    batch: int
    """The number of its dimensions."""
    given: tuple[tuple[str, Expr], ...]
    """Extents and strides that are no parameters: "n", "a1"."""
    conjugates: tuple[str, ...] = ()
    """The operands, "a" or "b", that are conjugated."""
    adds: bool = False
    """The product is added to the stored values."""
    words: Words | None = None
    """The operands are packed into words."""
    least_bytes: int = 2
    """A sum of integers has at least so many."""


def type_of_sums(result: ElementType, least_bytes: int = 2) -> str:
    """The type in which sums are kept."""
    name = memory_type(result)
    if is_float(name) or result.is_complex:
        return name
    return f"{'int' if result.is_signed else 'uint'}{8 * max(result.byte_width, least_bytes)}"


def algorithm_of(form: Form) -> Algorithm:
    """The algorithm. Its dimensions are the batch dimensions (`index0`, ...), i, j and p."""
    words, result = form.words, form.types[2]
    total = words.total if words else type_of_sums(result, form.least_bytes)
    pointers = [Name(name, pointer_to(memory_type(t))) for name, t in zip(("x0", "x1", "out"), form.types, strict=True)]

    given = dict(form.given)

    def value(name: str) -> Expr:
        return given.get(name, Name(name))

    def access(name: str, pointer: Name, *strides: tuple[str, Expr], word: Word | None = None) -> Access:
        outer = [(f"index{d}", value(f"step{d}_{name}")) for d in range(form.batch)]
        return Access(name, pointer, (*outer, *strides), word=word)

    def factor(name: str) -> Expr:
        operand = Name(name, words.word if words else total)
        return call("conj", operand) if name in form.conjugates else operand

    def word(number: int, step: Expr) -> Word | None:
        if words is None:
            return None
        function = "" if words.function else f"{form.types[number].value}_to_f32"
        return Word(words.word, "p", words.per_word, step, Name("terms"), function, words.flips and number == 0)

    per_word = Number(words.per_word if words else 1)
    a1, b0 = value("a1"), value("b0")
    updates = words.updates(factor("a"), factor("b")) if words else None

    return Algorithm(
        form.name,
        (
            *[Dimension(f"index{d}", value(f"count{d}")) for d in range(form.batch)],
            Dimension("i", value("m")), Dimension("j", value("n")), Dimension("p", value("k"), is_reduced=True),
        ),
        (
            access("a", pointers[0], ("i", value("a0")), ("p", times(per_word, a1)), word=word(0, a1)),
            access("b", pointers[1], ("p", times(per_word, b0)), ("j", value("b1")), word=word(1, b0)),
        ),
        access("c", pointers[2], ("i", value("c0")), ("j", value("c1"))),
        updates[0] if updates else sum_of(Name(TOTAL, total), times_of(factor("a"), factor("b"))),
        total,
        zero_of(result) if result.is_complex else cast(total, 0),
        form.adds,
        stored=words.finished(result) if words else None,
        with_subnormals=updates[1] if updates else None,
    )  # fmt: skip


def zero_of(element: ElementType) -> Expr:
    """0 as an element of a type is stored."""
    if not element.is_complex:
        return cast(memory_type(element), 0)
    part = cast(memory_type(element.real), 0)
    return call("complex_from", part, part)


def emit_product(
    name: str, product: Product, schedule: Schedule, extent: int, cost: float, least: int = 1, *,
    given: Mapping[str, Expr] | None = None, bands: Mapping[str, int] | None = None,
    parts: Mapping[str, int] | None = None, least_bytes: int = 2,
) -> EmittedKernel:  # fmt: skip
    """The kernel of a product under a schedule. ScheduleError if the schedule does not fit. `given`: extents and
    strides that are no parameters. `bands`, `parts`: parameters that the schedule's steps name. `least_bytes`: of a sum
    of integers."""
    known = given or {}
    sizes = {name: value for name, value in product.sizes(bands or {}, parts or {}).items() if name not in known}
    batch = len(product.strides.batch)
    form = Form(
        name, product.types, batch, tuple(known.items()), product.conjugates, product.adds, product.words, least_bytes
    )
    return kernel_of(form, algorithm_of, _pointers(form), sizes, schedule, extent, cost, least)


def _pointers(form: Form) -> tuple[PointerParameter, ...]:
    lhs, rhs, result = form.types
    return (
        PointerParameter("x0", lhs, 0, None), PointerParameter("x1", rhs, 1, None),
        PointerParameter("out", result, None, 0),
    )  # fmt: skip
