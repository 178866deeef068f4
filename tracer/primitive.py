"""Primitive: an operation that HLO has no opcode for, and all that is known of it in one object.

A nested jit, a scan, a function with a derivative that the user wrote, checkpoint, and library functions such as
erf_inv are primitives. In HLO each is a composite call of a computation, and that computation is its meaning: whoever
does not know the primitive may run the computation in its place. The fields of `Primitive` say what else is known. A
field that is None means: the same as for its meaning.

A `Call` is one use of a primitive. Traces get it whole, by one method, `Trace.process_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..hlo.ir import HloComputation
from ..hlo.ops.control_flow import CallAttributes, Composite

Rule = TypeVar("Rule", bound=Callable[..., Any])


@dataclass(eq=False, slots=True)
class Primitive:
    """What traces and transformations know of an operation. Compared by identity.

    The rules take the `Call` first. `autodiff` fills in those of the primitives that the tracer makes. See
    `autodiff/rules/tables.py` for the types of tangents and of linear operands.
    """

    name: str
    """The composite's name in HLO text; "" for a plain call."""
    evaluate: Callable[[Call, Sequence[Any]], list[Any]]
    """evaluate(call, arrays) -> arrays: what it does outside of jit."""
    is_transparent: bool = False
    """Its meaning takes its place in every transformation, operation by operation. It then needs no other rule."""
    is_linear: bool = False
    """Its results are linear in those operands that depend on tangents: a linear program keeps it as a call, which is
    transposed by its own rule."""
    is_backward_only: bool = False
    """It occurs in linear programs that are transposed, and running it is an error."""
    jvp: Callable[..., tuple[list[Any], list[Any]]] | None = field(default=None)
    """jvp(call, primals, tangents) -> (results, tangents). At least one tangent is not Zero."""
    linearize: Callable[..., Any] | None = field(default=None)
    """linearize(call, primals, moving) -> `autodiff.linearize.Linearized`. None: by `jvp` where there is that rule."""
    transpose: Callable[..., Sequence[Any]] | None = field(default=None)
    """transpose(call, cotangents, operands) -> a cotangent for each operand, None for zero. Operands in which the call
    is linear are `Linear`; cotangents that are zero are None."""
    batch: Callable[..., tuple[list[Any], list[Any]]] | None = field(default=None)
    """batch(call, operands, dimensions, axis) -> (results, dimensions): the rule of vmap."""

    def def_jvp(self, rule: Rule) -> Rule:
        """Set the jvp rule; a decorator."""
        self.jvp = rule
        return rule

    def def_linearize(self, rule: Rule) -> Rule:
        """Set the rule of linearisation; a decorator."""
        self.linearize = rule
        return rule

    def def_transpose(self, rule: Rule) -> Rule:
        """Set the transpose rule; a decorator."""
        self.transpose = rule
        return rule

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One use of a primitive, apart from its operands."""

    primitive: Primitive
    meaning: HloComputation | Callable[[list[Any]], Sequence[Any]]
    """A computation of the operands (its root is a tuple), or a function of a list of values that does the same. A
    function runs as it is outside of jit, and is traced where a program is recorded."""
    params: Any = None
    """What the primitive's rules need to know of this use."""
    label: str = ""
    """What the user calls it; computations get this name."""
    attributes: tuple[tuple[str, str], ...] = ()
    """The composite's attributes in HLO text."""
    captured: int = 0
    """How many of the last operands are values that `meaning` used from outside when it was a function."""

    @property
    def computation(self) -> HloComputation:
        """The meaning, which is a computation already."""
        assert isinstance(self.meaning, HloComputation), f"{self.primitive} was not traced"
        return self.meaning

    def hlo_attributes(self) -> CallAttributes:
        """The attributes of the call instruction."""
        if not self.primitive.name:  # a plain call; `params` is the composite that a text gave it
            return CallAttributes(self.computation, self.params)
        return CallAttributes(self.computation, Composite(self.primitive.name, self.attributes, self))
