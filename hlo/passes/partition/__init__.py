"""The SPMD partitioner: of a program of whole arrays with shardings it makes the program of each device on its parts.

    prepare.py      calls become plain instructions; one device's own code does not change; the instructions of a region
    shardy_regions.py   shard_maps over some axes, from Shardy's form
    values.py       the values of the program, and the shardings that its text states
    factors.py      how the dimensions of an op's operands and results belong together: the rules of all ops
    propagation.py  stated shardings are carried to all values
    choice.py       how each instruction is shared, by price
    rewriting.py    the instructions on parts; terms.py: those whose results devices make together
    combine.py      all-reduces that do not wait for each other become one
    reshard.py      from one sharding to another; collectives.py: the instructions for it; axes.py: the devices

`partition` in `partitioner.py` does all of it. Source: GSPMD (https://arxiv.org/abs/2105.04663), XLA's SpmdPartitioner.
"""

from __future__ import annotations

from .partitioner import Partitioned, is_partitioned, needs_partitioning, partition, partitions_of

__all__ = ["Partitioned", "is_partitioned", "needs_partitioning", "partition", "partitions_of"]
