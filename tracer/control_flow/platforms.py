"""Control flow that depends on the platform that runs a program: platform_dependent.

Programs run on the CPU. Only an export may be for another platform, or for several: then the program takes the number
of the platform as an argument, and has the functions of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ...hlo.element_type import ElementType
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallAttributes
from ...hlo.shape import Shape
from ..core import Tracer, Value, bind_declared
from ..settings.context import Override, current_context
from ..traced import trace_function
from ..trees import tree
from .branches import switch
from .types import arguments_of, avals_of, joined_types, require_functions

PLATFORM = "cpu"
"""Where every program runs."""
PLATFORM_INDEX = "hloom.platform_index"
"""A custom call, in a program that is exported for several platforms: the number of the one that runs it, s32[]. The
export puts an argument in its place."""


def lowering_platforms() -> tuple[str, ...]:
    """The platforms of the program that is being traced."""
    return current_context().lowering_platforms or (PLATFORM,)


def platform_index() -> Value:
    """The number of the platform that runs the program, among several that it is exported for."""
    result = Shape.array(ElementType.S32, ())
    return cast(Value, bind_declared(Opcode.CUSTOM_CALL, [], CustomCallAttributes(PLATFORM_INDEX), result))


def on_each_platform(functions: Sequence[Callable[..., Any]], args: Sequence[Any]) -> Any:
    """The result of the function of this platform. `functions`: one for each of `lowering_platforms`.

    A function that is for some of these platforms is traced for them alone: the others count as one of them, so that
    the number of the platform stays the same.
    """
    if all(f is functions[0] for f in functions):
        return functions[0](*args)
    platforms = lowering_platforms()

    def of(k: int) -> Callable[..., Any]:
        own = tuple([p if f is functions[k] else platforms[k] for p, f in zip(platforms, functions, strict=True)])

        def function(*values: Any) -> Any:
            with Override(lowering_platforms=own):
                return functions[k](*values)

        return function

    return switch(platform_index(), [of(k) for k in range(len(functions))], *args)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The function of this platform, ``cpu``, or else `default`, applied to `args`. In a program that is exported for
    others, their functions.

    With traced arguments, the functions of the other platforms are traced too, so that they must return the same
    types (TreeStructureError). NotImplementedError if there is no function for this platform and no default.

    >>> lax.platform_dependent(jnp.arange(3), cpu=lambda x: x + 1, default=lambda x: x)
    Array([1, 2, 3], dtype=int32)
    """
    functions = dict(per_platform) if default is None else {**per_platform, "default": default}
    require_functions("platform_dependent", **functions)
    if "gpu" in per_platform:
        raise ValueError("lax.platform_dependent: use 'cuda' or 'rocm', not 'gpu'")
    chosen = []
    for platform in lowering_platforms():
        function = functions.get(platform, default)
        if function is None:
            raise NotImplementedError(
                f"lax.platform_dependent has functions for {', '.join(per_platform) or 'no platform'}, but programs "
                f"run on {platform}\n  Add {platform}=... or default=..."
            )
        chosen.append(function)
    if any(isinstance(leaf, Tracer) for leaf in tree.leaves(args)):
        values, treedef = arguments_of(chosen[0], *args)
        traced = [trace_function(f, treedef, avals_of(values)) for f in functions.values()]
        joined_types("platform_dependent", traced, list(functions.values()), list(functions))
    if all(f is chosen[0] for f in chosen):
        return chosen[0](*args)
    return switch(platform_index(), chosen, *args)
