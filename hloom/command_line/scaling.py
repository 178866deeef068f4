"""`hloom scaling`: the data that the devices of a partitioned module send, and the time of a run on a simulated
cluster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..hlo.analyses.cluster import Cluster, Link, scaling
from ..hlo.analyses.communication import communication_analysis
from ..hlo.ir import HloModule
from ..hlo.passes.partition import is_partitioned, partition, partitions_of
from ..hlo.passes.partition.records import PartitionRecords
from ..hlo.passes.partitioning import without_shardings
from ..hlo.sharding import HloSharding
from .files import read_module
from .outcome import FINE, UsageError


def execute(options: Namespace) -> int:
    """Print a line for each number of devices; with --collectives, the data that each one sends."""
    cluster = Cluster(options.flops, Link(*options.inside), Link(*options.between), options.devices_per_host)
    with read_module(options.file).within_means() as module:
        programs = _programs(module, options)
        if options.collectives:
            for count, (program, records) in programs.items():
                print(f"{count} devices\n{communication_analysis(program)}")
                print(f"\n{records}\n" if records else "")
        print(scaling(lambda n: programs[n][0], list(programs), cluster))
    return FINE


def _programs(module: HloModule, options: Namespace) -> dict[int, tuple[HloModule, PartitionRecords]]:
    """One device's program, and the partitioner's records, for each number of devices."""
    if is_partitioned(module) or module.replica_count > 1:
        if options.devices or options.cut:
            raise UsageError(f"module {module.name} is one device's program already: leave out --devices and --cut")
        return {module.replica_count * module.num_partitions: (module, PartitionRecords())}
    counts = options.devices or [partitions_of(module)]
    found = {}
    for count in counts:
        if not options.cut and count not in (1, partitions_of(module)):
            raise UsageError(
                f"module {module.name} states shardings for {partitions_of(module)} devices: for {count}, say with "
                "--cut which arguments are cut along which dimension"
            )
        if count == 1:
            found[1] = (module, PartitionRecords())
            continue
        given = _cut(module, options.cut, count) if options.cut else None
        made = partition(without_shardings(module) if options.cut else module, count, given)
        found[count] = (made.module, made.records)
    return found


def _cut(module: HloModule, cuts: Sequence[tuple[int, int]], count: int) -> list[HloSharding | None]:
    """A sharding for each argument. UsageError if there is no such argument or dimension."""
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    found: list[HloSharding | None] = [HloSharding.replicate() for _ in leaves]
    for argument, dimension in cuts:
        if argument >= len(leaves):
            raise UsageError(f"--cut {argument}:{dimension}: the module has arguments 0 to {len(leaves) - 1}")
        rank = leaves[argument].rank
        if dimension >= rank:
            raise UsageError(f"--cut {argument}:{dimension}: {leaves[argument]} has no dimension {dimension}")
        found[argument] = HloSharding.from_tiles([count if d == dimension else 1 for d in range(rank)])
    return found
