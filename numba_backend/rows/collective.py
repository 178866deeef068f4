"""The row of ragged-all-to-all, the one collective that does work on a single device: it writes rows of an array."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.errors import ExecutionError, UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from .host import NDArray, host_row
from .table import RowContext, register


@register(Opcode.RAGGED_ALL_TO_ALL, how="NumPy")
def _ragged_all_to_all(context: RowContext, instruction: HloInstruction) -> None:
    groups = instruction.attributes.replica_groups.groups
    own = next((group for group in groups if 0 in group), (0,) if not groups else ())
    if own != (0,):
        raise UnsupportedError(
            f"ragged-all-to-all {instruction.name} in groups {instruction.attributes.replica_groups.text} needs "
            "several replicas, there is one"
        )
    host_row(context, instruction, _put_rows)


def _put_rows(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
    """Operands: input, output, input offsets, send sizes, output offsets, receive sizes."""
    data, output, sources, sizes, targets, _ = operands
    (result,) = results
    result[...] = output
    for source, size, target in zip(sources.tolist(), sizes.tolist(), targets.tolist()):
        if min(source, size, target) < 0 or source + size > len(data) or target + size > len(result):
            raise ExecutionError(f"ragged-all-to-all of {size} rows from {source} to {target}: outside of the arrays")
        result[target : target + size] = data[source : source + size]
