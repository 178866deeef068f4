"""Give LLVM hints about each loop, as metadata on its jump back.

Interleaving iterations and unrolling remainders double the code and so the compile time. Measurements showed no gain,
except where operations wait for each other: in reductions (1.35 times for softmax), and in the polynomials of
elementary functions, on some machines (`machine.interleaved`).

LLVM unrolls a loop of few iterations before it vectorises, and makes vectors of the straight code then. That is good
for most bodies, but not for all; and it is not done at all in a kernel with narrow integers (see llvm_backend.py). So
five kinds of loops are unrolled only after they have been vectorised:

* sums of neighbours in memory, of 12 to 32 elements: 1.1 to 2.6 times for row sums, products of two rows, norms;
* copies of a row to several places, one element to each in turn, as the cells of a convolution with a stride are taken
  apart: 1.8 times for rows of 56, since straight code moves one element at a time;
* loops over eight elements at indices that are loaded: 1.1 to 2.3 times, since straight code takes vectors of indices
  apart, to test and to clamp halves of them. LLVM vectorises longer loops of this kind itself, and no shorter ones;
* in a kernel with narrow integers, loops over local arrays, element by element: 1.0 to 2.7 times;
* the same loops in a product of matrices, which has a large local array: vectors of straight code would be made across
  the rows of a tile, at half the speed.

A loop of cheap operations over elements that lie far from each other, such as a column of a matrix, is not vectorised:
LLVM computes the addresses in vectors, takes them apart, and moves elements one at a time. A sum of such elements has
four partial sums (1.3 to 1.8 times for a column times a column; Gram and Schmidt's columns of 60 elements 1.9 times).
Where the distance is an argument, LLVM would write the loop twice, with partial sums where the distance turns out to be
one, and without them where it is not. It does so for distances that are plain variables, and not for the larger one of
a variable and one (200 sums over columns of 200 elements: 36 -> 9 us).

A loop around a short one that loads elements by indices it has loaded is not vectorised, as when a few elements of each
row are taken: vectors across the rows would transpose indices and results, and elements are loaded one by one all the
same (1.15 times).

Neither is a loop around a short one that copies more than eight elements which are no neighbours, or in which no loads
at all are of neighbours, as in means of images that are channels last: LLVM would take an element from each of sixteen
iterations, sixteen times (260 ms for a kernel that otherwise compiles in 27, at the same speed).

A loop that stores elements at places, and counts the places in an array, as a radix sort does, is unrolled whatever its
count is. A processor predicts for each load instruction whether it must wait for earlier stores. A single load of
places sometimes reads a count that was just stored; then it waits each time, also for the stores of elements. Of eight
copies of the load few do (a pass of a sort of 1,000,000 numbers on Zen 3: 0.9 ms instead of 2.3). So is a loop that
updates elements at places which it loads and does not test: it has few other instructions (a histogram of 1,000,000
numbers on Zen 5: 0.24 ms instead of 0.31).

A loop that LLVM does not vectorise must not be told so: it would never be unrolled.

A loop with a fixed, small count is not unrolled if the count of its inner loop is an argument: LLVM would make a copy
of the inner loop for each iteration, and of all that vectorising adds to it (a concatenation of nine images: 3259 lines
of optimised IR in place of 1073). A call gains nothing by it, as the inner loop takes the time. Where a body indexes
local arrays, copies pay all the same, as the elements become registers; where it branches by the outer counter, a copy
has no branch; and where the inner count depends on that counter (a triangle), it is a number in each copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import llvmlite.ir as llir

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number
from ..loops.statements import Assign, Augment, Comment, For, If, LocalArray, Store, While, expressions_of, walk
from ..loops.vectorized_calls import LONG

_I32 = llir.IntType(32)
_NOT_AT_RUNTIME = "llvm.loop.unroll.runtime.disable"

SUM_LEAST, SUM_MOST = 12, 32
ROWS = frozenset((4, 8, *range(16, 65, 8)))
"""The numbers of iterations of a sum and of a loop over local arrays that are vectorised before they are unrolled. LLVM
does not vectorise less than 16 if some are left over."""
_MOST_GROUPED = 8
"""Elements of a group of interleaved accesses that LLVM makes vectors of."""
TAKEN = 8
"""The number of elements, taken at indices, that LLVM vectorises but unrolls first."""
_MOST_INTERLEAVED = 4
PANEL = 2048
"""The elements of a local array that only a product of matrices has."""

_COPIES, _MOST_STATEMENTS = 8, 24
"""The copies of a body that counts places, and its length: the compile time grows with both."""

_SMALL = frozenset(("abs", "real", "imag", "negate", "float32", "float64"))
"""Calls that leave the body of a sum so small that LLVM would unroll the loop."""


class LoopHints:
    """The metadata of the loops of one kernel."""

    def __init__(self, module: Any, interleaved: int) -> None:
        """`interleaved`: vectors at a time of a loop over elementary functions (`machine.py`)."""
        self._module, self._interleaved = module, interleaved
        self.parameters: Collection[str] = ()
        """The kernel's own parameters. A loop's count that is computed from them is unknown to LLVM."""
        self.local_arrays: dict[str, int] = {}
        self._rows: list[Any] = []
        self._has_panel = False

    def local_array(self, name: str, count: int) -> None:
        """The kernel has a local array of this name, with so many elements."""
        self.local_arrays[name] = count
        self._has_panel |= count >= PANEL

    def group(self, first: Any, last: Any) -> Any:
        """A name for the accesses to memory in the blocks from `first` to before `last`, for a loop with independent
        iterations. (A block that is not listed there only makes LLVM test more.)"""
        node = _Distinct(self._module, [], name=str(len(self._module.metadata)))
        blocks = first.function.blocks
        for block in blocks[blocks.index(first) :]:
            if block is not last:
                for instruction in block.instructions:
                    if isinstance(instruction, llir.instructions.LoadInstr | llir.instructions.StoreInstr):
                        instruction.set_metadata("llvm.access.group", node)
        return node

    def of_row_end(self, lanes: int, group: Any) -> Any:
        """The metadata of a loop that is one vector of so many elements (row_ends.py)."""
        whole = ("llvm.loop.vectorize.width", llir.Constant(_I32, lanes))
        node = self._node([whole, ("llvm.loop.interleave.count", llir.Constant(_I32, 1))], group)
        self._vectorise_first(node)
        return node

    def of(self, loop: For, group: Any = None) -> Any:
        """The metadata of a loop, as a node of the module. `group`: see there."""
        copies = ("llvm.loop.unroll.count", llir.Constant(_I32, _COPIES))
        hints: list[tuple[Any, ...]] = [copies if _counts_places(loop) or _updates_places(loop) else (_NOT_AT_RUNTIME,)]
        parts, is_far_apart = _partial_sums(loop), _is_far_apart(loop)
        if is_far_apart and carries_a_value(loop):
            hints.append(("llvm.loop.interleave.count", llir.Constant(_I32, _MOST_INTERLEAVED)))
        elif parts or not carries_a_value(loop):
            interleaved = self._interleaved if _is_elementary(loop) else 1
            hints.append(("llvm.loop.interleave.count", llir.Constant(_I32, parts or interleaved)))
        if count_in_text(loop) and self._only_repeats(loop):
            hints.append(("llvm.loop.unroll.disable",))
        if is_far_apart or _looks_up_rows(loop):
            hints.append(("llvm.loop.vectorize.width", llir.Constant(_I32, 1)))
        elif _copies_blocks(loop) or _gathers_rows(loop):
            hints.append(("llvm.loop.vectorize.width", llir.Constant(_I32, 1)))
            if count_in_text(loop):
                hints.append(("llvm.loop.unroll.disable",))
        node = self._node(hints, group)
        if parts or _takes_apart(loop) or _takes_a_few(loop):
            self._vectorise_first(node)
        elif self.local_arrays and _is_a_row(loop, self.local_arrays):
            self._rows.append(node)
        return node

    def strides(self, loop: For) -> frozenset[str]:
        """The parameters that are distances between the elements of a sum that lie far from each other."""
        if not (carries_a_value(loop) and _is_far_apart(loop)):
            return frozenset()
        targets = (target for s in loop.body if isinstance(s, Assign) for target in s.targets)
        changing, found = {loop.variable.name, *[target.name for target in targets]}, set()
        for part in (part for s in loop.body for whole in expressions_of(s) for part in whole.walk()):
            if isinstance(part, Binary) and part.op == "*":
                for factor, other in ((part.left, part.right), (part.right, part.left)):
                    if not isinstance(factor, Name) or factor.name not in self.parameters:
                        continue
                    if not changing.isdisjoint(other.names):
                        found.add(factor.name)
        return frozenset(found)

    def _node(self, hints: list[tuple[Any, ...]], group: Any) -> Any:
        if group is not None:
            hints.append(("llvm.loop.parallel_accesses", group))
        node = llir.values.MDValue(self._module, [], name=str(len(self._module.metadata)))
        node.operands = (node, *map(self._module.add_metadata, hints))
        return node

    def _only_repeats(self, loop: For) -> bool:
        """True if the body has a loop with an argument as its count, uses no local array, and has no branch that
        depends on the loop's counter."""
        around = False
        for node in walk(loop.body):
            names = {name for whole in expressions_of(node) for name in whole.names}
            if isinstance(node, LocalArray) or not names.isdisjoint(self.local_arrays):
                return False
            if isinstance(node, If) and loop.variable.name in names:
                return False
            around |= isinstance(node, For) and not names.isdisjoint(self.parameters)
        return around

    def finish(self) -> None:
        """The kernel is complete."""
        if self._rows and (self._has_panel or _is_narrow(self._module)):
            for node in self._rows:
                self._vectorise_first(node)

    def _vectorise_first(self, node: Any) -> None:
        add = self._module.add_metadata
        kept = (("llvm.loop.isvectorized", llir.Constant(_I32, 1)), (_NOT_AT_RUNTIME,))
        hints = (("llvm.loop.unroll.disable",), ("llvm.loop.vectorize.followup_vectorized", *map(add, kept)))
        node.operands = (*node.operands, *map(add, hints))


class _Distinct(llir.values.MDValue):  # type: ignore[misc]
    """A node without operands that is not the same as other such nodes."""

    def descr(self, buf: list[str]) -> None:
        buf += ("distinct !{}", "\n")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def _is_narrow(module: Any) -> bool:
    """True where `llvm_backend.widens_straight_lines` will say no, as the text of the module, which is made once, will
    tell it."""
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                kinds = (instruction.type, *(operand.type for operand in instruction.operands))
                if any(isinstance(kind, llir.IntType) and kind.width in (8, 16) for kind in kinds):
                    return True
                if instruction.opname in _DIVISIONS and isinstance(instruction.operands[1], llir.Constant):
                    return True
    return False


_DIVISIONS = frozenset(("sdiv", "udiv", "srem", "urem"))


def carries_a_value(loop: For) -> bool:
    """True if an assignment in the loop's body reads the variable that it assigns to, as an accumulation does."""
    for node in walk(loop.body):
        if isinstance(node, Augment):
            return True
        if isinstance(node, Assign):
            names = {target.name for target in node.targets}
            if any(not names.isdisjoint(value.names) for value in node.values):
                return True
    return False


def _partial_sums(loop: For) -> int:
    """How many vectors of partial sums a loop should have; 0 if it is no short sum of neighbours in memory.

    for j in range(24):
        acc = reduce_add(acc, x[i * 24 + j] * y[j])
    """
    count = count_in_text(loop)
    if not SUM_LEAST <= count <= SUM_MOST or len(loop.body) != 1:
        return 0
    (statement,) = loop.body
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return 0
    (target,), (value,) = statement.targets, statement.values
    lanes = _LANES.get(target.type, 0)
    if not lanes or count % lanes or not isinstance(value, Call) or value.function != "reduce_add":
        return 0
    first, term = value.arguments
    if not isinstance(first, Name) or first.name != target.name or not _is_small(term, loop.variable.name):
        return 0
    return max(1, min(_MOST_INTERLEAVED, count // lanes))


_LANES = {"float32": 8, "float64": 4}
"""Elements of a vector of 32 bytes."""


def _looks_up_rows(loop: For) -> bool:
    """True for a loop around short ones, of which one loads an element at an index that it has loaded.

    for i in range(n):
        for j in range(8):
            start = int64(x[i * 8 + j])
            out[i * 8 + j] = y[i * n0 + start]
    """
    return any(
        isinstance(inner, For) and 0 < count_in_text(inner) <= SUM_MOST and _looks_up(inner) for inner in loop.body
    )


def _copies_blocks(loop: For) -> bool:
    """True for a loop around a short one that copies elements which are not neighbours, and more of them than a group
    of interleaved accesses may have.

    for i in range(n):
        for j in range(4):
            for k in range(4):
                out[(i * 4 + j) * 4 + k] = x[(i * 8 + j * 2) * 8 + k * 2]
    """
    count = 1
    while len(loop.body) == 1 and isinstance(loop.body[0], For):
        loop = loop.body[0]
        count *= count_in_text(loop)
    match loop.body:
        case [Store(value=Load(index=index))]:
            return count > _MOST_GROUPED and not steps_by_one(index, loop.variable.name)
    return False


def _gathers_rows(loop: For) -> bool:
    """True for a loop around a short one in which no element is a neighbour of the next one, along either loop.

    for j in range(n):
        for k in range(16):
            acc = reduce_add(acc, x[(j * 16 + k) * n0 + i])
    """
    return any(
        isinstance(node, For) and count_in_text(node) > _MOST_GROUPED and _has_no_neighbours(node, loop.variable.name)
        for node in loop.body
    )


def _is_far_apart(loop: For) -> bool:
    """True for a loop of a few cheap operations in which more than half of the loaded elements (of a sum: half of
    them) lie far from those of the next iteration, so that no group of vectors has both; or those that are stored, by a
    number in the text. (Where the distance is an argument, as in a transpose, LLVM's vectors of f64 are faster.)

    for i in range(60):
        acc = reduce_add(acc, x[i * 60 + j] * x[i * 60 + k])
    """
    if 0 < count_in_text(loop) <= SUM_MOST:  # LLVM unrolls it
        return False
    steps: dict[str, int | None] = {}
    far = near = 0
    stores_far = False
    for statement in loop.body:
        if not isinstance(statement, Assign | Store | Comment):
            return False
        indices: list[Expr] = []
        if isinstance(statement, Store):
            step = _step_of(statement.index, loop.variable.name, steps)
            if step is None or not _MOST_GROUPED < abs(step) < _FAR:
                indices.append(statement.index)
            else:
                stores_far = True
        for whole in expressions_of(statement):
            for part in whole.walk():
                if isinstance(part, Call) and part.function not in _CHEAP:
                    return False
                if isinstance(part, Load):
                    indices.append(part.index)
        for index in indices:
            step = _step_of(index, loop.variable.name, steps)
            if step is None or 1 < abs(step) <= _MOST_GROUPED:
                return False
            far += abs(step) > _MOST_GROUPED
            near += abs(step) == 1
        if isinstance(statement, Assign):
            for target, value in zip(statement.targets, statement.values, strict=True):
                steps[target.name] = _step_of(value, loop.variable.name, steps)
    return stores_far or far > near or (far == near > 0 and carries_a_value(loop))


_CHEAP = frozenset((
    "abs", "negate", "float32", "float64", "int32", "int64", "reduce_add", "minimum", "maximum", "minimum_key",
    "maximum_key", "select", "add", "subtract", "multiply",
))  # fmt: skip
_FAR = 1 << 20
"""Stands for a factor that only a call knows, such as the size of a row."""


def _step_of(e: Expr, counter: str, steps: Mapping[str, int | None]) -> int | None:
    """By how much an index grows with the counter; None: this is not known. `steps`: the same of names."""
    match e:
        case Number():
            return 0
        case Name(name=name):
            return 1 if name == counter else steps.get(name, 0)
        case Call(function="int32" | "int64", arguments=(inner,)):
            return _step_of(inner, counter, steps)
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            a, b = _step_of(left, counter, steps), _step_of(right, counter, steps)
            if a is None or b is None:
                return None
            if op != "*":
                return a + b if op == "+" else a - b
            if a and b:
                return None
            factor = right if a else left
            return (a or b) * (int(factor.value) if isinstance(factor, Number) else _FAR)
    parts = [1 if name == counter else steps.get(name, 0) for name in e.names]
    return 0 if not any(parts) and None not in parts else None


def _has_no_neighbours(inner: For, outer: str) -> bool:
    variable = inner.variable.name
    wholes = (whole for statement in inner.body for whole in expressions_of(statement))
    indices = [load.index for whole in wholes for load in whole.loads]
    varying = [index for index in indices if index.reads(variable)]
    near = any(index.reads(name) and steps_by_one(index, name) for index in indices for name in (variable, outer))
    return bool(varying) and not near


def _takes_a_few(loop: For) -> bool:
    """True for a loop over eight elements at indices that are loaded."""
    return count_in_text(loop) == TAKEN and _looks_up(loop)


def _looks_up(loop: For) -> bool:
    loaded: set[str] = set()

    def is_loaded(whole: Expr) -> bool:
        return bool(whole.loads) or not loaded.isdisjoint(whole.names)

    for statement in loop.body:
        wholes = expressions_of(statement)
        if any(is_loaded(load.index) for whole in wholes for load in whole.loads):
            return True
        if isinstance(statement, Assign) and any(map(is_loaded, wholes)):
            loaded.update(target.name for target in statement.targets)
    return False


def _counts_places(loop: For) -> bool:
    """True for a loop without loops inside that stores at an index which it loads from an array of places, and stores
    the next place there. ::

        for t in range(n):
            at = int64(digit[t])
            place = int64(places[at])
            places[at] = uint32(place + 1)
            out[place] = x[t]
    """
    statements = list(walk(loop.body))
    if len(statements) > _MOST_STATEMENTS or any(isinstance(node, For | While) for node in statements):
        return False
    stores = [node for node in statements if isinstance(node, Store)]
    written = {store.pointer.name for store in stores}
    places: set[str] = set()

    def is_place(whole: Expr) -> bool:
        return any(load.pointer.name in written for load in whole.loads) or not places.isdisjoint(whole.names)

    for node in statements:
        if isinstance(node, Assign) and any(map(is_place, node.values)):
            places.update(target.name for target in node.targets)
    return any(is_place(store.index) for store in stores)


def _updates_places(loop: For) -> bool:
    """True for a loop without branches that updates elements at places that it loads. ::

        for k in range(n):
            at = base + int64(places[k])
            out[at] = out[at] + x[k]
    """
    if not all(isinstance(node, Assign | Store | Comment) for node in loop.body):
        return False
    places: set[str] = set()

    def is_place(whole: Expr) -> bool:
        return bool(whole.loads) or not places.isdisjoint(whole.names)

    for node in loop.body:
        if isinstance(node, Assign) and any(map(is_place, node.values)):
            places.update(target.name for target in node.targets)
    for store in (node for node in loop.body if isinstance(node, Store)):
        updated = any(load.pointer.name == store.pointer.name for load in store.value.loads)
        if updated and is_place(store.index):
            return True
    return False


def _is_elementary(loop: For) -> bool:
    """True for a loop without loops inside that calls a few elementary functions of a hundred instructions or so."""
    if any(isinstance(node, For) for node in walk(loop.body)):
        return False
    wholes = (whole for node in walk(loop.body) for whole in expressions_of(node))
    return 0 < sum(isinstance(p, Call) and p.function in LONG for w in wholes for p in w.walk()) <= _MOST_LONG


_MOST_LONG = 2
"""More calls in a loop are not interleaved: the compile time grows with the body."""


def _is_a_row(loop: For, local_arrays: Collection[str]) -> bool:
    """True for a loop over elements of local arrays, if no iteration reads an element that another one writes.

    for i in range(8):
        t[i] = state[i] + step * k[i]
    """
    count = count_in_text(loop)
    if count not in ROWS:
        return False
    indices: dict[str, str] = {}
    stores = 0
    for statement in loop.body:
        if isinstance(statement, Store):
            stores += 1
            accesses = [Load(statement.pointer, statement.index)]
        elif isinstance(statement, (Assign, Comment)):
            accesses = []
        else:
            return False
        accesses += [load for whole in expressions_of(statement) for load in whole.loads]
        for access in accesses:
            name, index = access.pointer.name, access.index
            if not steps_by_one(index, loop.variable.name):
                return False
            if name in local_arrays and indices.setdefault(name, index.text) != index.text:
                return False
    return stores > 0 and bool(indices) and not carries_a_value(loop)


def _takes_apart(loop: For) -> bool:
    """True for a loop that copies a row: every second element to one place, and the others to another one. Likewise
    for three places and more.

    for j in range(16):
        out[a + j] = x[at + j * 2]
        out[b + j] = x[at + j * 2 + 1]
    """
    count, variable = len(loop.body), loop.variable.name
    copies = [s.value for s in loop.body if isinstance(s, Store) and steps_by_one(s.index, variable)]
    steps = [_step(value.index, variable) for value in copies if isinstance(value, Load)]
    return count_in_text(loop) >= SUM_LEAST and count > 1 and steps == [count] * count


def _step(index: Expr, variable: str) -> int:
    """How much an index grows from one iteration to the next; 0 if it does not, or by no number in the text."""
    match index:
        case Name(name=name) if name == variable:
            return 1
        case Binary(op="+", left=left, right=right):
            return _step(left, variable) + _step(right, variable)
        case Binary(op="*", left=left, right=Number(value=value)):
            return _step(left, variable) * int(value)
    return 0


def count_in_text(loop: For) -> int:
    """How often the body runs, if that is a number in the text; otherwise 0."""
    start, stop = loop.start, loop.stop
    if loop.step != 1 or not isinstance(stop, Number) or not (start is None or isinstance(start, Number)):
        return 0
    return int(stop.value) - (0 if start is None else int(start.value))


def _is_small(term: Expr, variable: str) -> bool:
    """True for arithmetic on elements that are neighbours in memory, or the same in all iterations."""
    for part in term.walk():
        if isinstance(part, Load) and not steps_by_one(part.index, variable):
            return False
        if isinstance(part, Call) and part.function not in _SMALL:
            return False
    return True


def steps_by_one(index: Expr, variable: str) -> bool:
    """True if the index does not depend on the variable, or is the variable plus such an index."""
    if isinstance(index, Binary) and index.op in ("+", "-"):
        right = index.right.reads(variable)
        if not right:
            return steps_by_one(index.left, variable)
        return index.op == "+" and not index.left.reads(variable) and steps_by_one(index.right, variable)
    return (isinstance(index, Name) and index.name == variable) or not index.reads(variable)
