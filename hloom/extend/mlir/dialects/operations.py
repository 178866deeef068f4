"""The functions of `stablehlo` and `chlo`: each applies one operation to arrays.

They follow from the table of operations (`hlo/stablehlo/ops.py`): there is a function for each operation without
attributes and regions if the types of its operands determine the type of its result. JAX's functions of the same names
take values of MLIR.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Any, Protocol

from ....hlo.builder import check_shape
from ....hlo.element_type import ElementType
from ....hlo.errors import ShapeError
from ....hlo.ir import NO_ATTRIBUTES
from ....hlo.opcode import Opcode
from ....hlo.ops import spec_of
from ....hlo.shape import Shape
from ....hlo.stablehlo.ops import OPS, mappings_of, regions_of
from ....tracer.arrays.array import as_value
from ....tracer.core import Value, bind

_TYPED = (Opcode.CONVERT, Opcode.BITCAST_CONVERT, Opcode.RESHAPE)
"""MLIR's functions take the type of the result."""


_KINDS = ("f32", "s32", "pred", "c64")
"""Element types of the operands that a text lists."""
_SIZES = (2, 3)
"""Their dimensions."""


class Operation(Protocol):
    """A function of arrays. `loc` and `ip`, of MLIR, are not looked at."""

    def __call__(self, *operands: Any, loc: Any = None, ip: Any = None) -> Value: ...


def operations(dialect: str) -> dict[str, Operation]:
    """The functions of a dialect, by name; one that is a keyword has an underscore behind it, as in MLIR."""
    return {
        (name := _identifier(op.name.removeprefix(f"{dialect}."))): _function(op.opcode, op.name, f"{dialect}.{name}")
        for op in OPS
        if op.name.startswith(f"{dialect}.")
        and not (mappings_of(op) or regions_of(op) or op.opcode in _TYPED or op.left_out)
    }


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _function(opcode: Opcode, name: str, written: str) -> Operation:
    def apply(*operands: Any, loc: Any = None, ip: Any = None) -> Value:
        return bind(opcode, [as_value(operand) for operand in operands])

    apply.__name__ = apply.__qualname__ = name.rpartition(".")[2]
    apply.__doc__ = _text(opcode, name, written)
    return apply


def _text(opcode: Opcode, name: str, written: str) -> str:
    """The text of a function, with the first types that the operation's shape rule takes as its example."""
    types = list(_types(opcode))
    operands, result = types[0]
    arguments = ", ".join(f'jnp.ones({shape.dimensions}, "{shape.element.dtype}")' for shape in operands)
    taken = dict.fromkeys(f"{', '.join(map(_name, shapes))} to {_name(made)}" for shapes, made in types)
    described = f" of arrays, by dtypes: {'; '.join(taken)}" if operands else f": {_name(result)}[]"
    return f"""The operation {name}{described}.

    `loc` and `ip`, of MLIR, are not looked at. OperandError (a ValueError and TypeError): another number of operands,
    other dtypes, or shapes that do not fit. Nothing is broadcast.

    >>> from hloom import numpy as jnp
    >>> from hloom.extend.mlir.dialects import {written.partition(".")[0]}
    >>> {written}({arguments}).aval.str_short()
    '{_name(result)}[{",".join(map(str, result.dimensions))}]'
    """


def _name(shape: Shape) -> str:
    return shape.element.dtype.name


def _types(opcode: Opcode) -> Iterator[tuple[list[Shape], Shape]]:
    """Types of operands that an operation takes, one for each of `_KINDS`, and the types of the results."""
    arity = spec_of(opcode).arity
    for kind in _KINDS if arity != 0 else _KINDS[:1]:
        x, place = Shape.array(ElementType(kind), _SIZES), Shape.array(ElementType.S32)
        condition = Shape.array(ElementType.PRED, _SIZES)
        of_one_type = [x, x, *[place] * len(_SIZES)] if arity is None else [x] * arity
        for shapes in (of_one_type, [condition, *of_one_type[1:]])[: 2 if arity == 3 else 1]:
            try:
                made = check_shape(opcode, shapes, NO_ATTRIBUTES, None)
            except ShapeError:
                continue
            yield shapes, made
            break


def missing(dialect: str, name: str) -> AttributeError:
    """The error for a name that is not there."""
    return AttributeError(
        f"hloom.extend.mlir.dialects.{dialect} has no {name}: it has the operations without attributes and regions. "
        "Others are functions of hloom.lax, in a lowering of mlir.lower_fun(function_of_arrays, multiple_results=...)"
    )
