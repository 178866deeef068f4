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
from .interface import Interface
from .record import ExportedFunction


def traced_vjp(primal: ExportedFunction, traced: Traced) -> tuple[Traced, Interface]:
    """The VJP of `traced`, which `primal` is exported from: it takes the leaves of the arguments and a cotangent for
    each leaf of the result, and returns a cotangent for each leaf of the arguments."""
    signature, ins, outs = traced._signature, primal.in_avals, primal.out_avals
    tangents = [a.to_tangent_aval() if a.dtype != FLOAT0 else a for a in (*ins, *outs)]
    moving_in = [k for k, t in enumerate(tangents[: len(ins)]) if t.dtype != FLOAT0]
    moving_out = [k for k, t in enumerate(tangents[len(ins) :]) if t.dtype != FLOAT0]
    numbers = [k for k, a in enumerate(ins) if a.dtype != FLOAT0]

    def pullback(*values: Any) -> tuple[Any, ...]:
        primals = dict(zip(numbers, values, strict=False))

        def function(*moving: Any) -> list[Any]:
            given = {**primals, **dict(zip(moving_in, moving, strict=True))}
            found = eval_computation(traced._computation, [*[given[k] for k in numbers], *traced._captured])
            results = with_avals(found[: len(signature.out_avals)], signature.out_avals)
            every = dict(zip([k for k, a in enumerate(outs) if a.dtype != FLOAT0], results, strict=True))
            return [every[k] for k in moving_out]

        _, pull = vjp(function, *[primals[k] for k in moving_in])
        return tuple(pull(list(values[len(numbers) :])))

    pullback.__name__ = f"{primal.fun_name}_vjp"
    assert signature.stated is not None, f"{traced} is not from this process"
    placed_in, placed_out = signature.stated()
    of_in = dict(zip(numbers, placed_in, strict=True))
    of_out = dict(zip([k for k, a in enumerate(outs) if a.dtype != FLOAT0], placed_out, strict=True))
    types: list[ShapedArray] = [*[ins[k] for k in numbers], *[tangents[len(ins) + k] for k in moving_out]]
    given: list[Sharding | None] = [*[of_in[k] for k in numbers], *[of_out[k] for k in moving_out]]
    wanted = [of_in[k] for k in moving_in]
    options: dict[str, Any] = {
        name: tuple(found) for name, found in (("in_shardings", given), ("out_shardings", wanted)) if any(found)
    }
    jitted: PjitFunction[..., Any] = jit(pullback, **options)
    stage = jitted.trace(*[ShapeDtypeStruct.of(t) for t in types])
    every = (*ins, *tangents[len(ins) :])
    given_tree, made_tree = tree.structure(((0,) * len(every), {})), tree.structure((0,) * len(ins))
    return stage, Interface(given_tree, every, made_tree, tuple(tangents[: len(ins)]))
