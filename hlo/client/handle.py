"""The values that a ComputationBuilder returns: handles of values that will be computed, and finished computations."""

from __future__ import annotations

from ..builder import make_module
from ..errors import HloError, ShapeError
from ..ir import HloComputation, HloInstruction, HloModule
from ..shape import Shape
from ..support.lazy import lazy_property


class BuildError(ShapeError):
    """A method of a ComputationBuilder got arguments that it cannot use.

    The message names the method, the operands' shapes, the violated rule, and the user's line. `label` is the violated
    rule's: `<opcode>_c<N>` (see `hlo/ops`), `broadcasting_c<N>` (`hlo/broadcasting.py`), or `builder_c<N>`:

    * builder_c1: an operand is a ComputationDataHandle
    * builder_c2: it belongs to this builder, and to the computation that is being built
    * builder_c3: there is something to build
    * builder_c4: parameters are numbered 0 to n-1, each once
    * builder_c5: a computation argument is a Computation that was built
    * builder_c6: sizes, dimensions, strides and the like are integers, in the right number
    * builder_c7: a value has the shape that was claimed for it
    * builder_c8: a value that is computed at once is constant: it depends on no parameter and on nothing from outside
    * builder_c9: a constant has an element type, and the rank and range that the method's name says
    * builder_c10: an op that exists only for some ranks or element types gets one of these
    * builder_c11: any other argument is of its kind: a Shape, an element type, a number, a PaddingConfig, one of
      Padding, dimension numbers, text
    """

    is_complete = True

    def __init__(self, message: str, label: str = "", method: str = "") -> None:
        super().__init__(message)
        self.label, self.method = label, method


class ComputationDataHandle:
    """A value of a computation that is being built. It belongs to its builder, and is invalid after `build`."""

    __slots__ = ("_construction", "_instruction")

    def __init__(self, construction: object, instruction: HloInstruction | None) -> None:
        """`construction`: the construction that it belongs to. `instruction`: None for the result of an operation that
        failed."""
        self._construction = construction
        self._instruction = instruction

    @property
    def failed(self) -> bool:
        """True if the operation for this value failed; operations on it then fail silently."""
        return self._instruction is None

    @property
    def instruction(self) -> HloInstruction:
        """The HLO instruction that makes the value. HloError if the operation failed."""
        if self._instruction is None:
            raise HloError("this value was never made: an operation failed; the builder's first_error says which")
        return self._instruction

    @property
    def shape(self) -> Shape:
        """The (inferred) shape of the value."""
        return self.instruction.shape

    def __repr__(self) -> str:
        return "<ComputationDataHandle: failed>" if self.failed else f"<ComputationDataHandle {self.instruction!r}>"


class Computation:
    """A finished computation: an argument for `call`, `reduce`, `map`, `while_` and the like, and for a client.

    Any HloComputation, for example one that was parsed, can be wrapped in it.
    """

    def __init__(self, hlo: HloComputation | None) -> None:
        """`hlo`: None for the empty computation that `build_and_note_error` returns when building failed."""
        self._hlo = hlo

    @property
    def is_null(self) -> bool:
        """True if building failed: operations that use this computation fail silently."""
        return self._hlo is None

    @property
    def hlo(self) -> HloComputation:
        """The computation as HLO. HloError if there is none."""
        if self._hlo is None:
            raise HloError("this computation was never built: its first error is noted in the parent builder")
        return self._hlo

    @property
    def name(self) -> str:
        return self.hlo.name

    @property
    def parameter_shapes(self) -> tuple[Shape, ...]:
        """The type of each parameter."""
        return tuple(p.shape for p in self.hlo.parameters)

    @property
    def result_shape(self) -> Shape:
        return self.hlo.root.shape

    @lazy_property
    def module(self) -> HloModule:
        """The program with this computation as its entry."""
        return make_module(self.name, self.hlo)

    def to_text(self) -> str:
        """The program in XLA's HLO syntax."""
        return self.module.to_text()

    def __repr__(self) -> str:
        if self.is_null:
            return "<Computation: not built>"
        parameters = ", ".join(map(str, self.parameter_shapes))
        return f"<Computation {self.name}: ({parameters}) -> {self.result_shape}>"
