"""Functions of pytrees as functions of lists. `hloom.api_util` offers them. Names follow jax.api_util."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..tracer.arguments import LeafName, abstract
from ..tracer.aval import ShapedArray
from ..tracer.source import function_line
from ..tracer.trees import tree
from .wrapped_functions import Store, WrappedFun, transformation2, transformation_with_aux2


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


@dataclass(frozen=True, slots=True, eq=False)
class _Fixed:
    """An argument that `argnums_partial` fixes: compared by value and type, as the cache of a trace needs it."""

    value: Any
    is_hashable: bool

    def __eq__(self, other: object) -> bool:
        if not self.is_hashable or not isinstance(other, _Fixed):
            return self is other
        return type(self.value) is type(other.value) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value) if self.is_hashable else id(self)


@transformation2
def _with_fixed(
    f: Callable[..., Any], places: tuple[int, ...], fixed: tuple[_Fixed, ...], *dyn_args: Any, **kwargs: Any
) -> Any:
    given = dict(zip(places, dyn_args, strict=True))
    others = iter(fixed)
    args = [given[k] if k in given else next(others).value for k in range(len(places) + len(fixed))]
    return f(*args, **kwargs)


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """`f` as a function of some of its positional arguments, and these; the others are fixed to the values in `args`.

    ValueError for a position that `args` does not have, and for a fixed argument that cannot be hashed, if
    `require_static_args_hashable`.

    >>> from hloom.api_util import argnums_partial
    >>> from hloom.extend.linear_util import wrap_init
    >>> f, given = argnums_partial(wrap_init(lambda x, y, z: (x, y, z)), (2, 0), (1, 2, 3))
    >>> given, f.call_wrapped(30, 10)
    ((3, 1), (10, 2, 30))
    """
    asked = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(map(operator.index, dyn_argnums))
    for place in asked:
        if not -len(args) <= place < len(args):
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to "
                f"-len(args) and less than len(args), but got value {place} for len(args) == {len(args)}."
            )
    places = tuple([place % len(args) for place in asked])
    fixed = []
    for k, arg in enumerate(args):
        if k in places:
            continue
        if require_static_args_hashable:
            try:
                hash(arg)
            except TypeError:
                raise ValueError(
                    "Non-hashable static arguments are not supported, as this can lead to unexpected cache-misses. "
                    f"Static argument (index {k}) of type {type(arg)} for function {f.__name__} is non-hashable."
                ) from None
        fixed.append(_Fixed(arg, require_static_args_hashable))
    return _with_fixed(f, places, tuple(fixed)), tuple([args[place] for place in places])


def donation_vector(
    donate_argnums: Collection[int], donate_argnames: Collection[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """For each leaf of the arguments whether it is donated.

    in_tree: the structure of (args, kwargs); of args alone unless `kws`.

    >>> import hloom
    >>> from hloom.api_util import donation_vector
    >>> donation_vector((0,), ("z",), hloom.tree.structure((([1, 2], 3), {"y": 4, "z": 5})))
    (True, True, False, False, True)
    """
    numbered = tree.unflatten(in_tree, range(in_tree.num_leaves))
    args, kwargs = numbered if kws else (numbered, {})
    by_place = [k in donate_argnums for k, arg in enumerate(args) for _ in tree.leaves(arg)]
    return (*by_place, *(name in donate_argnames for name in sorted(kwargs) for _ in tree.leaves(kwargs[name])))


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]) -> tuple[int, ...]:
    """The positions of donated arguments among those that are not static. ValueError if one is both.

    >>> from hloom.api_util import rebase_donate_argnums
    >>> rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    donated, static = sorted(set(donate_argnums)), sorted(set(static_argnums))
    if not {*donated}.isdisjoint(static):
        raise ValueError(f"`static_argnums` {static} and `donate_argnums` {donated} cannot intersect.")
    return tuple([place - sum(s < place for s in static) for place in donated])


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """For each leaf of a structure the leaf of `axis_tree`, a prefix of it in which None is a leaf.

    name, kws, tupled_args: for the message of the ValueError if it is no prefix.

    >>> import hloom
    >>> from hloom.api_util import flatten_axes
    >>> flatten_axes("in_axes", hloom.tree.structure(([1, 2], 3)), (0, None))
    [0, 0, None]
    """
    full = tree.unflatten(treedef, range(treedef.num_leaves))
    try:
        return tree.broadcast_prefix(axis_tree, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        hint = ""
        if tupled_args:
            hint = (
                f" Note that {name} that are non-trivial pytrees should always be wrapped in a tuple representing the "
                "argument list."
            )
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; {hint}\n  {error}"
        ) from None
