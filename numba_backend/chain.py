"""Which products and fusions run piece by piece, one after another on each piece: attention and its gradients.

A product of floats, what is computed from its rows, a product of that, and so on, are one row of the program's table
if all of them go through the same rows in order (`runtime/chain.py`). The rows are the matrices of a batch, if there
are enough and what is between the products is small enough for a second-level cache; then a chain may also reduce over
rows of a matrix, as gradients do. Otherwise they are rows of matrices.

The kernels of a convolution or a window are followed by those of fusions in the same way (`find_followers`), image by
image: a bias, an activation, a division.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..hlo.analyses.bands import EVERYTHING, Band, looked_at, repeated_outside
from ..hlo.buffers.assignment import AllocationKind, BufferAssignment, BufferSlice, is_alias
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.passes.fuse.outline_loops import is_outlined_loop
from .bodies import Bodies
from .dot import strides_of
from .emit.kernel import EmittedKernel
from .epilogue import Rowwise, divides_rows, keeps_rows, leading_sizes
from .machine import target_machine
from .policy.products import SHALLOW_DEPTH, GivenBand, suits_tiles, tiles
from .runtime.chain import MOST_ARGUMENTS, Cut

_FEWEST_MATRICES = 8
"""Fewer cannot be shared well between threads."""
_FEWEST_PIECES, _FEWEST_ROWS = 4, 96
"""Fewer rows in a piece take longer to copy panels than is saved."""
_TILE_ROWS = 6
_MOST_LINKS = 16


def _least_bytes() -> int:
    """Of what is computed and needed in the chain: no more than that is in second-level caches anyway."""
    return target_machine().second_cache


def _piece_bytes() -> int:
    """Of that for one piece."""
    return target_machine().second_cache // 2


def _side_bytes() -> int:
    """Of a right-hand side that each piece of rows reads again."""
    return target_machine().second_cache // 2


@dataclass(frozen=True, slots=True)
class Link:
    """An instruction of a chain."""

    instruction: HloInstruction
    kernel: EmittedKernel
    turns: int
    """Of the kernel, for each row; 0: one for each piece."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Instructions that run piece by piece."""

    links: tuple[Link, ...]
    cut: Cut
    moves: tuple[tuple[BufferSlice, int], ...]
    """The memory of what is needed only within the chain, and the bytes of a row of it."""


def find_chain(
    instructions: Sequence[HloInstruction], number: int, assignment: BufferAssignment, bodies: Bodies
) -> Chain | None:
    """The chain that begins with a product, the instruction of this number in a scheduled computation; or None."""
    dot = instructions[number]
    if not _suits(dot) or strides_of(dot).k not in SHALLOW_DEPTH:
        return None
    leading = leading_sizes(dot)
    batch = leading[: len(dot.attributes.lhs_batch_dims)]
    found = None
    if math.prod(batch) >= _FEWEST_MATRICES:
        found = _Finder(instructions, number, assignment, bodies, batch, len(batch)).find()
    return found or _Finder(instructions, number, assignment, bodies, leading, len(batch)).find()


@dataclass(frozen=True, slots=True)
class Followers:
    """Fusions that run piece by piece after the kernels of another instruction."""

    links: tuple[Link, ...]
    moves: tuple[tuple[BufferSlice, int], ...]
    """The memory of what is needed only within the chain, and the bytes of a piece of it."""


def find_followers(
    instructions: Sequence[HloInstruction], number: int, assignment: BufferAssignment, bodies: Bodies,
    leading: tuple[int, ...], pieces: int,
) -> Followers:  # fmt: skip
    """The fusions after an instruction that can be computed from one piece of its result at a time. A piece has as many
    rows as the others; `leading`: the dimensions of the result that number the rows."""
    if not all(shape.is_array and shape.array_layout.is_row_major for shape in instructions[number].shape.leaves()):
        return Followers((), ())
    finder = _Finder(instructions, number, assignment, bodies, leading, len(leading), pieces)
    return finder.followers()


def _suits(dot: HloInstruction) -> bool:
    arrays = (dot, *dot.operands)
    return all(i.shape.is_array and i.shape.array_layout.is_row_major for i in arrays) and suits_tiles(dot)


def _given(dot: HloInstruction) -> GivenBand | None:
    """What is known of a product's left-hand side, from a mask; None if nothing is."""
    lhs, attributes = dot.operands[0], dot.attributes
    rank = lhs.shape.rank
    if rank != len(attributes.lhs_batch_dims) + 2 or tuple(attributes.lhs_batch_dims) != tuple(range(rank - 2)):
        return None
    band = repeated_outside(lhs)
    if band == EVERYTHING:
        return None
    turned = tuple(attributes.lhs_contracting_dims) == (rank - 2,)
    return GivenBand(band.turned() if turned else band, turned)


class _Finder:
    """Looks for the longest chain whose rows have these sizes, of which the first `batch` number matrices."""

    def __init__(
        self, instructions: Sequence[HloInstruction], number: int, assignment: BufferAssignment, bodies: Bodies,
        leading: tuple[int, ...], batch: int, rows: int | None = None,
    ) -> None:  # fmt: skip
        self.instructions, self.number = instructions, number
        self.assignment, self.bodies = assignment, bodies
        self.leading, self.batch = leading, batch
        self.rows = math.prod(leading) if rows is None else rows
        self.members: dict[HloInstruction, EmittedKernel | None] = {}
        """The instructions, and the kernels of those that are not products."""
        self.computed: dict[HloInstruction, HloInstruction] = {}
        """What they compute, or an element of that; by which of them."""

    def find(self) -> Chain | None:
        """The chain, or None."""
        if not self._reads_little(self.instructions[self.number]):
            return None
        self._collect()
        members = list(self.members)
        while members and not self._consumes(members[-1]):
            del self.members[members.pop()]
        if sum(member.opcode is Opcode.DOT for member in members) < 2:
            return None
        moves = self._moves()
        nbytes = sum(self._between().values())
        if nbytes * self.rows <= _least_bytes():
            return None
        cut = self._cut(nbytes)
        if cut is None:
            return None
        links = [self._link(member, kernel, cut) for member, kernel in self.members.items()]
        if any(len(link.kernel.parameters) > MOST_ARGUMENTS for link in links):
            return None
        return Chain(tuple(links), cut, tuple(moves.items()))

    def followers(self) -> Followers:
        """The fusions after the first instruction."""
        self._collect(products=False)
        others = list(self.members.items())[1:]
        links = [Link(member, kernel, kernel.extent // self.rows) for member, kernel in others if kernel is not None]
        if any(len(link.kernel.parameters) > MOST_ARGUMENTS for link in links):
            return Followers((), ())
        return Followers(tuple(links), tuple(self._moves().items()) if links else ())

    def _cut(self, nbytes: int) -> Cut | None:
        """`nbytes`: of a row, of what is computed and needed in the chain."""
        if len(self.leading) == self.batch:
            return Cut(self.rows, 1, 1) if nbytes <= _piece_bytes() else None
        matrices = math.prod(self.leading[: self.batch])
        rows = self.rows // matrices
        if _piece_bytes() // nbytes < _FEWEST_ROWS:
            return None
        most = max(_FEWEST_ROWS, min(_piece_bytes() // nbytes, rows * matrices // _FEWEST_PIECES))
        step = rows // -(-rows // most) // _TILE_ROWS * _TILE_ROWS  # the last piece has the rest too
        return Cut(matrices, rows, max(step, _TILE_ROWS))

    def _link(self, member: HloInstruction, kernel: EmittedKernel | None, cut: Cut) -> Link:
        if kernel is not None:
            return Link(member, kernel, kernel.extent // self.rows)
        whole = len(self.leading) == self.batch
        rows = -(-strides_of(member).m // _TILE_ROWS) * _TILE_ROWS if whole else cut.step
        return Link(member, tiles(member, rows, self._wanted(member), _given(member)), 0)

    def _wanted(self, dot: HloInstruction) -> Band:
        """The part of a product's result that anybody looks at."""
        if dot is self.instructions[-1] or dot.shape.rank != len(dot.attributes.lhs_batch_dims) + 2:
            return EVERYTHING
        return looked_at(dot, [user for user in self.instructions if dot in user.operands])

    def _consumes(self, member: HloInstruction) -> bool:
        return any(operand in self.computed for operand in member.operands)

    def _collect(self, *, products: bool = True) -> None:
        first = self.instructions[self.number]
        memory = Rowwise(self.assignment.operand_leaves(first), self.assignment.leaves(first))
        self._add(first, None)
        for following in itertools.islice(self.instructions, self.number + 1, None):
            if following.opcode is Opcode.GET_TUPLE_ELEMENT and following.operands[0] in self.members:
                self.computed[following] = following.operands[0]
                continue
            if following.opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(following):
                continue
            if len(self.members) == _MOST_LINKS or not all(o.shape.is_array for o in following.operands):
                return
            given = {k for k, operand in enumerate(following.operands) if operand in self.computed}
            outputs = self.assignment.leaves(following)
            operands = self.assignment.operand_leaves(following)
            kernel: EmittedKernel | None = None
            if following.opcode is Opcode.DOT:
                if not products or not self._has_same_rows(following, given):
                    return
            elif following.opcode is not Opcode.FUSION or is_outlined_loop(following):
                return
            else:
                kernel = self._kernel(following, given, operands, outputs)
                if kernel is None:
                    return
            if not memory.allows(operands, given, outputs):
                return
            memory.add(operands, given, outputs)
            self._add(following, kernel)

    def _add(self, member: HloInstruction, kernel: EmittedKernel | None) -> None:
        self.members[member] = kernel
        self.computed[member] = member

    def _reads_little(self, dot: HloInstruction) -> bool:
        if len(self.leading) == self.batch:
            return True
        strides = strides_of(dot)
        return strides.k * strides.n * dot.shape.element.byte_width <= _side_bytes()

    def _has_same_rows(self, dot: HloInstruction, given: Collection[int]) -> bool:
        attributes = dot.attributes
        if not _suits(dot) or (not given and strides_of(dot).k not in SHALLOW_DEPTH):
            return False
        sizes = leading_sizes(dot)[: len(self.leading)]
        if len(attributes.lhs_batch_dims) != self.batch or sizes != self.leading:
            return False
        matrices = tuple(range(self.batch))
        if len(self.leading) == self.batch:
            batches = attributes.lhs_batch_dims, attributes.rhs_batch_dims
            return all(tuple(batches[k]) == matrices for k in given)
        if len(leading_sizes(dot)) != len(self.leading) or 1 in given or not self._reads_little(dot):
            return False
        if not given:
            return True
        contracting = attributes.lhs_contracting_dims
        return tuple(attributes.lhs_batch_dims) == matrices and min(contracting) >= len(self.leading)

    def _kernel(
        self, fusion: HloInstruction, given: Collection[int], operands: Sequence[BufferSlice],
        outputs: Sequence[BufferSlice],
    ) -> EmittedKernel | None:  # fmt: skip
        """The kernel of a fusion that goes through the rows in order, each from the same row of what is given."""
        body = fusion.attributes.calls
        if not given or not keeps_rows(body, given, self.leading):
            return None
        for i in body.instructions:
            if i.opcode is Opcode.REDUCE:  # along rows, so that the nest goes through the other dimensions in order
                rank, reduced = i.operands[0].shape.rank, sorted(i.attributes.dimensions)
                if reduced != list(range(rank - len(reduced), rank)):
                    return None
        sharing = {k: operands.index(s) for k, s in enumerate(outputs) if s in operands and s.size}
        if sharing and self.bodies.of(fusion).is_identity:
            return None
        kernel = self.bodies.kernel(fusion, sharing)
        if kernel.is_serial or kernel.copied_operands or not kernel.extent or kernel.extent % self.rows:
            return None
        shapes = [*fusion.shape.leaves(), *(fusion.operands[k].shape for k in given)]
        return kernel if any(divides_rows(kernel.extent, s.dimensions) for s in shapes) else None

    def _between(self) -> dict[BufferSlice, int]:
        """By memory of what is computed and needed in the chain: the bytes of a row of it."""
        found: dict[BufferSlice, int] = {}
        for member in self.members:
            for operand, place in zip(member.operands, self.assignment.operand_leaves(member), strict=True):
                if operand in self.computed:
                    found[place] = operand.shape.byte_size // self.rows
        return found

    def _moves(self) -> dict[BufferSlice, int]:
        """By memory of what is needed only within the chain: the bytes of a row of it."""
        outside: set[tuple[HloInstruction, int]] = set()
        instructions = self.instructions
        for user in instructions:
            if user not in self.members and self.computed.get(user) is None:
                for operand in user.operands:
                    if operand in self.computed:
                        outside.update(self._elements(operand))
        root = instructions[-1]
        if root in self.computed:
            outside.update(self._elements(root))
        inside: dict[BufferSlice, int] = {}
        others: list[BufferSlice] = []
        for member in self.members:
            shapes = list(member.shape.leaves())
            for k, (place, shape) in enumerate(zip(self.assignment.leaves(member), shapes, strict=True)):
                if not place.size:
                    continue
                row = shape.byte_size // self.rows
                is_known = inside.get(place, row) == row
                if (member, k) in outside or not is_known or place.allocation.kind is not AllocationKind.ARENA:
                    others.append(place)
                else:
                    inside[place] = row
            for operand, place in zip(member.operands, self.assignment.operand_leaves(member), strict=True):
                if operand not in self.computed and place.size:
                    others.append(place)
        return {
            place: row
            for place, row in inside.items()
            if not any(place.overlaps(other) for other in others)
            and not any(place.overlaps(other) for other in inside if other != place)
        }

    def _elements(self, value: HloInstruction) -> list[tuple[HloInstruction, int]]:
        """Which leaves of which members a value is."""
        member = self.computed[value]
        if value is not member:
            return [(member, value.attributes.index)]
        return [(member, k) for k in range(len(list(member.shape.leaves())))]
