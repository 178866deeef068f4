"""Primitive: an operation that HLO has no opcode for, with all its rules in one object.

A nested jit, a scan, a function with a derivative that the user wrote, checkpoint, and library functions such as
erf_inv are primitives. In HLO each is a composite call of a computation, and that computation is its meaning: code that
does not know the primitive may run the computation instead. The fields of `Primitive` are its other rules; a rule that
is None is derived from the meaning.

A `Call` is one use of a primitive. Traces receive it through one method, `Trace.process_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..hlo.ir import HloComputation
from ..hlo.ops.control_flow import CallAttributes, Composite
from ..hlo.support.shared_value import SharedValue

Rule = TypeVar("Rule", bound=Callable[..., Any])


@dataclass(eq=False, slots=True, weakref_slot=True)
class Primitive(SharedValue):
    """The rules of an operation for traces and transformations. Compared by identity.

    The rules take the `Call` first. `autodiff` fills in the rules of the primitives that the tracer makes. See
    `autodiff/rules/tables.py` for the types of tangents and of linear operands.
    """

    name: str
    """The composite's name in HLO text; "" for a plain call."""
    evaluate: Callable[[Call, Sequence[Any]], list[Any]]
    """evaluate(call, arrays) -> arrays: its result outside of jit."""
    is_transparent: bool = False
    """Every transformation replaces it by its meaning, operation by operation. It then needs no other rule."""
    is_linear: bool = False
    """Its results are linear in those operands that depend on tangents: a linear program keeps it as a call, and
    transposes it by its rule."""
    is_backward_only: bool = False
    """It occurs in linear programs that are transposed, and running it is an error."""
    is_exactly_once: bool = False
    """It acts on the world, so no transformation may repeat it, nor run it where the user's program would not."""
    jvp: Callable[..., tuple[list[Any], list[Any]]] | None = field(default=None)
    """jvp(call, primals, tangents) -> (results, tangents). At least one tangent is not Zero."""
    linearize: Callable[..., Any] | None = field(default=None)
    """linearize(call, primals, moving) -> `autodiff.linearize.Linearized`. None: by `jvp`, if that is set."""
    transpose: Callable[..., Sequence[Any]] | None = field(default=None)
    """transpose(call, cotangents, operands) -> a cotangent for each operand, None for zero. Operands in which the call
    is linear are `Linear`; cotangents that are zero are None."""
    batch: Callable[..., tuple[list[Any], list[bool]]] | None = field(default=None)
    """batch(call, operands, batched, axis) -> (results, batched): the rule of vmap. An operand that is batched has the
    batch as an additional first dimension. `axis`: `autodiff.batching.Axis`. None: the primitive's other rules are
    batched."""
    axes: Callable[[Call], tuple[Any, ...]] | None = field(default=None)
    """axes(call) -> the named axes that a call refers to. The rule of vmap for one of them runs even if no operand is
    batched."""

    key_uses: Callable[[Call], Any] | None = field(default=None)
    """key_uses(call) -> which keys it uses (`key_uses.Uses`), for `debug_key_reuse`. None, of the rule
    too: those that its meaning uses."""

    vma: Callable[..., Any] | None = field(default=None)
    """vma(call, the operands' vma) -> the axes of a mesh along which its result varies (`varying.py`). None: as its
    meaning's results do."""

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

    def def_batch(self, rule: Rule) -> Rule:
        """Set the rule of vmap; a decorator."""
        self.batch = rule
        return rule

    def def_key_uses(self, rule: Rule) -> Rule:
        """Set the rule of uses of keys; a decorator."""
        self.key_uses = rule
        return rule

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} cannot be pickled, nor what refers to it: a primitive is known by identity. Pickle the function "
            "that uses it, or the HLO module (`lower(...).module`), which has the primitive's meaning."
        )

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One use of a primitive, apart from its operands."""

    primitive: Primitive
    meaning: HloComputation | Callable[[list[Any]], Sequence[Any]]
    """A computation of the operands (its root is a tuple), or a function of a list of values that does the same. A
    function runs directly outside of jit, and is traced where a program is recorded."""
    params: Any = None
    """The parameters of this use, for the primitive's rules."""
    label: str = ""
    """The user's name for it; computations get this name."""
    attributes: tuple[tuple[str, str], ...] = ()
    """The composite's attributes in HLO text."""
    version: int = 1
    """The composite's version in HLO text."""
    captured: int = 0
    """How many of the last operands are values that `meaning`, when it was a function, used from outside."""
    batch_trace: Any = None
    """The `BatchTrace` under which `meaning` became a computation that captures values. Its rules may use these values,
    too: they run on batches then, and take the tracers of that trace for their own."""

    @property
    def computation(self) -> HloComputation:
        """The meaning, which is a computation already."""
        assert isinstance(self.meaning, HloComputation), f"{self.primitive} was not traced"
        return self.meaning

    def hlo_attributes(self) -> CallAttributes:
        """The attributes of the call instruction."""
        if not self.primitive.name:  # a plain call; `params` is the composite that a text gave it
            return CallAttributes(self.computation, self.params)
        return CallAttributes(self.computation, Composite(self.primitive.name, self.attributes, self, self.version))
