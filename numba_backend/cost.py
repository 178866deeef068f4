"""Estimate how long a kernel takes: one walk over its loop program, with the sizes of one call.

    nanoseconds(program, {"lo": 0, "hi": 512, "n0": 1000}, machine)

Loops count with their trips. An innermost loop is computed in vectors of the machine's registers: contiguous elements
that are loaded or stored count by their bytes, and others one by one. An estimate decides whether work is worth a
second thread, so a factor of two does not matter, and the numbers are for processors at some 3 GHz. They were checked
on a hundred programs that take 10 to 300 us on a Zen 4, and chosen by looking at half of them only: half of the
programs are estimated within a factor of 1.3, and nine in ten within 3. They are not measured on each machine
(`machine_speed.py`): programs that are stored would then differ from one process to the next, as others disturb the
measurement.

The names below `UNKNOWN_TRIPS` are for numbers that no program has: loops that end where data say so, and decisions
that are made before there is a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from weakref import WeakKeyDictionary

from .loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from .loops.lanes import WIDTHS
from .loops.statements import (
    Assign,
    Augment,
    Block,
    Break,
    Continue,
    For,
    If,
    LocalArray,
    LoopProgram,
    Statement,
    Store,
    While,
    expressions_of,
    walk,
)
from .machine import Machine

BYTE = 0.015
"""Nanoseconds a byte of a vector that is loaded or stored, in a second-level cache or near."""
LOCAL_BYTE = 0.005
"""The same in a local array, which is in registers or in the first-level cache."""
ELEMENT = 0.4
"""An element that is loaded or stored by itself."""
VECTOR = 0.3
"""An operation on one vector register, or on a number outside of vectors."""
DIVISION = 1.2
"""The same for a division or a square root."""
LOOP, TURN = 2.0, 0.4
"""To begin a loop without a literal end; and an iteration that is not part of a vector."""
UNKNOWN_TRIPS = 16
"""Iterations of a loop that ends where data say so."""
MERGED = 3.0
"""An element in one merge of a sort."""
EXCHANGED_BYTE = 0.008
"""A byte of a key in one step of a sorting network, in vectors."""
LOOKED_AT, INSERTED = 0.5, 10.0
"""An element that is compared with the least of the k largest, or moved; and an element that becomes one of them."""
TRANSFORMED = 0.25
"""A complex number of f32 in one pass of length 2 of a Fourier transform."""

OPERATION, OPERATION_OF_FUNCTION, UPDATED, MULTIPLICATION = 0.05, 0.6, 0.2, 0.3
"""In a loop that may be one kernel, before there is a program: an operation, and an elementary function, on one element
of a fused computation; an element that is updated in place; a multiplication of a small product."""
KERNEL_OF_LOOP = 40_000.0
"""A kernel that takes as long is a row of its own, which threads share, and no part of a native loop."""
IN_STAGES = 100_000.0
"""A kernel that takes as long computes chains of long functions in stages: it takes 0.65 of the time for two functions
on 1M elements, and 20 ms longer to compile."""
PARTED, TURN_OF_PART = 300_000.0, 100.0
"""A native loop over a batch runs part by part if it takes at least this long: two threads then gain. An iteration
takes at least so long for a thread's part: its kernels' loops take some 20 each to begin."""
PATIENCE = 100_000.0
"""A short native loop that takes less does not look for interrupts itself."""

FEW = 8
"""A loop with at most so many iterations, as a literal, is unrolled into the loop around it."""

_DIVISIONS = frozenset(("/", "//", "%", "divide", "sqrt", "rsqrt", "idiv", "irem", "remainder"))
FUNCTIONS: Mapping[str, float] = {
    **dict.fromkeys(("exp", "expm1", "logistic", "tanh"), 14.0),
    **dict.fromkeys(("log", "log1p", "erf", "cbrt", "sinh", "cosh", "atan", "atan2"), 22.0),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "asinh", "acosh", "atanh"), 35.0),
    "pow": 80.0,
}
"""Operations on vectors in an elementary function. Other calls are one."""

Values = dict[str, int]


def nanoseconds(program: LoopProgram, values: Mapping[str, int], machine: Machine) -> float:
    """Nanoseconds of a call of a kernel on one thread. `values`: its sizes, and the bounds `lo` and `hi`."""
    return _Walk(_facts_of(program), machine).block(program.body, dict(values), None)


class _Facts:
    """The facts about a program that do not depend on its sizes."""

    def __init__(self, program: LoopProgram) -> None:
        self.local: set[str] = set()
        self.bounds: set[str] = set()
        """Names on which the ends of loops and tests of sizes depend."""
        self.vectors: dict[int, _Vector | None] = {}
        """The vectors, by loop."""
        self.work: dict[tuple[int, int, int], float] = {}
        """The work, by statement, vector and bytes of a register."""
        assigned: dict[str, list[Expr]] = {}
        wanted: list[Expr] = []
        for statement in walk(program.body):
            match statement:
                case LocalArray(name=name):
                    self.local.add(name.name)
                case Assign(targets=targets, values=given) if len(targets) == 1:
                    assigned.setdefault(targets[0].name, []).append(given[0])
                case For() | While() | If():
                    wanted += expressions_of(statement)
        while wanted:
            for part in wanted.pop().walk():
                if isinstance(part, Name) and part.name not in self.bounds:
                    self.bounds.add(part.name)
                    wanted += assigned.get(part.name, [])


_facts: WeakKeyDictionary[LoopProgram, _Facts] = WeakKeyDictionary()


def _facts_of(program: LoopProgram) -> _Facts:
    found = _facts.get(program)
    if found is None:
        found = _facts[program] = _Facts(program)
    return found


class _Vector:
    """An innermost loop: how much a name grows from one iteration to the next, and the first access to each buffer."""

    def __init__(self, loop: For, local: AbstractSet[str]) -> None:
        self.takes_groups = loop.kind != "range"
        """The loop transposes blocks in registers."""
        stored = {statement.pointer.name for statement in loop.body if isinstance(statement, Store)}
        is_literal = loop.start is None and isinstance(loop.stop, Number)
        self.in_registers = is_literal and stored <= local
        """The results of the loop are in registers: local arrays of known sizes."""
        self.steps: dict[str, int | None] = {loop.variable.name: 1}
        self.first: set[int] = set()
        """The expressions and statements that access a buffer first. Later ones find its elements in the cache."""
        seen: set[str] = set()
        for statement in walk(loop.body):
            if isinstance(statement, Assign):
                for target in statement.targets:
                    known = len(statement.targets) == 1 and target.name not in self.steps
                    self.steps[target.name] = self.step(statement.values[0]) if known else None
            all_moved: list[Load | Store] = [load for e in expressions_of(statement) for load in e.loads]
            if isinstance(statement, Store):
                all_moved.append(statement)
            for moved in all_moved:
                if moved.pointer.name not in seen:
                    seen.add(moved.pointer.name)
                    self.first.add(id(moved))

    def step(self, index: Expr) -> int | None:
        """By how much an index grows; None where that is not a number in the text, or differs."""
        if isinstance(index, Name):
            return self.steps.get(index.name, 0)
        if isinstance(index, Load):
            return None
        if not isinstance(index, Binary):
            return 0 if all(self.step(part) == 0 for part in index.parts) else None
        left, right = self.step(index.left), self.step(index.right)
        if left == 0 == right:
            return 0
        if left is None or right is None:
            return None
        if index.op in ("+", "-"):
            return left + right if index.op == "+" else left - right
        if index.op == "*":
            for grows, other in ((left, index.right), (right, index.left)):
                if isinstance(other, Number):
                    return grows * int(other.value)
        return None


class _Walk:
    def __init__(self, facts: _Facts, machine: Machine) -> None:
        self.facts = facts
        self.register = machine.register_bytes
        self.loops = 0
        """The number of loops around a statement. Statements outside of all loops run once, and belong to the call."""

    def block(self, block: Block, values: Values, vector: _Vector | None) -> float:
        """`vector`: the loop that is vectorised; None: numbers are computed one by one."""
        total = 0.0
        for statement in block:
            match statement:
                case For():
                    total += self._loop(statement, values, vector)
                case While(test=test, body=body):
                    total += UNKNOWN_TRIPS * (self._of(test, vector) + self.block(body, values, vector) + TURN)
                case If(branches=branches, otherwise=otherwise):
                    total += self._choice(branches, otherwise, values, vector)
                case _:
                    total += self._work(statement, vector)
                    if isinstance(statement, Assign | Augment):
                        self._assign(statement, values)
        return total

    def _loop(self, loop: For, values: Values, vector: _Vector | None) -> float:
        start = 0 if loop.start is None else _value(loop.start, values)
        stop = _value(loop.stop, values)
        trips = UNKNOWN_TRIPS if start is None or stop is None else max(0, -(-(stop - start) // loop.step))
        if not trips:
            return 0.0
        values[loop.variable.name] = (start or 0) + trips // 2 * loop.step
        self.loops += 1
        total = self._turns(loop, trips, values, vector)
        self.loops -= 1
        return total

    def _turns(self, loop: For, trips: int, values: Values, vector: _Vector | None) -> float:
        is_literal = isinstance(loop.stop, Number) and (loop.start is None or isinstance(loop.start, Number))
        if vector is not None or (is_literal and trips <= FEW and loop.kind == "range"):
            return trips * self.block(loop.body, values, vector)
        if id(loop) not in self.facts.vectors:
            self.facts.vectors[id(loop)] = _Vector(loop, self.facts.local) if _is_vector(loop) else None
        inner = self.facts.vectors[id(loop)]
        if inner is None:
            return trips * (self.block(loop.body, values, None) + TURN)
        total = trips * self.block(loop.body, values, inner)
        if loop.start is not None and loop.start.reads("lo"):
            return total  # the kernel's own loop: it begins once
        return max(total, VECTOR) + (0.0 if is_literal else LOOP)

    def _choice(
        self, branches: list[tuple[Expr, Block]], otherwise: Block | None, values: Values, vector: _Vector | None
    ) -> float:
        """The branch that sizes choose, else the longest; in vectors all of them are computed."""
        total, costs = 0.0, []
        for test, body in branches:
            known = _value(test, values)
            if known is None:
                total += self._of(test, vector)
                costs.append(self.block(body, dict(values), vector))
            elif known:
                otherwise = body
                break
        costs.append(self.block(otherwise or [], values, vector))
        return total + (sum(costs) if vector is not None else max(costs))

    def _assign(self, statement: Assign | Augment, values: Values) -> None:
        targets = statement.targets if isinstance(statement, Assign) else (statement.target,)
        for target in targets:
            if target.name in self.facts.bounds:
                known = None
                if isinstance(statement, Assign) and len(targets) == 1:
                    known = _value(statement.values[0], values)
                if known is None:
                    values.pop(target.name, None)
                else:
                    values[target.name] = known

    def _work(self, statement: Statement, vector: _Vector | None) -> float:
        if not self.loops:
            return 0.0
        key = id(statement), id(vector), self.register
        found = self.facts.work.get(key)
        if found is None:
            if isinstance(statement, Store):
                found = self._of(statement.value, vector) + self._moved(statement, vector)
            else:
                found = sum([self._of(e, vector, isinstance(statement, Augment)) for e in expressions_of(statement)])
                if isinstance(statement, Augment):
                    found += self._operation(statement.op, statement.target, vector)
            self.facts.work[key] = found
        return found

    def _of(self, e: Expr, vector: _Vector | None, is_factor: bool = False) -> float:
        """`is_factor`: it is added to something."""
        if isinstance(e, Load):
            return self._moved(e, vector)
        if not e.parts or (vector is not None and vector.step(e) == 0):
            return 0.0  # the same in all iterations
        if isinstance(e, Binary) and e.type == "int64" and (vector is None or vector.step(e) is not None):
            return self._indirect(e)  # an index
        is_sum = isinstance(e, Binary) and e.op in ("+", "-")
        total = sum([self._of(part, vector, is_sum) for part in e.parts])
        name = e.function if isinstance(e, Call) else e.op if isinstance(e, Binary | Unary) else ""
        if name == "*" and is_factor:
            return total  # a multiplication and an addition are one instruction
        return total + self._operation(name, e, vector)

    def _operation(self, name: str, e: Expr, vector: _Vector | None) -> float:
        """One operation of a kind on numbers of the type of `e`."""
        kind = e.type
        width = 4 if kind == "bool" else WIDTHS.get(kind, 4)
        each = DIVISION if name in _DIVISIONS else VECTOR * FUNCTIONS.get(name, 1.0)
        if kind.startswith("complex") and name not in ("+", "-"):
            each *= 4
        return each if vector is None else each * width / self.register

    def _moved(self, moved: Load | Store, vector: _Vector | None) -> float:
        """A load or a store."""
        pointer, index = moved.pointer, moved.index
        if vector is None:
            return self._indirect(index) + ELEMENT / 2
        step, width, name = vector.step(index), WIDTHS.get(pointer.type[:-1], 8), pointer.name
        if step not in (0, 1) and vector.takes_groups:
            return ELEMENT / 8  # a block that is transposed
        if step is None:
            return self._indirect(index) + ELEMENT
        if step == 1:
            local, near = name in self.facts.local, vector.in_registers or id(moved) not in vector.first
            return 0.0 if local and vector.in_registers else width * (LOCAL_BYTE if local or near else BYTE)
        return 0.0 if step == 0 else ELEMENT / 4 if abs(step) <= FEW else ELEMENT  # a part of whole registers

    def _indirect(self, index: Expr) -> float:
        """Nanoseconds of an index, besides its sums and products."""
        total = 0.0
        for part in index.walk():
            if isinstance(part, Load):
                total += ELEMENT
            elif isinstance(part, Binary) and part.op in ("//", "%"):
                total += VECTOR if isinstance(part.right, Number) else DIVISION
        return total


def _is_vector(loop: For) -> bool:
    """True for a loop with iterations that are elements of vectors: all loops inside are unrolled, and it stores
    nothing that depends on the iteration before."""
    if loop.kind == "lanes":
        return True
    carried: set[str] = set()
    made: set[str] = set()
    for statement in walk(loop.body):
        match statement:
            case For(start=start, stop=stop):
                if start is not None or not isinstance(stop, Number) or stop.value > FEW:
                    return False
            case While() | Break() | Continue():
                return False
            case Assign(targets=targets, values=given):
                names = {name for e in given for name in e.names}
                own = {target.name for target in targets}
                if names & carried or names & own - made:
                    carried |= own
                made |= own
            case Store(value=value):
                if not carried.isdisjoint(value.names):
                    return False
    return True


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "&": int.__and__, "|": int.__or__,
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__,
    "minimum": min, "maximum": max, "and": min, "or": max,
}  # fmt: skip


def _value(e: Expr, values: Values) -> int | None:
    """The number that an index is; None where that depends on data."""
    if isinstance(e, Name):
        return values.get(e.name)
    if isinstance(e, Number):
        return int(e.value)
    if isinstance(e, Unary):
        inner = _value(e.operand, values)
        return None if inner is None or e.op == "~" else -inner if e.op == "-" else int(not inner)
    if isinstance(e, Call) and e.function == "int64":
        return _value(e.arguments[0], values)
    name = e.op if isinstance(e, Binary) else e.function if isinstance(e, Call) else ""
    if len(e.parts) != 2 or isinstance(e, Load):
        return None
    left, right = (_value(part, values) for part in e.parts)
    if left is None or right is None:
        return None
    if name in ("//", "%"):
        return None if right == 0 else left // right if name == "//" else left % right
    operation = _OPERATIONS.get(name)
    return None if operation is None else operation(left, right)
