"""The requirements of `grad` and its relatives for arguments and results, and their error messages.

Source of the rules: jax.grad, jax.jacfwd, jax.jacrev.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..tracer.arguments import NO_STATICS, leaf_names
from ..tracer.arrays.array import as_value
from ..tracer.core import Tracer, Value
from ..tracer.errors import OperandError
from ..tracer.ops import is_inexact
from ..tracer.source import function_line, user_line
from ..tracer.trees import tree
from ..tracer.wrapping import wraps

Function = Callable[..., Any]


def at(fun: Function) -> str:
    """For messages: the function and the line of the user's call."""
    line = user_line()
    return f"\n  differentiating {function_line(inspect.unwrap(fun))}" + (f"\n  called at {line}" if line else "")


def described(value: object) -> str:
    """A value in a message. A traced value is its type: users do not know what traces it."""
    if isinstance(value, Tracer):
        return f"a traced {value.aval.str_short()}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"


def refuse_reduce_axes(reduce_axes: Sequence[Any], name: str) -> None:
    """NotImplementedError for an argument that JAX removed."""
    if reduce_axes:
        raise NotImplementedError(f"the reduce_axes argument of {name} was removed: sum over the axis with lax.psum")


def checked_argnums(argnums: Any) -> tuple[int, ...]:
    """`argnums` as a tuple; TypeError unless it is an integer or a sequence of integers."""
    try:
        items = argnums if isinstance(argnums, Sequence) and not isinstance(argnums, str) else (argnums,)
        found = tuple([operator.index(i) for i in items])
        wrong = not found or any(isinstance(i, bool) for i in items)
    except TypeError:
        wrong = True
    if wrong:
        raise TypeError(f"argnums must be an integer or a non-empty sequence of integers, but got {argnums!r}")
    return found


def resolve_argnums(positions: tuple[int, ...], count: int, argnums: object, fun: Function) -> tuple[int, ...]:
    """Positions counted from 0; an error if there is no such argument."""
    if any(not -count <= i < count for i in positions):
        needed = max(i + 1 if i >= 0 else -i for i in positions)
        raise OperandError(
            f"differentiating with respect to {argnums=} requires at least {needed} positional arguments to be passed "
            f"by the caller, but got only {count} positional arguments.{at(fun)}"
        )
    chosen = tuple(i % count for i in positions)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"argnums names an argument twice: {argnums!r}.{at(fun)}")
    return chosen


def of_chosen(fun: Function, args: Sequence[Any], kwargs: dict[str, Any], chosen: Sequence[int]) -> Function:
    """`fun` as a function of the chosen arguments; the others have their values."""

    @wraps(fun)
    def partial(*given: Any) -> Any:
        filled = list(args)
        for i, value in zip(chosen, given, strict=True):
            filled[i] = value
        return fun(*filled, **kwargs)

    return partial


def _name(fun: Function, args: Sequence[Any], chosen: Sequence[int], place: int) -> str:
    """The name of the leaf at `place`, among the leaves of the `chosen` arguments: ``params['w'][0]``."""
    names = iter(leaf_names(inspect.unwrap(fun), args, {}, NO_STATICS))
    by_argument = [[next(names) for _ in tree.leaves(a)] for a in args]
    return [n for i in chosen for n in by_argument[i]][place]


def grad_inputs(
    name: str, fun: Function, args: Sequence[Any], chosen: Sequence[int], holomorphic: bool, allow_int: bool
) -> tuple[list[Value], Any]:
    """The leaves of the arguments to differentiate, as values, and their structure.

    TypeError if one of them has no derivative: for `grad`, `value_and_grad` and `jacrev`.
    """
    leaves, structure = tree.flatten(tuple([args[i] for i in chosen]))
    values = []
    for place, leaf in enumerate(leaves):

        def where(place: int = place) -> str:
            return f"\n  for argument {_name(fun, args, chosen, place)}{at(fun)}"

        try:
            value: Value = as_value(leaf)
        except TypeError as error:
            raise OperandError(f"{error}{where()}") from None
        dtype = value.aval.dtype
        if holomorphic and dtype.kind != "c":
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}.{where()}"
            )
        if not is_inexact(dtype) and not allow_int:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but "
                f"got {dtype.name}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to "
                f"True.{where()}"
            )
        values.append(value)
    return values, structure


def check_real_inputs(name: str, fun: Function, args: Sequence[Any], chosen: Sequence[int], holomorphic: bool) -> None:
    """TypeError unless all inputs are real, or complex if `holomorphic`: for `jacfwd`."""
    for place, leaf in enumerate(tree.leaves(tuple([args[i] for i in chosen]))):
        dtype = as_value(leaf).aval.dtype
        if holomorphic and dtype.kind != "c":
            problem = f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype.name}."
        elif not holomorphic and (dtype.kind == "c" or not is_inexact(dtype)):
            problem = (
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
                f"{dtype.name}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
                "non-holomorphic functions involving complex inputs or integer inputs, use jvp directly."
            )
        else:
            continue
        raise TypeError(f"{problem}\n  for argument {_name(fun, args, chosen, place)}{at(fun)}")


def check_output(name: str, result: Value, fun: Function, holomorphic: bool) -> None:
    """TypeError unless an output is real, or complex if `holomorphic`."""
    dtype = result.aval.dtype
    rule = f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating)"
    real = f"{rule}, but got {dtype.name}."
    if holomorphic:
        if dtype.kind != "c":
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype.name}.{at(fun)}"
            )
    elif dtype.kind == "c":
        raise TypeError(
            f"{real} For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
            f"functions involving complex outputs, use vjp directly.{at(fun)}"
        )
    elif not is_inexact(dtype):
        raise TypeError(f"{real} For differentiation of functions with integer outputs, use vjp directly.{at(fun)}")


def check_scalar_output(name: str, results: Sequence[Value], structure: Any, fun: Function, holomorphic: bool) -> None:
    """TypeError unless the output is one real scalar (complex if `holomorphic`)."""
    if structure != tree.structure(0):
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output was a pytree: {structure}. With "
            f"has_aux=True the function returns a pair of a scalar and anything else.{at(fun)}"
        )
    (result,) = results
    if result.aval.shape != ():
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {result.aval.shape}."
            f"{_one_element if result.aval.size == 1 else ''}{at(fun)}"
        )
    check_output(name, result, fun, holomorphic)


_one_element = " It has one element: return output.reshape(()) or output[0]."
