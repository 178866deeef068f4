"""Find the instructions that become output fusions: attention and its gradients, layers of a network, images.

The first is a product, a convolution or a window. The others follow it in the schedule, and compute each row of their
results from the same rows of values computed before; `keeps_rows` tells whether a fused computation does that. The rows
are cut in one of three ways:

* A product by BLAS finds its own pieces, one or more for each thread (`runtime/blas.py`). Fusions follow it: bias,
  activation, residual, scaling, softmax of rows.
* Products of floats and the fusions between them are a chain (`runtime/chain.py`), if the products' tiles fit. The rows
  are the matrices of a batch, if there are enough and the values between the products are small enough for a
  second-level cache; then a chain may also reduce over rows of a matrix, as gradients do. Otherwise they are rows of
  matrices.
* A convolution or a window is cut into images or rows, as its rule in `lowering_rules/` says; fusions follow it.

A scatter is the last instruction of its group: the others compute its indices or updates.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterator, Sequence

from ...hlo.buffers.values import is_alias
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.passes.fuse.outline_loops import is_outlined_loop
from ...hlo.support.records import dataclass
from ..dot import gemm_of, strides_of
from ..emit.inlined import may_be_inlined
from ..emitted_kernel import EmittedKernel
from ..fused_computations import FusedComputations, origin_of
from ..lowering_rules import output_rows_rule
from ..machine import target_machine
from ..policy.products import has_depth, is_kernel, rows_of_tile, suits_tiles
from ..runtime.blas import MOST_EPILOGUES
from ..runtime.chain import MOST_ARGUMENTS, Cut
from .form import Leaf, leaf_of
from .memory import reads_alone, taken_over

_FEWEST_MATRICES = 8
"""Fewer cannot be shared well between threads."""
_FEWEST_PIECES, _FEWEST_ROWS = 4, 96
"""Fewer rows in a piece take longer to copy panels than is saved."""
_MOST_MEMBERS = 16


def least_bytes() -> int:
    """The fewest bytes that are worth a chain. Smaller results of products are in the cache anyway when the next kernel
    reads them, and so are the values within a chain if they have fewer bytes than this."""
    return target_machine().second_cache


def _piece_bytes() -> int:
    """The same for one piece."""
    return target_machine().second_cache // 2


def _side_bytes() -> int:
    """Most bytes of a right-hand side that each piece of rows reads again."""
    return target_machine().second_cache // 2


_STRUCTURE = frozenset((Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.PARAMETER, Opcode.CONSTANT, Opcode.IOTA))
_RESHAPES = frozenset((Opcode.RESHAPE, Opcode.BITCAST))
_CONTROL = frozenset((Opcode.CALL, Opcode.CONDITIONAL, Opcode.WHILE))


@dataclass(frozen=True, slots=True)
class Group:
    """Instructions that become one output fusion, in the order of the schedule."""

    members: tuple[HloInstruction, ...]
    cut: Cut | None
    """None: a call of BLAS cuts its rows."""


def leading_sizes(dot: HloInstruction) -> tuple[int, ...]:
    """The dimensions that number the rows of a product's result: batch dimensions, and the free dimensions of the
    lhs."""
    count = dot.operands[0].shape.rank - len(dot.attributes.lhs_contracting_dims)
    return dot.shape.dimensions[:count]


def keeps_rows(body: HloComputation, given: Collection[int], leading: tuple[int, ...]) -> bool:
    """True if each row of a fused computation's results needs only that row of the parameters with the numbers `given`,
    and if its nest goes through rows in order. `leading`: the dimensions that number the rows of these parameters.

    Only operations are allowed that keep the leading dimensions where they are: element-wise ones, sums and maxima
    along the last dimensions, broadcasts along others than the leading ones.
    """
    rank = len(leading)
    follows: set[HloInstruction] = set()
    for i in body.instructions:
        if any(not s.is_array or not s.array_layout.is_row_major for s in i.shape.leaves()):
            return False
        reads = any(o in follows for o in i.operands)
        if i.opcode is Opcode.PARAMETER and i.attributes.number in given:
            reads = True
        if reads:
            follows.add(i)
            if any(s.dimensions[:rank] != leading for s in i.shape.leaves()):
                return False
        if i.opcode in _STRUCTURE or has_trait(i.opcode, Trait.ELEMENTWISE):
            continue
        if i.opcode is Opcode.REDUCE:
            dimensions, reduced = i.operands[0].shape.dimensions, sorted(i.attributes.dimensions)
            if dimensions[:rank] != leading or min(reduced, default=rank) < rank:
                return False
            if reduced != list(range(len(dimensions) - len(reduced), len(dimensions))):
                return False  # the nest would not go through the other dimensions in order
        elif i.opcode is Opcode.BROADCAST:
            if reads and tuple(i.attributes.dimensions[:rank]) != tuple(range(rank)):
                return False
        elif i.opcode not in _RESHAPES:
            return False
    return all(s.dimensions[:rank] == leading for s in body.root.shape.leaves())


def divides_rows(extent: int, sizes: tuple[int, ...]) -> bool:
    """True if a loop of this extent goes through the first dimensions of `sizes`."""
    return extent in itertools.accumulate(sizes, operator.mul)


def find_groups(computation: HloComputation, bodies: FusedComputations, *, products_only: bool) -> list[Group]:
    """The output fusions that a scheduled computation should have. `products_only`: chains alone."""
    finder = _Finder(computation, bodies)
    rules: dict[Opcode, tuple[Callable[[int], Group | None], ...]] = {
        Opcode.DOT: (finder.chain,), Opcode.SCATTER: (finder.inputs,),
    }  # fmt: skip
    if not products_only:
        rules[Opcode.DOT] = finder.chain, finder.epilogues
        rules[Opcode.CONVOLUTION] = rules[Opcode.REDUCE_WINDOW] = (finder.images,)
    found: list[Group] = []
    absorbed: set[HloInstruction] = set()
    for number, instruction in enumerate(computation.instructions):
        if instruction in absorbed:
            continue
        for rule in rules.get(instruction.opcode, ()):
            group = rule(number)
            if group is not None and absorbed.isdisjoint(group.members):
                found.append(group)
                absorbed.update(group.members)
                break
    return found


def _is_dense(instruction: HloInstruction) -> bool:
    arrays = (instruction, *instruction.operands)
    return all(s.is_array and s.array_layout.is_row_major for i in arrays for s in i.shape.leaves())


class _Finder:
    def __init__(self, computation: HloComputation, bodies: FusedComputations) -> None:
        self.computation, self.bodies = computation, bodies

    def chain(self, number: int) -> Group | None:
        """The chain that begins with a product."""
        dot = self.computation.instructions[number]
        if not _is_dense(dot) or not _Candidates(self, number, (), _of_rows(1)).may_pay():
            return None
        if not suits_tiles(dot) or not has_depth(strides_of(dot).k):
            return None
        leading = leading_sizes(dot)
        batch = len(dot.attributes.lhs_batch_dims)
        ways = [leading[:batch]] if math.prod(leading[:batch]) >= _FEWEST_MATRICES else []
        for rows in dict.fromkeys([*ways, leading]):
            chain = _Chain(self, number, rows, batch)
            cut = chain.cut()
            if cut is not None:
                return Group(tuple(chain.members), cut)
        return None

    def epilogues(self, number: int) -> Group | None:
        """The fusions after a product that BLAS computes."""
        dot = self.computation.instructions[number]
        if dot.shape.byte_size < least_bytes() or not _is_dense(dot):
            return None
        group = self.after_blas(number, leading_sizes(dot))
        if group is None or is_kernel(dot, target_machine()) or not gemm_of(dot).takes_epilogues:
            return None
        return group

    def after_blas(self, number: int, leading: tuple[int, ...]) -> Group | None:
        """The fusions after an instruction that is one call of BLAS."""
        first = self.computation.instructions[number]

        def fits(kernel: EmittedKernel, shapes: Sequence[tuple[int, ...]]) -> bool:
            return divides_rows(kernel.extent, first.shape.dimensions)

        found = _Followers(self, number, leading, fits).collect(1 + MOST_EPILOGUES)
        return Group(tuple(found), None) if len(found) > 1 else None

    def images(self, number: int) -> Group | None:
        """The fusions after a convolution or a window."""
        instruction = self.computation.instructions[number]
        rule = output_rows_rule(instruction.opcode)
        if rule is None or not _is_dense(instruction) or not instruction.shape.num_elements:
            return None
        rows = rule(instruction)
        if rows is None:
            return None
        if not rows.pieces:
            return self.after_blas(number, rows.leading) if instruction.shape.byte_size >= least_bytes() else None
        best: Group | None = None
        for count in rows.pieces:
            found = _Followers(self, number, rows.leading, _of_rows(count)).collect(_MOST_MEMBERS)
            if len(found) > (1 if best is None else len(best.members)):
                best = Group(tuple(found), Cut(count, 1, 1))
        return best

    def inputs(self, number: int) -> Group | None:
        """The cheap computations of a scatter's indices and updates, which its kernel does where it reads them."""
        scatter = self.computation.instructions[number]
        if not _is_dense(scatter):
            return None
        members: list[HloInstruction] = []
        for operand in range(len(scatter.operands) // 2, len(scatter.operands)):
            reader, value, path = scatter, scatter.operands[operand], []
            while self._is_for(value, reader) and value.opcode in _RESHAPES:
                path.append(value)
                reader, value = value, value.operands[0]
            may_wait = self._is_for(value, reader) and self._may_wait(value, number)
            if may_wait and may_be_inlined(self.bodies.of(value), scatter, operand):
                members += [value, *reversed(path)]
        return Group((*members, scatter), None) if members else None

    def _is_for(self, value: HloInstruction, reader: HloInstruction) -> bool:
        once = value.shape.is_array and reader.operands.count(value) == 1
        return once and reads_alone(self.computation, value, reader)

    def _may_wait(self, fusion: HloInstruction, number: int) -> bool:
        """True for a fusion that may run later, as a part of instruction `number`: no other instruction until then
        reads its operands. One of these may be a computation's last look at an array, and write over it."""
        if fusion.opcode is not Opcode.FUSION or is_outlined_loop(fusion):
            return False
        read = {origin_of(operand) for operand in fusion.operands}
        instructions = self.computation.instructions
        between = instructions[instructions.index(fusion) + 1 : number + 1]
        return all(
            is_alias(i) or (i.opcode not in _CONTROL and read.isdisjoint(map(origin_of, i.operands)))
            for i in between
        )


Fits = Callable[[EmittedKernel, Sequence[tuple[int, ...]]], bool]
"""fits(kernel, sizes): does a kernel go through the rows in order? `sizes`: the sizes of its results and of the given
values."""


def _of_rows(count: int) -> Fits:
    """Kernels with a number of iterations for each of `count` rows."""

    def fits(kernel: EmittedKernel, sizes: Sequence[tuple[int, ...]]) -> bool:
        few = len(kernel.parameters) <= MOST_ARGUMENTS
        return few and kernel.extent % count == 0 and any(divides_rows(kernel.extent, each) for each in sizes)

    return fits


class _Followers:
    """An instruction, and the ones after it that compute rows from the same rows of its results and of each other's."""

    def __init__(self, finder: _Finder, number: int, leading: tuple[int, ...], fits: Fits) -> None:
        self.computation, self.bodies = finder.computation, finder.bodies
        self.number, self.leading, self.fits = number, leading, fits
        self.members: list[HloInstruction] = []
        self.computed: set[HloInstruction] = set()
        """The members, and elements of them."""
        self.taken: dict[HloInstruction, dict[int, int]] = {}
        """By member: result -> the operand that it is stored over."""

    def collect(self, most: int) -> list[HloInstruction]:
        """The members."""
        views: set[HloInstruction] = set()
        instructions = self.computation.instructions
        self._add(instructions[self.number])
        for following in itertools.islice(instructions, self.number + 1, None):
            if following.opcode is Opcode.GET_TUPLE_ELEMENT and following.operands[0] in self.members:
                self.computed.add(following)
                continue
            reads_view = any(operand in views for operand in following.operands)
            if following.opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(following):
                if reads_view or any(operand in self.computed for operand in following.operands):
                    views.add(following)  # in another form, in which rows are not known
                continue
            if reads_view or len(self.members) == most or not all(o.shape.is_array for o in following.operands):
                break
            given = {k for k, operand in enumerate(following.operands) if operand in self.computed}
            if not self.accepts(following, given):
                break
            self._add(following)
        return self.members

    def accepts(self, following: HloInstruction, given: Collection[int]) -> bool:
        """True for an instruction that may follow. `given`: its operands that the members compute."""
        return following.opcode is Opcode.FUSION and self.follows(following, given)

    def follows(self, fusion: HloInstruction, given: Collection[int]) -> bool:
        """True for a fusion with a kernel that goes through the rows in order, each from the same row of the given
        values."""
        if is_outlined_loop(fusion) or not given or not self._keeps_rows(fusion, frozenset(given)):
            return False
        taken = taken_over(fusion, lambda value: self._is_only_reader(value, fusion), self.bodies.can_share)
        if taken and self.bodies.is_identity(fusion):
            return False
        kernel = self.bodies.kernel(fusion, taken)
        if kernel.is_serial or kernel.copied_operands or not kernel.extent:
            return False
        shapes = [*fusion.shape.leaves(), *(fusion.operands[k].shape for k in given)]
        self.taken[fusion] = taken
        return self.fits(kernel, [shape.dimensions for shape in shapes])

    def _keeps_rows(self, fusion: HloInstruction, given: frozenset[int]) -> bool:
        answers, key = self.bodies.row_answers(fusion), (given, self.leading)
        if key not in answers:
            answers[key] = keeps_rows(fusion.attributes.calls, *key)
        return answers[key]

    def _is_only_reader(self, value: HloInstruction, reader: HloInstruction) -> bool:
        return value in self.computed and reads_alone(self.computation, value, reader)

    def _add(self, member: HloInstruction) -> None:
        self.members.append(member)
        self.computed.add(member)


class _Candidates(_Followers):
    """All that may follow a product in a chain, judged without sizes and kernels: the members of each of its chains are
    the first ones of these. Most products have none, which this finds out for little."""

    def may_pay(self) -> bool:
        """False if no chain has two products and enough bytes between its members (`_Chain.cut`)."""
        self.collect(_MOST_MEMBERS)
        if sum(member.opcode is Opcode.DOT for member in self.members) < 2:
            return False
        read = {operand for member in self.members for operand in member.operands if operand in self.computed}
        return sum(operand.shape.byte_size for operand in read) > least_bytes()

    def accepts(self, following: HloInstruction, given: Collection[int]) -> bool:
        return following.opcode is Opcode.DOT or (following.opcode is Opcode.FUSION and bool(given))


class _Chain(_Followers):
    """The longest chain with rows of these sizes; the first `batch` sizes number matrices."""

    def __init__(self, finder: _Finder, number: int, leading: tuple[int, ...], batch: int) -> None:
        self.batch, self.rows = batch, math.prod(leading)
        self.by_matrices = len(leading) == batch
        super().__init__(finder, number, leading, _of_rows(self.rows))

    def cut(self) -> Cut | None:
        """How the chain is cut; None if there is none."""
        if not self._reads_little(self.computation.instructions[self.number]):
            return None
        self.collect(_MOST_MEMBERS)
        while self.members and not any(operand in self.computed for operand in self.members[-1].operands):
            self.members.pop()
        if sum(member.opcode is Opcode.DOT for member in self.members) < 2:
            return None
        nbytes = self._between()
        if nbytes * self.rows <= least_bytes():
            return None
        if self.by_matrices:
            return Cut(self.rows, 1, 1) if nbytes <= _piece_bytes() else None
        matrices = math.prod(self.leading[: self.batch])
        rows = self.rows // matrices
        if _piece_bytes() // nbytes < _FEWEST_ROWS:
            return None
        most = max(_FEWEST_ROWS, min(_piece_bytes() // nbytes, rows * matrices // _FEWEST_PIECES))
        tile = rows_of_tile()
        step = rows // -(-rows // most) // tile * tile  # the last piece has the rest too
        return Cut(matrices, rows, max(step, tile))

    def accepts(self, following: HloInstruction, given: Collection[int]) -> bool:
        if following.opcode is Opcode.DOT:
            return self._has_same_rows(following, given)
        return super().accepts(following, given)

    def _has_same_rows(self, dot: HloInstruction, given: Collection[int]) -> bool:
        attributes = dot.attributes
        if not _is_dense(dot) or not suits_tiles(dot) or (not given and not has_depth(strides_of(dot).k)):
            return False
        sizes = leading_sizes(dot)[: len(self.leading)]
        if len(attributes.lhs_batch_dims) != self.batch or sizes != self.leading:
            return False
        matrices = tuple(range(self.batch))
        if self.by_matrices:
            batches = attributes.lhs_batch_dims, attributes.rhs_batch_dims
            return all(tuple(batches[k]) == matrices for k in given)
        if len(leading_sizes(dot)) != len(self.leading) or 1 in given or not self._reads_little(dot):
            return False
        if not given:
            return True
        contracting = attributes.lhs_contracting_dims
        return tuple(attributes.lhs_batch_dims) == matrices and min(contracting) >= len(self.leading)

    def _reads_little(self, dot: HloInstruction) -> bool:
        if self.by_matrices:
            return True
        strides = strides_of(dot)
        return strides.k * strides.n * dot.shape.element.byte_width <= _side_bytes()

    def _between(self) -> int:
        """The bytes of a row of all that is computed and needed in the chain, each place counted once."""
        places: dict[Leaf, Leaf] = {}
        for member in self.members:
            for k, n in self.taken.get(member, {}).items():
                before = leaf_of(member.operands[n])
                places[member, k] = places.get(before, before)
        found = {
            places.get(leaf, leaf): operand.shape.byte_size // self.rows
            for operand in self._operands()
            for leaf in [leaf_of(operand)]
        }
        return sum(found.values())

    def _operands(self) -> Iterator[HloInstruction]:
        for member in self.members:
            yield from (operand for operand in member.operands if operand in self.computed)
