"""columns-of-loops: a loop that reads columns of a matrix that never changes reads rows of its transpose.

    for k: ... a[:, k] ...   ->   for k: ... transpose(a)[k] ...

Elements of a column are a row apart: each is loaded by itself, and from large matrices each takes a line of the cache.
`loop-invariant-code-motion`, which must come after this, moves the transpose out of all loops in which the matrix does
not change. So it is made once, in tiles.

A loop that runs once, and reads each column once, stays as it is if the lines of a column stay in the first cache until
its neighbours are read, and the matrix in the second: loading an element then takes no longer than transposing it. (100
sums over columns of 100 elements 5.6 -> 2.4 us, 200 of 200 13.0 -> 8.9, 350 of 350 36.8 and 36.0; sums of masked
columns read half as much, 200 of 200 12.5 -> 5.0.) The factors of a product wait for each other, and those of
neighbours do so as vectors.
"""

from __future__ import annotations

from ...analyses.trip_count import induction_variable
from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.movement import DynamicSliceAttributes
from ...support.records import dataclass
from ..patterns import reducer_opcode, reshape, transpose
from ..rewrite import map_each_computation, rewrite_computation
from ..simplify.loops import has_tuple_state, unchanged_elements


@dataclass(frozen=True, slots=True)
class ColumnsOfLoops:
    """Transposes matrices of which a loop reads as many elements, column by column, as they have."""

    least: int = 16
    """A matrix has at least so many rows and columns: elements of shorter rows are neighbours as they are."""
    most: int = 1 << 26
    """Bytes of a matrix: the transpose takes as many again."""
    near_rows: int = 0
    """The rows of a matrix of which one line each stays in the first cache."""
    near: int = 0
    """Bytes of a matrix that stays in the second cache."""
    name: str = "columns-of-loops"

    def __call__(self, module: HloModule) -> HloModule:
        repeated = _inside_loops(module)

        def rewritten(old: HloComputation, current: HloComputation) -> HloComputation:
            if Opcode.WHILE not in current.opcodes:
                return current

            def visit(_: HloInstruction, moved: HloInstruction) -> HloInstruction:
                is_loop = moved.opcode is Opcode.WHILE and has_tuple_state(moved)
                return self.on_rows(moved, runs_once=old not in repeated) if is_loop else moved

            return rewrite_computation(current, visit)

        return map_each_computation(module, rewritten)

    def on_rows(self, loop: HloInstruction, *, runs_once: bool) -> HloInstruction:
        """The loop with rows of transposes in place of columns; itself if it reads few."""
        counter = induction_variable(loop)
        if counter is None:
            return loop
        body: HloComputation = loop.attributes.body
        has_chains = any(i.opcode is Opcode.REDUCE and _multiplies(i) for i in body.instructions)
        columns: dict[HloInstruction, HloInstruction] = {}
        for k in unchanged_elements(loop):
            for matrix in body.state_elements.get(k, ()):
                found = [user for user in body.users[matrix] if self._is_column(user, matrix)]
                if not found:
                    continue
                reads, width = counter.trip_count * len(found), matrix.shape.dimensions[1]
                is_read_once = runs_once and reads < 2 * width and not has_chains
                if reads >= width and not (is_read_once and self._is_near(matrix)):
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

    def _is_near(self, matrix: HloInstruction) -> bool:
        return matrix.shape.dimensions[0] <= self.near_rows and matrix.shape.byte_size <= self.near

    def _is_column(self, user: HloInstruction, matrix: HloInstruction) -> bool:
        if user.opcode is not Opcode.DYNAMIC_SLICE or user.operands[0] is not matrix or matrix.shape.rank != 2:
            return False
        rows, columns = matrix.shape.dimensions
        is_column = user.shape.dimensions == (rows, 1) and min(rows, columns) >= self.least
        return is_column and matrix.shape.byte_size <= self.most


def _multiplies(reduce: HloInstruction) -> bool:
    return reducer_opcode(reduce.attributes.to_apply) is Opcode.MULTIPLY


def _inside_loops(module: HloModule) -> set[HloComputation]:
    """The computations that loops run, with all that they call."""
    found: set[HloComputation] = set()
    for computation in reversed(module.computations):  # callers first
        for instruction in computation.callers:
            if computation in found or instruction.opcode is Opcode.WHILE:
                found.update(instruction.called_computations())
    return found
