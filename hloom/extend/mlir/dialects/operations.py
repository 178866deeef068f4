"""The functions of `stablehlo` and `chlo`: each applies one operation to arrays.

They follow from the table of operations (`hlo/stablehlo/ops.py`): there is a function for each operation without
attributes and regions if the types of its operands determine the type of its result. JAX's functions of the same names
take values of MLIR.
"""

from __future__ import annotations

import keyword
from typing import Any, Protocol

from ....hlo.opcode import Opcode
from ....hlo.stablehlo.ops import OPS, mappings_of, regions_of
from ....tracer.arrays.array import as_value
from ....tracer.core import Value, bind

_TYPED = (Opcode.CONVERT, Opcode.BITCAST_CONVERT, Opcode.RESHAPE)
"""MLIR's functions take the type of the result."""


class Operation(Protocol):
    """A function of arrays. `loc` and `ip`, of MLIR, are not looked at."""

    def __call__(self, *operands: Any, loc: Any = None, ip: Any = None) -> Value: ...


def operations(dialect: str) -> dict[str, Operation]:
    """The functions of a dialect, by name; one that is a keyword has an underscore behind it, as in MLIR."""
    return {
        _identifier(op.name.removeprefix(f"{dialect}.")): _function(op.opcode, op.name)
        for op in OPS
        if op.name.startswith(f"{dialect}.")
        and not (mappings_of(op) or regions_of(op) or op.opcode in _TYPED or op.left_out)
    }


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _function(opcode: Opcode, name: str) -> Operation:
    def apply(*operands: Any, loc: Any = None, ip: Any = None) -> Value:
        return bind(opcode, [as_value(operand) for operand in operands])

    apply.__name__ = apply.__qualname__ = name.rpartition(".")[2]
    apply.__doc__ = f"{name} of arrays. `loc` and `ip`, of MLIR, are not looked at."
    return apply


def missing(dialect: str, name: str) -> AttributeError:
    """The error for a name that is not there."""
    return AttributeError(
        f"hloom.extend.mlir.dialects.{dialect} has no {name}: it has the operations without attributes and regions. "
        "Others are functions of hloom.lax, in a lowering of mlir.lower_fun(function_of_arrays, multiple_results=...)"
    )
