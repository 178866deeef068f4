"""Functions of pytrees as functions of lists. `hloom.api_util` offers them. Source for names: jax.api_util."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .extend.wrapped import Store, transformation_with_aux2
from .tracer import treedef
from .tracer.arguments import abstract
from .tracer.aval import ShapedArray
from .tracer.source import function_line

__all__ = ["debug_info", "flatten_fun", "flatten_fun_nokwargs", "safe_map", "shaped_abstractify"]


class DebugInfo(NamedTuple):
    """What is known about a function that is traced, for messages."""

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
    """What messages say about `fun`, which `traced_for` traces."""
    return DebugInfo(traced_for, sourceinfo or function_line(fun), None, None)


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    """A function of `(args, kwargs)`, whose structure is `in_tree`, as one of leaves, which returns leaves.

    flatten_fun(wrapped, in_tree) -> (a WrappedFun, a function that after its call says the structure of the result).
    """
    args, kwargs = treedef.unflatten(in_tree, args_flat)
    leaves, out_tree = treedef.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Store, in_tree: Any, *args_flat: Any) -> list[Any]:
    """As `flatten_fun`; `in_tree` is the structure of the positional arguments."""
    leaves, out_tree = treedef.flatten(f(*treedef.unflatten(in_tree, args_flat)))
    store.store(out_tree)
    return leaves


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """A list of `f` of the elements of iterables of one length; ValueError if their lengths differ."""
    lists = [list(arg) for arg in args]
    if len({len(each) for each in lists}) > 1:
        raise ValueError(f"safe_map: iterables of different lengths {[len(each) for each in lists]}")
    return list(map(f, *lists))


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or a number."""
    return abstract(x, lambda: "shaped_abstractify's argument")
