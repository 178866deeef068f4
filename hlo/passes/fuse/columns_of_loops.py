"""columns-of-loops: a loop that reads columns of a matrix that never changes reads rows of its transpose.

    for k: ... a[:, k] ...   ->   for k: ... transpose(a)[k] ...

Elements of a column are a row apart: each is loaded by itself, and from large matrices each takes a line of the cache.
`loop-invariant-code-motion`, which must come after this, moves the transpose out of all loops in which the matrix does
not change. So it is made once, in tiles.
"""

from __future__ import annotations

from ...analyses.trip_count import induction_variable
from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.movement import DynamicSliceAttributes
from ...support.records import dataclass
from ..patterns import reshape, transpose
from ..rewrite import map_computations, rewrite_computation
from ..simplify.loops import has_tuple_state, unchanged_elements


@dataclass(frozen=True, slots=True)
class ColumnsOfLoops:
    """Transposes matrices of which a loop reads as many elements, column by column, as they have."""

    least: int = 16
    """A matrix has at least so many rows and columns: elements of shorter rows are neighbours as they are."""
    most: int = 1 << 26
    """Bytes of a matrix: the transpose takes as many again."""
    name: str = "columns-of-loops"

    def __call__(self, module: HloModule) -> HloModule:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            return self.on_rows(moved) if moved.opcode is Opcode.WHILE and has_tuple_state(moved) else moved

        def rewritten(computation: HloComputation) -> HloComputation:
            return rewrite_computation(computation, visit) if Opcode.WHILE in computation.opcodes else computation

        return map_computations(module, rewritten)

    def on_rows(self, loop: HloInstruction) -> HloInstruction:
        """The loop with rows of transposes in place of columns; itself if it reads few."""
        counter = induction_variable(loop)
        if counter is None:
            return loop
        body: HloComputation = loop.attributes.body
        columns: dict[HloInstruction, HloInstruction] = {}
        for k in unchanged_elements(loop):
            for matrix in body.state_elements.get(k, ()):
                found = [user for user in body.users[matrix] if self._is_column(user, matrix)]
                if found and counter.trip_count * len(found) >= matrix.shape.dimensions[1]:
                    columns.update(dict.fromkeys(found, matrix))
        if not columns:
            return loop

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if old not in columns:
                return moved
            matrix, row, column = moved.operands
            sizes = DynamicSliceAttributes((1, old.shape.dimensions[0]))
            found = make_instruction(Opcode.DYNAMIC_SLICE, (transpose(matrix, (1, 0)), column, row), sizes)
            return reshape(found, old.shape.dimensions)

        changed = WhileAttributes(loop.attributes.condition, rewrite_computation(body, visit))
        return loop.with_form(loop.shape, loop.operands, changed)

    def _is_column(self, user: HloInstruction, matrix: HloInstruction) -> bool:
        if user.opcode is not Opcode.DYNAMIC_SLICE or user.operands[0] is not matrix or matrix.shape.rank != 2:
            return False
        rows, columns = matrix.shape.dimensions
        is_column = user.shape.dimensions == (rows, 1) and min(rows, columns) >= self.least
        return is_column and matrix.shape.byte_size <= self.most
