"""Functions without a computation: barriers, marks, tokens, constants to differentiation, questions about types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..hlo.shape import Shape
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.float0 import is_float0
from ..tracer.arrays.operators import ArrayBase
from ..tracer.core import Call, Primitive, Value, bind, bind_call, bind_declared, current_trace
from ..tracer.token import Token
from ..tracer.trees import tree

T = TypeVar("T")


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype of an array, of a number as an array, or of a type or a name.

    >>> lax.dtype(1.5), lax.dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, type | str | np.dtype):
        return dtypes.requested_dtype(x, "dtype")
    known = isinstance(x, ArrayBase | bool | int | float | complex) or is_float0(x)
    return dtypes.type_of(x if known else as_value(x))[0]


def optimization_barrier(operand: T, /) -> T:
    """The operand (a pytree): no pass moves work across it.

    >>> hloom.jit(lambda x: lax.optimization_barrier(x + 1) - 1)(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    return cast(T, tree.map(lambda leaf: bind(Opcode.OPT_BARRIER, (as_value(leaf),)), operand))


def stage(x: Any, /) -> Value:
    """The array or number as a value of the function that is traced: under jit a tracer. Outside of that, an array.

    >>> lax.stage(1.5)
    Array(1.5, dtype=float32, weak_type=True)
    """
    return current_trace().staged(as_value(x))


# ---- marks


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Mark the arrays of `val` (a pytree) as used.

    Only with `prevent_mlir_dce` is the mark an instruction: a custom call with a side effect that does nothing, so that
    no pass drops the computation of its operand. Without it nothing is computed for the mark.

        >>> def f(x):
        ...     hloom.lax.dce_sink(x + 1, prevent_mlir_dce=True)
        ...     return x
        >>> "dce_sink" in hloom.jit(f).lower(1.0).as_text()
        True
    """
    values = [as_value(leaf) for leaf in tree.leaves(val)]
    if prevent_mlir_dce:
        _sink(values)


def _sink(values: Sequence[Value]) -> None:
    for value in values:
        bind_call(Call(_DCE_SINK, _sink_meaning, label="dce_sink"), [value])


def _sink_meaning(values: list[Value]) -> list[Value]:
    attributes = CustomCallAttributes("dce_sink", "{}", CustomCallApiVersion.TYPED_FFI, has_side_effect=True)
    bind_declared(Opcode.CUSTOM_CALL, values, attributes, Shape.tuple([]))
    return []


_DCE_SINK = Primitive("dce_sink", evaluate=lambda call, arrays: [])


@_DCE_SINK.def_jvp
def _sink_jvp(call: Call, primals: Sequence[Value], tangents: Any) -> tuple[list[Value], list[Any]]:
    _sink(primals)
    return [], []


@_DCE_SINK.def_batch
def _sink_batch(
    call: Call, operands: Sequence[Value], batched: Any, axis: Any
) -> tuple[list[Value], list[bool]]:
    _sink(operands)
    return [], []


# ---- tokens


def create_token(_: Any = None) -> Token:
    """A token: a value without content that older programs pass from one effect to the next.

    Effects happen in the order of the program without tokens, so a token is no value of the compiled program: it is a
    pytree without arrays, which jit, loops and vmap hand through. The argument is ignored.

    >>> token = lax.create_token()
    >>> type(lax.after_all(token, token)).__name__
    'Token'
    """
    return Token()


def after_all(*operands: Any) -> Token:
    """One token for several. TypeError for an operand that is no token.

    >>> type(lax.after_all(lax.create_token(), lax.create_token())).__name__
    'Token'
    """
    for operand in operands:
        if not isinstance(operand, Token):
            raise TypeError(
                f"Arguments to after_all must be tokens, not {type(operand).__name__}\n  Make one with "
                "hloom.lax.create_token()."
            )
    return Token()
