"""`in_shardings` and `out_shardings` of jit: checked against the types of a call; results are put where they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays.array import Array, putter
from ..arrays.layouts import Format, Layout
from ..aval import ShapedArray
from ..traced import Traced
from ..trees import tree
from .devices import CpuDevice
from .partition_spec import UNCONSTRAINED, PartitionSpec
from .placement import PLACES, check_fits, check_spec_has_mesh, completed
from .shardings import UNSPECIFIED, Sharding, check_duplicates


class JitShardings:
    """The shardings that a function is jitted with. Equal ones are equal keys."""

    __slots__ = ("_key", "inputs", "outputs")

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.inputs = inputs
        self.outputs = outputs
        flat = [tree.flatten(x, is_leaf=lambda leaf: leaf is None) for x in (inputs, outputs)]
        self._key = tuple([(tuple(leaves), structure) for leaves, structure in flat])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JitShardings) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return JitShardings, (self.inputs, self.outputs)

    def of_arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], avals: Sequence[ShapedArray]
    ) -> list[Sharding | None]:
        """The shardings of the arguments' leaves, checked against the types; None where nothing was said."""
        if self.inputs is UNSPECIFIED:
            return [None] * len(avals)
        if kwargs:
            raise ValueError(
                f"jit does not support kwargs when in_shardings is specified, but got {', '.join(sorted(kwargs))}"
            )
        full = tuple(args)
        shapes = [a.shape for a in avals]
        paths = tree.paths_of_structure(tree.structure(full))
        return _for_leaves(self.inputs, "in_shardings", full, paths, shapes)

    def divided(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], avals: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """The types of the arguments' leaves, which Explicit axes divide as `in_shardings` says."""
        if self.inputs is UNSPECIFIED:
            return avals
        found = self.of_arguments(args, kwargs, avals)
        return tuple([a if s is None else a.divided(s) for a, s in zip(avals, found, strict=True)])

    def check(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], avals: Sequence[ShapedArray], traced: Traced
    ) -> tuple[list[Sharding | None], list[Sharding | None]]:
        """The shardings of the arguments' leaves and of the results', checked against the types."""
        given = self.of_arguments(args, kwargs, avals)
        if self.outputs is UNSPECIFIED:
            return given, [None] * len(traced.out_avals)
        structure = traced.out_tree
        full = tree.unflatten(structure, list(traced.out_avals))
        shapes = [a.shape for a in traced.out_avals]
        return given, _for_leaves(self.outputs, "out_shardings", full, tree.paths_of_structure(structure), shapes)

    def of_types(self, types: Any) -> Any:
        """The tree of ShapeDtypeStruct of a result, each with its sharding."""
        if self.outputs is UNSPECIFIED:
            return types
        leaves, structure = tree.flatten(types)
        paths, shapes = tree.paths_of_structure(structure), [leaf.shape for leaf in leaves]
        places = _for_leaves(self.outputs, "out_shardings", types, paths, shapes)
        return tree.unflatten(structure, [t.update(sharding=s) for t, s in zip(leaves, places, strict=True)])


def placing(run: Callable[[Any], Any], places: Sequence[Sharding | None]) -> Callable[[Any], Any]:
    """`run` of a program, with its results put in `places`."""
    put = [_as_it_is if place is None else putter(place) for place in places]
    first = put[0]

    def placed_results(arrays: Any) -> Any:
        result = run(arrays)
        if isinstance(result, Array):
            return first(result)
        leaves, structure = tree.flatten(result)
        return tree.unflatten(structure, [p(leaf) for p, leaf in zip(put, leaves, strict=True)])

    return placed_results


def _as_it_is(leaf: Any) -> Any:
    return leaf


def shardings_of(in_shardings: Any, out_shardings: Any) -> JitShardings | None:
    """The shardings in jit's arguments, checked; None if nothing."""
    inputs = check_specification(in_shardings, "in_shardings")
    outputs = check_specification(out_shardings, "out_shardings")
    return None if inputs is UNSPECIFIED and outputs is UNSPECIFIED else JitShardings(inputs, outputs)


def check_specification(given: Any, what: str) -> Any:
    """A pytree of shardings, specs and None, checked; UNSPECIFIED if it leaves all open."""
    if isinstance(given, list):
        given = tuple(given)
    leaves = tree.leaves(given, is_leaf=lambda x: x is None)
    for leaf in leaves:
        if leaf is None or leaf is UNSPECIFIED:
            continue
        if isinstance(leaf, CpuDevice) or not isinstance(leaf, PartitionSpec | Sharding | Format | Layout):
            raise TypeError(
                f"{what} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", None)
        mesh = getattr(leaf, "mesh", None)
        if mesh is not None and mesh.empty:
            raise ValueError(
                f"One of {what} leaf specifications got an empty NamedSharding: {leaf} which is not allowed."
            )
        if spec is not None:
            check_duplicates(spec, what)
            if UNCONSTRAINED in spec.partitions and what != "shardings":
                raise ValueError(f"Unconstrained dims are not allowed when passed to {what}: {leaf}")
    return given if any(x is not None and x is not UNSPECIFIED for x in leaves) else UNSPECIFIED


def _for_leaves(
    given: Any, what: str, full: Any, paths: Sequence[Any], shapes: Sequence[tuple[int, ...]]
) -> list[Sharding | None]:
    """The sharding of each leaf of `full`, checked against its shape; `given` is a prefix tree of `full`; None if
    open."""
    spread = [given] * len(shapes) if isinstance(given, PLACES) else _prefix_of(given, what, full)
    found: list[Sharding | None] = []
    for entry, path, shape in zip(spread, paths, shapes, strict=True):
        if entry is None or entry is UNSPECIFIED:
            found.append(None)
            continue
        check_spec_has_mesh(entry, "jit", what)
        sharding = completed(Format(entry) if isinstance(entry, Layout) else entry, f"jit {what}")
        if sharding is not None:
            at = tree.keystr(path)
            which = "arguments" if what == "in_shardings" else "outputs"
            where = f"One of jit {which}{f' with pytree key path {at}' if at else ''} is incompatible with its sharding"
            check_fits(sharding, shape, f"{where} annotation {entry}")
        found.append(sharding)
    return found


def _prefix_of(given: Any, what: str, full: Any) -> list[Any]:
    is_inputs = what == "in_shardings"
    if is_inputs and isinstance(given, tuple) and len(given) != len(full):
        raise ValueError(
            "jit in_shardings specification must be a tree prefix of the positional arguments tuple. In particular, "
            "in_shardings must either be a Sharding, a PartitionSpec, or a tuple of length equal to the number of "
            "positional arguments. But in_shardings is the wrong length: got a tuple or list of length "
            f"{len(given)} for an args tuple of length {len(full)}."
        )
    try:
        return tree.broadcast_prefix(given, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        whole = "positional arguments tuple" if is_inputs else "corresponding value"
        raise ValueError(f"jit {what} specification must be a tree prefix of the {whole}: {error}") from None
