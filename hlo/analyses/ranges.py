"""Between which two numbers the integers of a program lie: constants, loop counters, and values computed from them.

A counter's range follows from the trip count, and the condition holds in a loop's body. `intervals.py` has the rules of
single ops; this file goes through computations, loops and branches. The range of an instruction holds whenever the
instruction runs, for all arguments of the program; a body that never runs has no ranges. Loops are solved by guessing
the ranges of the state and checking that the body keeps them (abstract interpretation with widening; Cousot and Cousot,
POPL 1977): so every answer has been checked, however it was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..ops.elementwise import ComparisonDirection
from .intervals import BOOLEAN, INVERSE, MIRRORED, TRANSFER, Range, limits, narrowed, transfer
from .trip_count import body_results, state_element

Value = object
"""Of an array its Range, of a tuple the tuple of its elements' values; None: unknown."""
Environment = dict[HloInstruction, Value]
"""By instruction of a computation: the ranges in one run of it."""
Log = list[tuple[HloComputation, Environment]]

_BUDGET = 20
"""The analysis gives up precision when it has visited each instruction so often on average."""
_GUESSES = 4
"""How often a loop's ranges are guessed before ranges that still change are taken to be unknown."""
_PATIENCE = 10
"""The last guess but one takes everything that changes to be unknown, which is always right."""
_TERMS = 6
"""How deep a predicate is taken apart: longer ones have comparisons that do not matter."""
_DEPTH = 4
"""How many operands away a select's arms are seen in the light of its predicate."""


class Ranges:
    """By instruction its range."""

    def __init__(self, known: Mapping[HloInstruction, Range]) -> None:
        self.known = known
        """Instructions without a known range are missing."""

    def of(self, instruction: HloInstruction) -> Range | None:
        """The range of an array of integers or booleans, at worst its type's; None for other shapes."""
        return self.known.get(instruction) or limits(instruction.shape)


def has_loops(module: HloModule) -> bool:
    """True if there is a WHILE anywhere in the module."""
    return any(i.opcode is Opcode.WHILE for c in module.computations for i in c.callers)


def known_ranges(module: HloModule) -> Ranges:
    """The ranges of all integers and booleans of a module, as far as they are known."""
    return Ranges(_Analysis(module).known)


class _Analysis:
    def __init__(self, module: HloModule) -> None:
        self.budget = _BUDGET * sum(len(c.instructions) for c in module.computations)
        log: Log = []
        self.run(module.entry, [None] * len(module.entry.parameters), log)
        for computation in _called_by_others(module):
            self.run(computation, [None] * len(computation.parameters), log)
        self.known = _recorded(log)

    def run(self, computation: HloComputation, arguments: Sequence[Value], log: Log) -> Environment:
        """The ranges of a computation's instructions for these arguments; also appended to `log`."""
        self.budget -= len(computation.instructions)
        env: Environment = {}
        for i in computation.instructions:
            found: Value = None
            if i.opcode in _STRUCTURE or (i.opcode is Opcode.REDUCE and i.shape.is_tuple):
                found = self.structure(i, env, arguments, log)
            elif i.shape.element_type is not None and limits(i.shape) is not None and i.opcode in TRANSFER:
                found = _computed(i, env)
            if found is not None:
                env[i] = found
        log.append((computation, env))
        return env

    def structure(self, i: HloInstruction, env: Environment, arguments: Sequence[Value], log: Log) -> Value:
        match i.opcode:
            case Opcode.PARAMETER:
                return arguments[i.attributes.number]
            case Opcode.TUPLE:
                return tuple([env.get(o) for o in i.operands])
            case Opcode.GET_TUPLE_ELEMENT:
                state = env.get(i.operands[0])
                return state[i.attributes.index] if isinstance(state, tuple) else None
            case Opcode.WHILE:
                return _Loop(self, i, env).solved(log)
            case Opcode.CONDITIONAL:
                return self.branches(i, env, log)
            case Opcode.FUSION | Opcode.CALL:
                (called,) = i.called_computations()
                return self.run(called, [env.get(o) for o in i.operands], log).get(called.root)
            case Opcode.REDUCE:
                return self.reduced(i, env)
            case _:  # opt-barrier
                return env.get(i.operands[0])

    def reduced(self, i: HloInstruction, env: Environment) -> Value:
        """The result of a reduction of several arrays if its reducer keeps the numbers within the ranges of operands
        and initial values: one that selects, such as that for the position of a maximum."""
        count = len(i.operands) // 2
        pairs = zip(i.operands[:count], i.operands[count:], strict=True)
        ranges = [(_range(x, env), _range(start, env)) for x, start in pairs]
        state = [None if a is None or b is None else a.joined(b) for a, b in ranges]
        reducer = i.attributes.to_apply
        for _ in range(count + 1):
            inner = self.run(reducer, [*state, *state], [])
            found = inner.get(reducer.root)
            results = found if isinstance(found, tuple) else (None,) * count
            kept = [
                s if s is not None and isinstance(r, Range) and s.contains(r) else None
                for s, r in zip(state, results, strict=True)
            ]
            if kept == state:
                break
            state = kept
        return tuple(state)

    def branches(self, i: HloInstruction, env: Environment, log: Log) -> Value:
        """A conditional: the ranges that all branches that may run agree on. In a branch the predicate is known."""
        index, *operands = i.operands
        branches = i.attributes.branch_computations
        taken = _range(index, env)
        results: list[Value] = []
        for k, (branch, operand) in enumerate(zip(branches, operands, strict=True)):
            facts: Facts | None = {}
            if limits(index.shape) == BOOLEAN:
                facts = implied(index, k == 0, env)
            elif taken is not None and not _may_take(k, len(branches), taken):
                continue
            if facts is None:
                continue
            given = env.get(operand)
            if facts and operand.opcode is Opcode.TUPLE:
                given = tuple([facts.get(o, env.get(o)) for o in operand.operands])
            elif operand in facts:
                given = facts[operand]
            results.append(self.run(branch, [given], log).get(branch.root))
        found = results[0] if results else None
        for each in results[1:]:
            found = _agreed(found, each)
        return found


def _may_take(k: int, count: int, index: Range) -> bool:
    """True if an index in a range may take branch k of `count`. One that names no branch takes the last."""
    is_last = k + 1 == count
    return index.low <= k <= index.high or (is_last and (index.low < 0 or index.high > k))


def _called_by_others(module: HloModule) -> dict[HloComputation, None]:
    """Reducers, comparators and the like: the analysis does not know the values that they are called with."""
    callers = (i for c in module.computations for i in c.callers if i.opcode not in _STRUCTURE)
    return dict.fromkeys(called for i in callers for called in i.called_computations())


_STRUCTURE = frozenset(
    (
        Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION,
        Opcode.CALL, Opcode.OPT_BARRIER,
    )
)  # fmt: skip


def _recorded(log: Log) -> dict[HloInstruction, Range]:
    """The ranges that hold in all runs of the log."""
    known: dict[HloInstruction, Range] = {}
    seen: set[HloComputation] = set()
    for computation, env in log:
        again = computation in seen
        seen.add(computation)
        for i in computation.instructions:
            found = env.get(i)
            if not isinstance(found, Range):
                if again:
                    known.pop(i, None)
            elif not again:
                known[i] = found
            elif i in known:
                known[i] = known[i].joined(found)
    return {i: found for i, found in known.items() if found != limits(i.shape)}


def _agreed(a: Value, b: Value) -> Value:
    """The range that covers both values."""
    if isinstance(a, Range) and isinstance(b, Range):
        return a.joined(b)
    if isinstance(a, tuple) and isinstance(b, tuple) and not isinstance(a, Range) and not isinstance(b, Range):
        return tuple([_agreed(x, y) for x, y in zip(a, b, strict=True)])
    return None


def _range(i: HloInstruction, env: Environment) -> Range | None:
    """The range of an instruction, at worst its type's; None if it is no array of integers or booleans."""
    found = env.get(i)
    return found if isinstance(found, Range) else limits(i.shape)


def _computed(i: HloInstruction, env: Environment) -> Range | None:
    operands = []
    for o in i.operands:
        found = _range(o, env)
        if found is None:
            return None
        operands.append(found)
    if i.opcode is Opcode.SELECT and not operands[0].is_single:
        pred, a, b = i.operands
        operands[1] = _arm(pred, True, a, operands[1], env)
        operands[2] = _arm(pred, False, b, operands[2], env)
    if i.opcode is Opcode.AND and operands == [BOOLEAN, BOOLEAN] and _exclude_each_other(i, env):
        return Range(0, 0)
    return transfer(i, operands)


def _exclude_each_other(pred: HloInstruction, env: Environment) -> bool:
    """True if the operands of an AND are never both true: `sign(i) != 1` and `i % 8 != 0` for i >= 0, in a division
    that rounds down."""
    for p, q in (pred.operands, pred.operands[::-1]):
        facts = implied(p, True, env)
        if facts and _under(q, facts, env, _DEPTH) == (0, 0):
            return True
    return False


def _arm(pred: HloInstruction, truth: bool, arm: HloInstruction, known: Range, env: Environment) -> Range:
    """An operand of a select where it is chosen: of `select(i < 0, i + n, i)`, i + n for negative i."""
    facts = implied(pred, truth, env)
    return known if not facts else _under(arm, facts, env, _DEPTH) or known


def _implied_by_booleans(
    a: HloInstruction, b: HloInstruction, direction: ComparisonDirection, env: Environment, facts: Facts, depth: int
) -> Facts | None:
    """`implied` for two predicates that are equal, or not equal, if one of them is known."""
    for p, q in ((a, b), (b, a)):
        known = _range(q, env)
        if known is not None and known.is_single and direction in (ComparisonDirection.EQ, ComparisonDirection.NE):
            return implied(p, bool(known.low) == (direction is ComparisonDirection.EQ), env, facts, depth)
    return facts


def _follows(q: HloInstruction, p: HloInstruction, env: Environment, depth: int) -> bool:
    """True if `q` is true whenever `p` is."""
    facts = implied(p, True, env, None, depth - 1)
    return bool(facts) and _under(q, facts or {}, env, 1) == (1, 1)


Facts = dict[HloInstruction, Range]
"""Ranges of some instructions if something is assumed."""


def _under(i: HloInstruction, facts: Facts, env: Environment, depth: int) -> Range | None:
    """The range of an instruction given `facts`, which hold for each element on its own."""
    plain = _range(i, env)
    if i in facts:
        return facts[i]
    if plain is None or not depth or not i.operands or not has_trait(i.opcode, Trait.ELEMENTWISE):
        return plain
    operands = []
    for o in i.operands:
        found = _under(o, facts, env, depth - 1)
        if found is None:
            return plain
        operands.append(found)
    found = transfer(i, operands)
    return plain if found is None else plain.met(found) or plain


def implied(
    pred: HloInstruction, truth: bool, env: Environment, facts: Facts | None = None, depth: int = _TERMS
) -> Facts | None:
    """The ranges that follow for other instructions if `pred` has a value, for each element on its own; None: it never
    has."""
    facts = {} if facts is None else facts
    found = _range(pred, env)
    if found is None or (found.is_single and found.low != truth):
        return None
    match pred.opcode:
        case Opcode.NOT:
            return implied(pred.operands[0], not truth, env, facts, depth)
        case Opcode.AND | Opcode.OR if depth and truth == (pred.opcode is Opcode.AND):
            for o in pred.operands:
                if implied(o, truth, env, facts, depth - 1) is None:
                    return None
        case Opcode.AND if depth > _TERMS // 2:
            for p, q in (pred.operands, pred.operands[::-1]):
                if _follows(q, p, env, depth):
                    return implied(p, False, env, facts, depth - 1)
        case Opcode.COMPARE:
            a, b = pred.operands
            direction = pred.attributes.direction if truth else INVERSE[pred.attributes.direction]
            if depth and limits(a.shape) == BOOLEAN:
                return _implied_by_booleans(a, b, direction, env, facts, depth - 1)
            for x, y, d in ((a, b, direction), (b, a, MIRRORED[direction])):
                known, other = facts.get(x) or _range(x, env), facts.get(y) or _range(y, env)
                if known is None or other is None:
                    return facts  # a comparison of other numbers
                new = narrowed(d, known, other)
                if new is None:
                    return None
                _assume(x, new, env, facts)
        case Opcode.GET_TUPLE_ELEMENT | Opcode.PARAMETER:
            facts[pred] = Range(int(truth), int(truth))
    return facts


def _assume(i: HloInstruction, known: Range, env: Environment, facts: Facts) -> None:
    """Enter the range of an instruction, and the range of its operand that follows: for the sign of a number, and for a
    number plus a constant if that does not wrap around."""
    facts[i] = known
    if i.opcode is Opcode.SIGN:
        (x,) = i.operands
        a, whole = _range(x, env), limits(i.shape)
        if a is not None and whole is not None:
            low = known.low if known.low >= 0 else whole.low
            high = known.high if known.high <= 0 else whole.high
            facts[x] = a.met(Range(low, high)) or a
    if i.opcode is not Opcode.ADD:
        return
    for x, term in (i.operands, i.operands[::-1]):
        a, c, whole = _range(x, env), _range(term, env), limits(i.shape)
        if a is None or c is None or whole is None or not c.is_single or x is term:
            continue
        if whole.contains(Range(a.low + c.low, a.high + c.low)):
            found = a.met(Range(known.low - c.low, known.high - c.low))
            facts[x] = found or a


class _Loop:
    """One loop in one environment: the ranges of its state's elements."""

    def __init__(self, analysis: _Analysis, loop: HloInstruction, env: Environment) -> None:
        self.analysis = analysis
        self.condition: HloComputation = loop.attributes.condition
        self.body: HloComputation = loop.attributes.body
        shapes = loop.shape.elements if loop.shape.is_tuple else ()
        results = body_results(self.body)
        self.results: tuple[HloInstruction, ...] = results or ()
        given = env.get(loop.operands[0])
        self.is_known = loop.shape.is_tuple and results is not None
        self.start: list[Range | None] = []
        for k, shape in enumerate(shapes):
            found = given[k] if isinstance(given, tuple) else None
            self.start.append(found if isinstance(found, Range) else limits(shape))
        self.fixed = [state_element(r) == k for k, r in enumerate(self.results)]
        self.terms = [None if f else _step(r, k) for k, (r, f) in enumerate(zip(self.results, self.fixed, strict=True))]
        self.constant_steps = self.steps_in(self.constants())
        self.marks: list[int] | None = None

    def solved(self, log: Log) -> Value:
        """The state after the loop."""
        if not self.is_known:
            for computation in (self.condition, self.body):
                self.analysis.run(computation, [None], log)
            return None
        head, widened = self.first_guess(), False
        for attempt in range(_PATIENCE):
            turn = _Iteration(self, head, self.constant_steps)
            if turn.is_right:
                break
            widened = True
            hopeless = _GUESSES if self.analysis.budget < 0 else attempt
            for k, (h, w) in enumerate(zip(head, turn.wanted, strict=True)):
                if w is not None and h is not None and (attempt == _PATIENCE - 2 or not h.contains(w)):
                    head[k] = h.joined(w) if k in turn.sums and hopeless < 2 else self.widened(k, h, w, hopeless)
        else:
            raise AssertionError("the ranges of a loop's state do not settle")
        smaller = [h if w is None else w for h, w in zip(head, turn.wanted, strict=True)]
        if (widened or smaller != head or turn.steps != self.constant_steps) and self.analysis.budget > 0:
            again = _Iteration(self, smaller, turn.steps)
            turn = again if again.is_right else turn
        log.extend(turn.log)
        return turn.after()

    def first_guess(self) -> list[Range | None]:
        """The start, and for counters with a constant step the range from the trip count."""
        env = self.analysis.run(self.condition, [tuple(self.start)], [])
        trips = self.trips(env, self.constant_steps)
        head = list(self.start)
        for k, step in self.constant_steps.items():
            head[k] = self.reached(k, step, trips) or head[k]
        return head

    def steps_in(self, env: Environment) -> dict[int, Range]:
        """By element that is a sum: the amount that one iteration of the body adds to it."""
        found: dict[int, Range] = {}
        for k, step in enumerate(self.terms):
            if step is not None:
                known = env.get(step[1])
                if isinstance(known, Range):
                    found[k] = known if step[0] > 0 else Range(-known.high, -known.low)
        return found

    def constants(self) -> Environment:
        """The ranges of the body's constants and of elements that never change, before any iteration."""
        env: Environment = {}
        for step in self.terms:
            if step is not None:
                term, k = step[1], state_element(step[1])
                if term.opcode is Opcode.CONSTANT:
                    env[term] = transfer(term, ())
                elif k is not None and self.fixed[k]:
                    env[term] = self.start[k]
        return env

    def trips(self, env: Environment, steps: Mapping[int, Range]) -> int | None:
        """The most iterations: how long a counter stays below a limit. `env`: the ranges in the condition."""
        most: int | None = None
        for comparison in _conjuncts(self.condition.root):
            a, b = comparison.operands
            direction = comparison.attributes.direction
            for x, y, d in ((a, b, direction), (b, a, MIRRORED[direction])):
                count = self.trips_below(x, y, d.name, env, steps)
                if count is not None and (most is None or count < most):
                    most = count
        return most

    def trips_below(
        self,
        counter: HloInstruction,
        limit: HloInstruction,
        direction: str,
        env: Environment,
        steps: Mapping[int, Range],
    ) -> int | None:
        """The most iterations while `counter` is below `limit` (LT, LE) or above it; None if it might wrap around."""
        k = state_element(counter)
        start = self.start[k] if k is not None else None
        whole, end, step = limits(counter.shape), _range(limit, env), None if k is None else steps.get(k)
        if start is None or whole is None or end is None or step is None:
            return None
        if direction in ("LT", "LE") and step.low > 0:
            last = end.high - (direction == "LT")
            return None if last + step.high > whole.high else max(0, (last - start.low) // step.low + 1)
        if direction in ("GT", "GE") and step.high < 0:
            last = end.low + (direction == "GT")
            return None if last + step.low < whole.low else max(0, (start.high - last) // -step.high + 1)
        return None

    def reached(self, k: int, step: Range, trips: int | None) -> Range | None:
        """Element k, a sum, in up to `trips` iterations; None if it might wrap around."""
        start, whole = self.start[k], limits(self.results[k].shape)
        if start is None or whole is None or trips is None:
            return None
        found = Range(start.low + min(0, trips * step.low), start.high + max(0, trips * step.high))
        return found if whole.contains(found) else None

    def widened(self, k: int, head: Range, wanted: Range, attempt: int) -> Range:
        """A larger guess: up to the next number that the loop compares or counts with; in the end, everything."""
        whole = limits(self.results[k].shape)
        assert whole is not None
        if attempt >= _GUESSES:
            return whole
        if self.marks is None:
            self.marks = self.numbers()
        low, high = head.low, head.high
        if wanted.low < low:
            low = max((m for m in self.marks if m <= wanted.low), default=whole.low)
        if wanted.high > high:
            high = min((m for m in self.marks if m >= wanted.high), default=whole.high)
        return Range(max(low, whole.low), min(high, whole.high))

    def numbers(self) -> list[int]:
        """The constants of the loop and where its state starts, and their neighbours."""
        found: set[int] = set()
        for i in chain(self.condition.instructions, self.body.instructions):
            known = transfer(i, ()) if i.opcode is Opcode.CONSTANT and limits(i.shape) is not None else None
            found.update(known or ())
        for start in self.start:
            found.update(start or ())
        return sorted({n + d for n in found for d in (-1, 0, 1)})


def _contain(head: Sequence[Range | None], wanted: Sequence[Range | None]) -> bool:
    return all(w is None or (h is not None and h.contains(w)) for h, w in zip(head, wanted, strict=True))


class _Iteration:
    """One iteration of a loop's condition and body from a guess of the state's ranges and of the increments of
    counters."""

    def __init__(self, loop: _Loop, head: Sequence[Range | None], assumed: Mapping[int, Range]) -> None:
        self.loop, self.head, self.assumed = loop, tuple(head), assumed
        self.log: Log = []
        self.env = loop.analysis.run(loop.condition, [self.head], self.log)
        self.steps: dict[int, Range] = dict(assumed)
        self.wanted: list[Range | None] = list(loop.start)
        """By element: the range that the guess must contain to be right; None: it is right."""
        self.sums: set[int] = set()
        """The elements with an increment that follows from the trip count."""
        trips = loop.trips(self.env, assumed)
        entered = self.assuming(True)
        if entered is not None and trips != 0:
            state = tuple(self.narrowed(entered, None if trips is None else trips - 1))
            self.check(loop.analysis.run(loop.body, [state], self.log))

    @property
    def is_right(self) -> bool:
        """True if the state is in the guessed ranges before and after each iteration: by induction over the
        iterations."""
        return _contain(self.head, self.wanted) and all(
            k in self.steps and step.contains(self.steps[k]) for k, step in self.assumed.items()
        )

    def assuming(self, truth: bool) -> list[Range | None] | None:
        """The state if the condition has a value; None if it never has."""
        facts = implied(self.loop.condition.root, truth, self.env)
        if facts is None:
            return None
        state = list(self.head)
        for instruction, known in facts.items():
            k = state_element(instruction)
            if k is not None:
                before = state[k]
                state[k] = known if before is None else before.met(known)
        return state

    def narrowed(self, state: list[Range | None], trips: int | None) -> list[Range | None]:
        """The state where the body starts, at most `trips` iterations from the start."""
        for k, step in self.assumed.items():
            reached = self.loop.reached(k, step, trips)
            before = state[k]
            if reached is not None and before is not None:
                state[k] = before.met(reached)
        return state

    def check(self, env: Environment) -> None:
        """Compare the guess with the ranges that the body computes from it."""
        loop = self.loop
        self.steps = loop.steps_in(env)
        trips = loop.trips(self.env, self.steps)
        for k, (start, result) in enumerate(zip(loop.start, loop.results, strict=True)):
            if start is None or loop.fixed[k]:
                self.wanted[k] = None
                continue
            after, head = _range(result, env), self.head[k]
            assert after is not None and head is not None
            self.wanted[k] = start.joined(after)
            reached = loop.reached(k, self.steps[k], trips) if k in self.steps else None
            if reached is not None and not head.contains(start.joined(after)):
                self.wanted[k] = reached
                self.sums.add(k)

    def after(self) -> Value:
        """The state after the loop, if the guess is right: the condition is false."""
        state = self.assuming(False) or self.head
        both = zip(state, self.wanted, strict=True)
        return tuple([a if a is None or w is None else a.met(w) or a for a, w in both])


def _conjuncts(pred: HloInstruction, depth: int = _TERMS) -> Iterator[HloInstruction]:
    """Comparisons that must be true for `pred`."""
    if pred.opcode is Opcode.COMPARE:
        yield pred
    elif pred.opcode is Opcode.AND and depth:
        for o in pred.operands:
            yield from _conjuncts(o, depth - 1)


def _step(result: HloInstruction, k: int) -> tuple[int, HloInstruction] | None:
    """The amount that each iteration adds to element k of the state, and its sign."""
    if result.opcode not in (Opcode.ADD, Opcode.SUBTRACT) or limits(result.shape) in (None, BOOLEAN):
        return None
    a, b = result.operands
    if state_element(a) == k:
        return (1 if result.opcode is Opcode.ADD else -1), b
    return (1, a) if state_element(b) == k and result.opcode is Opcode.ADD else None
