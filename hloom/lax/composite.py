"""Functions that programs name, so that a compiler may know them: `composite`. The names follow jax.lax."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..hlo.support.loading import load
from ..hlo.support.records import dataclass
from ..hlo.text.mlir_dictionary import Bare
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
    values = load("..hlo.mlir.python_values", __package__)
    attribute = values.attribute_of(f"the attribute {key!r} of the composite {name!r}", value)
    return attribute if isinstance(attribute, str) else Bare(values.attribute_text(attribute))
