"""Give Numba the functions of the dialect, and of the runtime's own language, as intrinsics. Imports Numba.

Numba is told the types and the LLVM IR of dialect_define.py's functions; nothing is defined twice. An array of one
dimension stands for a pointer to its elements, for kernels that people run under `numba.njit`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from numba import types
from numba.core.cgutils import create_struct_proxy
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic

from .dialect_define import Cast, DialectError, DialectFunction, Kind
from .math.value import Float, kept_apart


def numba_type(name: str) -> Any:
    """The Numba type of a type's name: `CPointer(float32)` for ``float32*``."""
    if name.endswith("*"):
        return types.CPointer(numba_type(name[:-1]))
    return getattr(types, {"bool": "boolean"}.get(name, name))


def numba_scope(scope: Mapping[str, object]) -> dict[str, object]:
    """A scope of a kernel's text as globals for Numba."""
    return {name: _for_numba(value) for name, value in scope.items()}


def _for_numba(value: object) -> object:
    if isinstance(value, Cast):
        return numba_type(value.type)
    return _intrinsic(value) if isinstance(value, DialectFunction) else value


@functools.cache
def _intrinsic(function: DialectFunction) -> Any:
    # Numba reads the number of arguments from the signature of the function itself.
    parameters = "".join(f", a{index}" for index in range(function.arity))
    namespace: dict[str, Any] = {"typed": lambda *given: _typed(function, given)}
    exec(f"def {function.name}(typingctx{parameters}):\n    return typed({parameters[2:]})", namespace)
    return intrinsic(namespace[function.name])


def _typed(function: DialectFunction, given: tuple[Any, ...]) -> Any:
    own = tuple(a if k in function.literals else types.unliteral(a) for k, a in enumerate(given))
    kinds = tuple(_kind(a) for a in own)
    try:
        expected, result, emit = function.resolve(*kinds)
    except DialectError as error:
        raise NumbaTypeError(str(error)) from None
    passed = [a if e == k else numba_type(str(e)) for a, e, k in zip(own, expected, kinds)]

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        raw = [_data(context, builder, a, v) if _is_array(a) else v for a, v in zip(passed, values)]
        if function.name == "convert_f32_f16":  # Numba keeps values in memory: what made this one is not to be seen
            raw = [kept_apart(Float(builder, raw[0])).raw]
        value = emit(builder, raw)
        return context.get_constant_null(types.none) if result == "none" else value

    return (types.void if result == "none" else numba_type(result))(*passed), codegen


def _data(context: Any, builder: Any, type_: Any, array: Any) -> Any:
    """The pointer to the elements of an array."""
    return create_struct_proxy(type_)(context, builder, value=array).data


def _is_array(type_: Any) -> bool:
    return isinstance(type_, types.Array) and type_.ndim == 1


def _kind(type_: Any) -> Kind:
    if isinstance(type_, types.IntegerLiteral):
        return int(type_.literal_value)
    if isinstance(type_, types.NumberClass):
        return Cast(str(type_.dtype))
    return f"{type_.dtype}*" if _is_array(type_) else str(type_)
