"""Op cases of sizes as values, on arrays of static shape."""

from __future__ import annotations

from collections.abc import Iterator

from ..hlo.ops.dynamic_size import DimensionAttributes
from .op_case import ALL, Array, E, O, OpCase, make_case, shape_of


def cases() -> Iterator[OpCase]:
    """The cases of the family. Sizes that are set must be constants in compiled code: test_structure_programs.py."""
    for t in ALL:
        for dims in ((4, 3), (0, 1), (7,)):
            for dimension in range(len(dims)):
                attributes = DimensionAttributes(dimension)
                yield make_case(
                    O.GET_DIMENSION_SIZE, [Array(t, dims)], shape_of(E.S32), attributes, note=str(dimension)
                )
