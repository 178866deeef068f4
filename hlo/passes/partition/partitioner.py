"""`partition`: from a program of whole arrays to the program of each device, and how its arguments are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...aliases import InputOutputAlias
from ...builder import with_unique_names
from ...errors import UnsupportedError
from ...ir import HloComputation, HloInstruction, HloModule
from ...shape import Shape
from ...sharding import HloSharding, ShardingError
from ...shardy import MESHES
from ...support.records import dataclass
from ..history import recorded
from .axes import mesh_of
from .collectives import Collectives
from .combine import with_combined_all_reduces
from .prepare import Region, prepared
from .propagation import propagate
from .records import PartitionRecords
from .rewriting import Rewriting
from .shardy_regions import with_regions
from .values import Statements, Values, is_obeyed

_MARK = "_spmd"
"""XLA ends the name of a partitioned entry so."""
_OF_WHOLE_PROGRAMS = ("allow_spmd_sharding_propagation_to_output", "allow_spmd_sharding_propagation_to_parameters")


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The program of each device, and how its arguments and results are cut."""

    module: HloModule
    parameter_shardings: tuple[HloSharding, ...]
    """One for each leaf of the entry's parameters."""
    result_shardings: tuple[HloSharding, ...]
    """One for each leaf of its result."""
    records: PartitionRecords
    """Each collective that was put in, and each instruction that every device computes whole."""


def partition(
    module: HloModule,
    num_partitions: int,
    parameter_shardings: Sequence[HloSharding | None] | None = None,
    result_shardings: Sequence[HloSharding | None] | None = None,
) -> Partitioned:
    """The program that each of `num_partitions` devices runs on its parts of the arrays of `module`.

    parameter_shardings, result_shardings: one for each leaf of the entry's parameters and of its result; None: as
    stated in the module's text, or else as the partitioner chooses. The text states shardings in the annotation
    `sharding` of any instruction, and by the custom call `Sharding`.

    UnsupportedError if a parameter's or result's dimension does not divide, if shardings are for other devices or from
    meshes that do not fit together, or for collectives and queues outside of a shard_map. ShardingError for shardings
    that do not fit their arrays.

    >>> from hloom import hlo
    >>> text = '''HloModule m
    ... ENTRY main {
    ...   x = f32[8,4]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
    ...   ROOT y = f32[8,4]{1,0} negate(x)
    ... }'''
    >>> found = hlo.partition(hlo.parse(text), 2)
    >>> print(found.module.entry.root.shape, *found.result_shardings)
    f32[4,4] {devices=[2,1]<=[2]}
    """
    return recorded(
        "spmd-partitioner",
        module,
        lambda: _partitioned(module, num_partitions, parameter_shardings, result_shardings),
        lambda made: made.module,
    )


def _partitioned(
    module: HloModule,
    num_partitions: int,
    parameter_shardings: Sequence[HloSharding | None] | None,
    result_shardings: Sequence[HloSharding | None] | None,
) -> Partitioned:
    if num_partitions < 1:
        raise UnsupportedError(f"a program cannot have {num_partitions} partitions")
    if module.replica_count != 1:
        raise UnsupportedError(
            f"module {module.name} is for {module.replica_count} replicas: a program is either replicated (pmap) or "
            "partitioned (shardings), not both"
        )
    if is_partitioned(module):
        raise UnsupportedError(f"module {module.name} is one device's program already ({module.entry.name})")
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    results = list(module.entry.root.shape.leaves())
    wanted_parameters = _one_each(parameter_shardings, leaves, "parameters")
    wanted_results = _one_each(result_shardings, results, "results")
    module = with_regions(module)
    statements = Statements.of(module)
    of_root = statements.of_instruction(module.entry.root)
    module = prepared(module)
    values = Values(module, statements)
    values.collect(_given_regions(module, wanted_parameters))
    first = 0
    for parameter in module.entry.parameters:
        count = len(list(parameter.shape.leaves()))
        if parameter not in values.manual and parameter not in values.regions:
            values.state(parameter, wanted_parameters[first : first + count])
        first += count
    wanted_results = [
        w if w is not None else s.sharding if s is not None and is_obeyed(s) else None
        for w, s in zip(wanted_results, of_root, strict=True)
    ]
    wanted_results = [None if w is not None and w.is_manual else w for w in wanted_results]
    stated = [*values.shardings(), *(w for w in wanted_results if w is not None)]
    mesh = mesh_of(stated, num_partitions)
    _require_division(values, wanted_results, results)
    values.make(mesh, wanted_results)
    propagate(mesh, values.nodes)
    own = _last_channel(module)
    rewriting = Rewriting(values, Collectives(mesh, channels=own))
    entry = rewriting.computation(module.entry, f"{module.entry.name}{_MARK}", values.results or [])
    of_parameters = [s for p in module.entry.parameters for s in rewriting.shardings(p, values.of(p))]
    new = replace(
        module,
        entry=entry,
        num_partitions=num_partitions,
        is_scheduled=False,
        input_output_aliases=_kept_aliases(module, entry),
        annotations=tuple([(k, t) for k, t in module.annotations if k not in _OF_WHOLE_PROGRAMS]),
        frontend_attributes=tuple([(k, t) for k, t in module.frontend_attributes if k != MESHES]),
    )
    return Partitioned(
        with_unique_names(with_combined_all_reduces(new, own)),
        tuple(of_parameters),
        tuple(rewriting.shardings(module.entry.root, values.results)),
        PartitionRecords(rewriting.collectives.records),
    )


def partitions_of(module: HloModule) -> int:
    """For how many devices the module is: from its header, its shardings and its meshes; 1 if they say nothing.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.partitions_of(module)
    1
    """
    return Statements.of(module).devices(module)


def is_partitioned(module: HloModule) -> bool:
    """True for the program of one device: its entry has the name that XLA's and our partitioner give it.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.is_partitioned(module)
    False
    """
    return _MARK in module.entry.name


def needs_partitioning(module: HloModule) -> bool:
    """True for a program of whole arrays that states shardings for several devices.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.needs_partitioning(module)
    False
    """
    if is_partitioned(module):
        return False
    statements = Statements.of(module)
    return statements.states_any(module) and statements.devices(module) > 1


def _one_each(
    given: Sequence[HloSharding | None] | None, leaves: Sequence[Shape], what: str
) -> list[HloSharding | None]:
    if given is None:
        return [None] * len(leaves)
    if len(given) != len(leaves):
        raise ShardingError(f"{len(given)} shardings are given for {len(leaves)} {what} (arrays, tuples taken apart)")
    for sharding, leaf in zip(given, leaves, strict=True):
        if sharding is not None:
            sharding.require_rank(leaf.rank)
            if sharding.is_tuple:
                raise ShardingError(
                    f"the sharding {sharding} of one of the {what}, {leaf}, is not that of a whole array"
                )
    return list(given)


def _require_division(values: Values, wanted: Sequence[HloSharding | None], results: Sequence[Shape]) -> None:
    """UnsupportedError if an argument or a result cannot be cut as stated: the caller would get other arrays."""
    for parameter in values.module.entry.parameters:
        for k, leaf in enumerate(parameter.shape.leaves()):
            stated = values.stated.get(values.find((parameter, k)))
            if stated is not None:
                stated.sharding.shard_shape(leaf)
    for sharding, leaf in zip(wanted, results, strict=True):
        if sharding is not None:
            sharding.shard_shape(leaf)


def _given_regions(module: HloModule, wanted: Sequence[HloSharding | None]) -> dict[HloInstruction, Region]:
    """Of the arguments that come from within a shard_map over some axes of the mesh."""
    found, first = {}, 0
    for parameter in module.entry.parameters:
        count = len(list(parameter.shape.leaves()))
        own = [s.manual_part() for s in wanted[first : first + count] if s is not None and s.is_partly_manual]
        if own:
            found[parameter] = frozenset(own)
        first += count
    return found


def _last_channel(module: HloModule) -> int:
    """The highest channel that a shard_map uses already."""
    channels = [getattr(i.attributes, "channel_id", None) for i in module.instructions()]
    return max([c for c in channels if c is not None], default=0)


def _kept_aliases(module: HloModule, entry: HloComputation) -> tuple[InputOutputAlias, ...]:
    """The aliases between parts of the same size."""
    found = []
    for alias in module.input_output_aliases:
        target, source = entry.root.shape, entry.parameters[alias.parameter].shape
        for index in alias.output_index:
            target = target.elements[index]
        for index in alias.parameter_index:
            source = source.elements[index]
        if target.compatible(source):
            found.append(alias)
    return tuple(found)
