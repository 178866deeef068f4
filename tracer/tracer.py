"""Trace and Tracer: the current meaning of operations, and the values of a traced function instead of arrays.

A Tracer belongs to one Trace, and a Trace processes Tracers: the two are one idea. The errors that a
Tracer raises when its numbers are needed are here too; the functions that bind operations to the current trace are in
`core.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.support.tracebacks import boundaries
from .arrays.array import READERS, Array
from .arrays.operators import ArrayBase, Value
from .aval import ShapedArray
from .checks.leaks import alive_of, as_text, names_of
from .errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from .primitive import Call
from .source import user_line

T = TypeVar("T")


class Trace(ABC):
    """The current meaning of operations. `parent`: the trace below, which was current when this one began.

    >>> isinstance(hloom.extend.core.find_top_trace(), hloom.core.Trace)
    True
    """

    parent: Trace | None
    activity = ""
    """For messages: `` while it is differentiated``."""
    programs: dict[Any, Any] | None = None
    """Jitted functions that were traced with values of this trace or of one below, by the types of their arguments, and
    the contents of their closures. They are forgotten when the trace ends."""
    tracks_varying: bool | None = None
    """For a trace that records: whether it records a user's function, with types that say along which axes of a mesh
    values vary. None: as the trace below."""
    differentiates = False
    """Whether values carry derivatives here. A jitted function that is given references to mutable arrays is then run
    operation by operation: its own rules may write to them when gradients are known."""

    @abstractmethod
    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        """The result of an op: one value, or a list for a tuple shape.

        `shape` is the checked type of the result. Operands are values of any enclosing trace, or concrete. A while has
        the elements of its state as operands, a conditional has the index and the elements that each branch takes.
        `bind` sets the weak type of results.
        """

    @abstractmethod
    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        """The results of a primitive."""

    def with_weak_type(self, value: Value, weak_type: bool) -> Value:
        """The same value, of a type that is weak or not."""
        if value.aval.weak_type is weak_type:
            return value
        if isinstance(value, Array):
            return value.with_aval(value.aval.with_weak_type(weak_type))
        assert isinstance(value, Tracer), f"{value!r} is no value"
        other = shallow_copy(value)
        other.aval = value.aval.with_weak_type(weak_type)
        return other

    def staged(self, value: Value) -> Value:
        """`value` as one of this trace, where a trace has separate values for operations that it does not transform."""
        return value

    def outward(self, value: Value, reference: Any) -> Value:
        """`value`, which is written to a reference from outside of this trace, as a value of the parent."""
        if isinstance(value, Tracer) and value._trace is self:
            raise leaked(value)
        return value

    def described(self) -> str:
        """For messages: `` while tracing f at file.py:3``."""
        return self.activity + ("" if self.parent is None else self.parent.described())

    @property
    def main(self) -> Trace:
        """The trace itself: libraries tell traces apart by it."""
        return self


class Tracer(ArrayBase):
    """A value that represents an array in a traced program. Transformations subclass it.

    >>> hloom.jit(lambda x: print(isinstance(x, hloom.core.Tracer)))(1.0)
    True
    """

    __slots__ = ("__weakref__", "_storage", "_trace", "aval")

    _trace: Trace
    aval: ShapedArray
    _storage: Tracer
    """Only for an extended dtype: the tracer of the array that stores the elements (`overlay.py`)."""

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self._trace = trace
        self.aval = aval

    @property
    def _buffer(self) -> Any:
        """Backends read this attribute of an Array; a tracer that gets there is used outside of its trace."""
        raise leaked(self)

    def to_concrete_value(self) -> Array | None:
        """The value if it is known while tracing (as a JVP's primal outside of jit is), else None.

        Only results without a derivative may depend on it: truth values, integers, the sizes of results. Anything else
        that is computed from it would have a derivative that is zero, and wrong.
        """
        return None

    def below(self) -> tuple[Value, int] | None:
        """The value of the trace below that is divided over devices as this one is, and how many dimensions it has in
        front; None if it is none of a transformation."""
        return None

    def origin(self) -> str:
        """The user's line that made this value, for messages; "" if unknown."""
        below = self.below()
        return below[0].origin() if below is not None and isinstance(below[0], Tracer) else ""

    def argument_names(self) -> list[str]:
        """The arguments of traced functions from which this value was computed, where their names are known."""
        below = self.below()
        return below[0].argument_names() if below is not None and isinstance(below[0], Tracer) else []

    def told_origin(self) -> str:
        """A line for messages about where this value comes from; "" if unknown."""
        origin = self.origin()
        return f"  It was created on line {origin}\n" if origin else ""

    def __getattr__(self, name: str) -> Any:
        # Reached for names that tracers do not have, and for empty slots.
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _OF_ARRAYS:
            raise AttributeError(
                f"The '{name}' attribute is not available on the traced array {self.aval.str_short()}"
                f"{self._trace.described()}: it is about an array that exists. hloom.typeof(x) gives the type."
            )
        if name in _OF_CONCRETE:
            raise self.unknown(
                f"the '{name}' attribute, which is about an array that exists, was asked for",
                "Ask outside of the traced function.",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def unknown(
        self, need: str, advice: str, error: type[ConcretizationTypeError] = ConcretizationTypeError
    ) -> ConcretizationTypeError:
        """The error where `need`, a clause, needs the value: it names the value, the place and a remedy."""
        reason = "it has no value yet" if self.to_concrete_value() is None else "its value alone has no derivative"
        lines = [f"{need}, but {self.aval.str_short()} is traced{self._trace.described()}: {reason}."]
        if error is ConcretizationTypeError:
            lines[0] = f"Abstract tracer value encountered where concrete value is expected: {lines[0]}"
        lines.append(f"  at {user_line() or '<unknown>'}")
        if origin := self.origin():
            lines.append(f"  the value was made at {origin}")
        if names := self.argument_names():
            lines.append(f"  it depends on the value of the {_listed(names)}")
        return error("\n".join([*lines, f"  {advice}"]))

    def __bool__(self) -> bool:
        known = self.to_concrete_value()
        if known is not None:
            return bool(known)
        raise self.unknown(
            f"Attempted boolean conversion of traced array with shape {self.aval.str_short()}. Python's if, while, "
            "and, or, not or assert needs a truth value",
            "Use hloom.numpy.where, hloom.lax.cond or hloom.lax.while_loop (and &, |, ~ instead of and, or, not); "
            "or make the argument it depends on static (static_argnums, static_argnames).",
            TracerBoolConversionError,
        )

    def _no_scalar(self, kind: type) -> TypeError:
        if self.aval.shape:
            return TypeError(f"Only scalar arrays can be converted to Python scalars. This is {self.aval.str_short()}")
        return self._no_number(f"a Python {kind.__name__}", kind)

    def _no_number(self, what: str, kind: type = float) -> ConcretizationTypeError:
        return self.unknown(
            f"{what} was asked for",
            f"Keep it an array (try using `x.astype({kind.__name__})`, hloom.numpy functions), or make the argument it "
            "depends on static.",
        )

    def __int__(self) -> int:
        known = self.to_concrete_value()
        if known is not None:
            return int(known)  # an integer does not change with the float it was rounded from
        raise self._no_scalar(int)

    def __float__(self) -> float:
        raise self._no_scalar(float)

    def __complex__(self) -> complex:
        raise self._no_scalar(complex)

    def __index__(self) -> int:
        known = self.to_concrete_value()
        if known is not None:
            return known.__index__()
        if self.aval.dtype.kind not in "iu" or self.aval.shape:
            raise TypeError(
                f"Only integer scalar arrays can be converted to a scalar index. This is {self.aval.str_short()}"
            )
        raise self.unknown(
            "The __index__() method was called on traced array: an integer (a size, an index into a Python sequence, a "
            "range) was asked for",
            "Sizes must be known while tracing: make the argument static, or use hloom.lax.dynamic_slice, "
            "hloom.lax.dynamic_index_in_dim or hloom.lax.fori_loop.",
            TracerIntegerConversionError,
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise self.unknown(
            "The numpy.ndarray conversion method __array__() was called on traced array: NumPy (or other code outside "
            "of the traced program) asked for the numbers",
            "Use the function of the same name in hloom.numpy, or call NumPy outside of the traced function.",
            TracerArrayConversionError,
        )

    def item(self, *args: int) -> Any:
        raise self._no_number("The item() method was called on traced array: a Python number")

    def tolist(self) -> Any:
        raise self._no_number("The tolist() method was called on traced array: a list")

    def tobytes(self, order: Any = "C") -> bytes:
        raise self._no_number("The tobytes() method was called on traced array: the memory")

    def __dlpack__(self, **options: Any) -> Any:
        raise self._no_number("a DLPack capsule")

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        known = self.to_concrete_value()
        if known is not None:
            return format(known, spec)  # to look at: no derivative is taken of text
        raise self._no_number("a formatted number")

    def __reduce__(self) -> Any:
        raise ConcretizationTypeError(f"{self!r} cannot be pickled: it has no value while tracing")

    def __copy__(self) -> Tracer:
        return self  # arrays do not change

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"


_OF_ARRAYS = frozenset({"sharding", "block_until_ready", "copy_to_host_async", "device", "format"})
"""Attributes of arrays; for tracers they raise AttributeError."""
_OF_CONCRETE = frozenset(
    {
        *("addressable_data", "addressable_shards", "committed", "delete", "devices", "global_shards", "is_deleted"),
        *("is_fully_addressable", "is_fully_replicated", "on_device_size_in_bytes", "unsafe_buffer_pointer"),
    }
)
"""Attributes of arrays; for tracers they raise the error of a value that is not known yet."""
boundaries(Tracer, "__getattr__", *READERS)


def _listed(names: Sequence[str]) -> str:
    """``argument x and of the argument y``; of many, the first ones."""
    shown = [f"argument {name}" for name in names[:_MOST_NAMES]]
    more = len(names) - len(shown)
    return " and of the ".join(shown) + (f" and of {more} more" if more else "")


_MOST_NAMES = 4


def shallow_copy(tracer: T) -> T:
    """A tracer with the same slots."""
    other = object.__new__(type(tracer))
    for cls in type(tracer).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if slot != "__weakref__" and hasattr(tracer, slot):
                object.__setattr__(other, slot, getattr(tracer, slot))
    return other


def check_for_leaks(trace: Trace) -> None:
    """UnexpectedTracerError if the user's program still holds values of `trace`, which has ended. A setting enables it
    (`checking_leaks`)."""
    alive = alive_of(trace, Tracer)
    lines = [
        f"{tracer!r}\n{tracer.told_origin()}{as_text(names)}"
        for tracer, names in zip(alive, names_of(alive, Tracer))
        if names
    ]
    if lines:
        raise UnexpectedTracerError(
            f"Leaked tracers{trace.described()}: the function has returned, and these values are not among its "
            f"results, but something still refers to them.\n{''.join(lines)}"
            "  Return them from the traced function instead of storing them."
        )


def leaked(tracer: Value) -> UnexpectedTracerError:
    """The error for a tracer used outside of its trace."""
    assert isinstance(tracer, Tracer), f"{tracer!r} is concrete"
    return UnexpectedTracerError(
        f"Encountered an unexpected tracer. {tracer!r} was used after the function that made it"
        f"{tracer._trace.described()} had returned, or outside of it: the value leaked, perhaps through global state, "
        "a list or an attribute.\n"
        f"  used at {user_line() or '<unknown>'}\n"
        + tracer.told_origin()
        + as_text(names_of([tracer], Tracer)[0])
        + "  Return it from the traced function instead of storing it."
    )
