"""Functions that programs name, so that a compiler may know them: `composite`. The names follow jax.lax."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..hlo.element_type import ElementType, element_type_of
from ..hlo.support.loading import load
from ..hlo.support.records import dataclass
from ..hlo.text.mlir_dictionary import Bare, write_dictionary
from ..tracer.arrays.array import Array, as_value
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.caches import on_clear
from ..tracer.core import Call, Primitive, Tracer, Value, bind_call, run_meaning
from ..tracer.errors import UnexpectedTracerError
from ..tracer.recording import trace_to_computation
from ..tracer.source import function_line
from ..tracer.trees import tree


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """`decomposition` as an operation with a name: in HLO text a call with ``is_composite=true``.

    Positional arguments of the function are pytrees of arrays. Keyword arguments are attributes: numbers, strings,
    booleans, dtypes, NumPy arrays, and tuples or dicts of these; they are written to the text, but for those that are
    None. The derivative and the batching come from the decomposition, which runs here in any case.

    Args:
      decomposition: the definition.
      name: such as ``my.tangent``.
      version: a number in the text, which distinguishes meanings of one name.

        >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), name="my.tangent")
        >>> tangent(0.5)
        Array(0.5463025, dtype=float32, weak_type=True)
        >>> 'composite.name="my.tangent"' in hloom.jit(tangent).lower(0.5).as_text()
        True
    """

    @functools.wraps(decomposition)
    def bound(*args: Any, **attributes: Any) -> Any:
        leaves, structure = tree.flatten(args)
        values = [as_value(leaf) for leaf in leaves]
        written = tuple([(k, _written(name, k, v)) for k, v in sorted(attributes.items()) if v is not None])
        out_tree: Any = None

        def flat(inner: list[Value]) -> list[Value]:
            nonlocal out_tree
            found, out_tree = tree.flatten(decomposition(*tree.unflatten(structure, inner), **attributes))
            return [as_value(leaf) for leaf in found]

        description = f"{function_line(decomposition)} for the composite {name}"
        avals = [v.aval for v in values]
        traced = trace_to_computation(flat, avals, name, description=description, tracks_varying=True)
        use = CompositeUse(name, written, int(version))
        call = Call(_primitive(name), traced.computation, use, name, written, use.version)
        results = bind_call(call, [*values, *traced.captured])
        return tree.unflatten(out_tree, overlaid_all(results, traced.out_avals))

    return bound


@dataclass(frozen=True, slots=True)
class CompositeUse:
    """The description of one use, besides its decomposition."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    version: int


@functools.lru_cache(maxsize=256)
def _primitive(name: str) -> Primitive:
    return Primitive(name, evaluate=run_meaning)


on_clear(_primitive.cache_clear)


# ---- attributes as MLIR writes them


def _written(name: str, key: str, value: Any) -> str:
    if any(isinstance(leaf, Tracer | Array) for leaf in tree.leaves(value)):
        raise UnexpectedTracerError(
            f"Found a JAX Tracer as an attribute in the decomposition for the composite op {name!r}: {key!r} is an "
            "array of a program\n  Arrays that are computed must be positional arguments.\n  Note: If you are "
            "passing jax arrays as attributes, use numpy arrays instead."
        )
    text = _attribute(value)
    if text is None:
        raise TypeError(
            f"the attribute {key!r} of the composite {name!r} is of the type {type(value).__name__}\n  Attributes are "
            "numbers, strings, booleans, dtypes, NumPy arrays, and tuples or dicts of these."
        )
    return text


def _attribute(value: Any) -> str | None:
    """The text of an attribute; a string without its quotes, which the writer of dictionaries sets."""
    match value:
        case str():
            return value
        case bool() | np.bool_():
            return "true" if value else "false"
        case int():
            return f"{value} : i64"
        case float():
            return f"{_number(np.float64(value), ElementType.F64)} : f64"
        case np.dtype():
            return Bare(_type(value))
        case np.generic():
            return f"{_number(value, element_type_of(value.dtype))} : {_type(value.dtype)}"
        case np.ndarray():
            return _dense(value)
        case Mapping():
            return Bare(write_dictionary([(k, _attribute(v) or "") for k, v in sorted(value.items())]))
        case Sequence():
            inner = [_attribute(v) for v in value]
            plain = all(type(v) is int for v in value)
            return Bare(f"[{', '.join(str(v) if plain else i or '' for v, i in zip(value, inner))}]")
    return None


def _number(value: Any, element: ElementType) -> str:
    text: str = load("..hlo.mlir.elements", __package__).number_text(value, element)
    return text


def _type(dtype: np.dtype[Any]) -> str:
    text: str = load("..hlo.mlir.elements", __package__).type_name(element_type_of(dtype))
    return text


def _dense(array: np.ndarray[Any, Any]) -> str:
    """``dense<[0, 1]> : tensor<2xi64>``; an array of equal elements is written as one."""
    element = element_type_of(array.dtype)
    kind = "x".join([*map(str, array.shape), _type(array.dtype)])
    flat = {_number(v, element) for v in array.reshape(-1)}
    return f"dense<{flat.pop() if len(flat) == 1 else _nested(array, element)}> : tensor<{kind}>"


def _nested(array: Any, element: ElementType) -> str:
    return f"[{', '.join([_nested(v, element) for v in array])}]" if array.ndim else _number(array, element)
