"""The VJP of a function that is exported, as a traced function."""

from __future__ import annotations

from typing import Any

from ..autodiff.api import vjp
from ..tracer.arguments import ShapeDtypeStruct
from ..tracer.aval import FLOAT0, ShapedArray
from ..tracer.core import eval_computation
from ..tracer.jit import PjitFunction, jit
from ..tracer.sharding.shardings import Sharding
from ..tracer.stages import Traced
from ..tracer.traced import with_avals
from ..tracer.trees import tree
from .interface import Interface, array_positions
from .record import ExportedFunction


def traced_vjp(primal: ExportedFunction, traced: Traced) -> tuple[Traced, Interface]:
    """The VJP of `traced`, which `primal` is exported from: it takes the leaves of the arguments and a cotangent for
    each leaf of the result, and returns a cotangent for each leaf of the arguments."""
    signature = traced._signature
    assert signature.stated is not None, f"{traced} is not from this process"
    in_avals, out_avals = primal.in_avals, primal.out_avals
    in_tangents, out_tangents = (list(map(_tangent_type, avals)) for avals in (in_avals, out_avals))
    arguments, results, in_moving, out_moving = map(array_positions, (in_avals, out_avals, in_tangents, out_tangents))

    def pullback(*values: Any) -> tuple[Any, ...]:
        primals = dict(zip(arguments, values, strict=False))

        def function(*moving: Any) -> list[Any]:
            given = {**primals, **dict(zip(in_moving, moving, strict=True))}
            found = eval_computation(traced._computation, [*[given[k] for k in arguments], *traced._captured])
            typed = with_avals(found[: len(signature.out_avals)], signature.out_avals)
            outputs = dict(zip(results, typed, strict=True))
            return [outputs[k] for k in out_moving]

        _, pull = vjp(function, *[primals[k] for k in in_moving])
        return tuple(pull(list(values[len(arguments) :])))

    pullback.__name__ = f"{primal.fun_name}_vjp"
    placed_in, placed_out = signature.stated()
    in_places = dict(zip(arguments, placed_in, strict=True))
    out_places = dict(zip(results, placed_out, strict=True))
    taken: list[ShapedArray] = [*[in_avals[k] for k in arguments], *[out_tangents[k] for k in out_moving]]
    given_places: list[Sharding | None] = [
        *[in_places[k] for k in arguments], *[out_places[k] for k in out_moving]
    ]  # fmt: skip
    returned_places = [in_places[k] for k in in_moving]
    options: dict[str, Any] = {}
    if any(given_places):
        options["in_shardings"] = tuple(given_places)
    if any(returned_places):
        options["out_shardings"] = tuple(returned_places)
    jitted: PjitFunction[..., Any] = jit(pullback, **options)
    stage = jitted.trace(*[ShapeDtypeStruct.of(t) for t in taken])
    every = (*in_avals, *out_tangents)
    in_tree, out_tree = tree.structure(((0,) * len(every), {})), tree.structure((0,) * len(in_avals))
    return stage, Interface(in_tree, every, out_tree, tuple(in_tangents))


def _tangent_type(aval: Any) -> Any:
    return aval if aval.dtype == FLOAT0 else aval.to_tangent_aval()
