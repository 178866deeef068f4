"""Functions of pytrees as functions of lists. `hloom.api_util` offers them. Names follow jax.api_util."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..tracer.arguments import LeafName, abstract
from ..tracer.aval import ShapedArray
from ..tracer.source import function_line
from ..tracer.trees import tree
from .wrapped_functions import Store, transformation_with_aux2


class DebugInfo(NamedTuple):
    """The facts about a traced function, for messages.

    >>> import hloom
    >>> from hloom.api_util import debug_info
    >>> debug_info("jit", max, (1, 2), {}).traced_for
    'jit'
    """

    traced_for: str
    """The transformation."""
    func_src_info: str
    """The function and its line."""
    arg_names: tuple[str, ...] | None
    result_paths: tuple[str, ...] | None


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Callable[[], tuple[str, ...]] | None = None,
    sourceinfo: str | None = None,
    signature: Any = None,
) -> DebugInfo:
    """The text about `fun` in messages; `traced_for` traces it.

    >>> debug_info("jit", max, (1, 2), {}).traced_for
    'jit'
    """
    return DebugInfo(traced_for, sourceinfo or function_line(fun), None, None)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    """A function of `(args, kwargs)` with the structure `in_tree`, as a function from leaves to leaves.

    flatten_fun(wrapped, in_tree) -> (a WrappedFun, a function that after its call says the structure of the result).

    >>> import hloom
    >>> from hloom.api_util import flatten_fun
    >>> from hloom.extend.linear_util import wrap_init
    >>> leaves, structure = hloom.tree.flatten((([1, 2],), {"z": 3}))
    >>> flat, result_structure = flatten_fun(wrap_init(lambda xs, z: {"sum": sum(xs) + z}), structure)
    >>> flat.call_wrapped(*leaves), result_structure()
    ([6], PyTreeDef({'sum': *}))
    """
    args, kwargs = tree.unflatten(in_tree, args_flat)
    leaves, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    """As `flatten_fun`; `in_tree` is the structure of the positional arguments.

    >>> import hloom
    >>> from hloom.api_util import flatten_fun_nokwargs
    >>> from hloom.extend.linear_util import wrap_init
    >>> leaves, structure = hloom.tree.flatten(([1, 2],))
    >>> flat, result_structure = flatten_fun_nokwargs(wrap_init(lambda xs: {"sum": sum(xs)}), structure)
    >>> flat.call_wrapped(*leaves), result_structure()
    ([3], PyTreeDef({'sum': *}))
    """
    leaves, out_tree = tree.flatten(f(*tree.unflatten(in_tree, args_flat)))
    store.store(out_tree)
    return leaves


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """A list of `f` of the elements of iterables of one length; ValueError if their lengths differ.

    >>> safe_map(lambda x, y: x + y, [1, 2], [10, 20])
    [11, 22]
    """
    lists = [list(arg) for arg in args]
    if len({len(each) for each in lists}) > 1:
        raise ValueError(f"safe_map: iterables of different lengths {[len(each) for each in lists]}")
    return list(map(f, *lists))


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or a number.

    >>> import hloom, numpy as np
    >>> from hloom.api_util import shaped_abstractify
    >>> shaped_abstractify(np.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    return abstract(x, lambda: LeafName("x", "shaped_abstractify"))
