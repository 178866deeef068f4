"""Sizes that note how they are used, so that a result for some sizes serves others, too.

    seen = Observations((96, 30))
    n, m = seen.sizes()
    f(n, m)                            f asks: is n > 16? (yes), is n % 32 == 0? (yes), is n < m? (no)
    Trial(seen, (128, 30)).holds()     True: with these sizes f gets the same answers

An emitter is a function of sizes: it computes with them, compares them, and puts some into its result. An
`ObservedSize` stands for a number. Arithmetic makes another one, which knows how it was computed from the given ones. A
comparison is answered for the number, and the answer is noted. All that needs the number itself (a literal in a text,
a range, a division of floats) notes that it is this number. So for all sizes that get the noted answers the result is
the same, but for the observed sizes in it; these are computed from the other sizes (`Trial.number`).

It is no `int`, whose value functions written in C would take without asking, and it has no hash, for which equal
numbers would have to meet. What is not defined here is a TypeError: then the caller computes with plain numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_ANSWERS = 8
"""Results of one function that are kept, the latest."""

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "bits": lambda a, _: a.bit_length(),
}  # fmt: skip
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NEUTRAL = frozenset((("+", 0), ("-", 0), ("*", 1), ("//", 1)))
_NEUTRAL_FIRST = frozenset((("+", 0), ("*", 1)))


class Observed:
    """A number that notes how it is used: number `term` of its observations."""

    __slots__ = ()

    seen: Observations
    term: int
    value: Any


class Observations:
    """What was computed from some sizes so far, and what was asked of it, in order."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        self.terms: list[tuple[Callable[[int, int], int], int, int]] = []
        """The operations, each on two numbers: first come the sizes, then the results of the terms."""
        self.answers: list[tuple[Callable[[int, int], bool], int, int, bool, int, Callable[[], bool] | None]] = []
        """The comparisons, of such numbers, and whether they hold; how many terms there were then; and what says,
        instead, that the other answer makes no difference."""
        self._made: dict[tuple[str, int, int], ObservedSize] = {}
        self._asked: dict[tuple[Hashable, int, int], bool] = {}

    def sizes(self) -> list[ObservedSize]:
        """The sizes."""
        return [ObservedSize(value, k, self) for k, value in enumerate(self.values)]

    def made(self, symbol: str, left: ObservedSize, right: ObservedSize) -> ObservedSize:
        """The result of an operation."""
        key = symbol, left.term, right.term
        found = self._made.get(key)
        if found is None:
            function = _ARITHMETIC[symbol]
            term = self.add(function, left.term, right.term)
            found = self._made[key] = ObservedSize(function(left.value, right.value), term, self)
        return found

    def constant(self, value: int) -> ObservedSize:
        """A number that does not depend on the sizes."""
        key = "constant", value, 0
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = ObservedSize(value, self.add(_first, value, value), self)
        return found

    def answer(self, symbol: str, left: ObservedSize, right: ObservedSize) -> bool:
        """Whether a comparison holds, which is noted."""
        if left.term == right.term:
            return symbol in ("==", "<=", ">=")
        return self.note(symbol, _COMPARISONS[symbol], left, right)

    def add(self, function: Callable[[Any, Any], Any], left: int, right: int) -> int:
        """Note an operation on two numbers; gives the number of its result."""
        self.terms.append((function, left, right))
        return len(self.values) + len(self.terms) - 1

    def note(self, key: Hashable, question: Callable[[Any, Any], bool], left: Observed, right: Observed) -> bool:
        """The answer to a question about two numbers, which is noted. `key`: the question."""
        asked = key, left.term, right.term
        found = self._asked.get(asked)
        if found is None:
            found = self._asked[asked] = question(left.value, right.value)
            self.answers.append((question, left.term, right.term, found, len(self.terms), None))
        return found

    def note_of_several(self, question: Callable[[Sequence[Any]], bool], operands: Sequence[Observed]) -> bool:
        """The same for a question about several numbers, which is a new one."""
        term, count = operands[0].term, len(operands)
        for operand in operands[1:]:
            term = self.add(_pair, term, operand.term)
        found = question([operand.value for operand in operands])
        self.answers.append((lambda a, _: question(_parts(a, count)), term, term, found, len(self.terms), None))
        return found

    def answer_unless(self, symbol: str, left: ObservedSize, right: ObservedSize, same: Callable[[], bool]) -> None:
        """Note an answer that matters unless `same()`, which is asked when a size gets the other one."""
        function = _COMPARISONS[symbol]
        found = function(left.value, right.value)
        self.answers.append((function, left.term, right.term, found, len(self.terms), lru_cache(1)(same)))


def _first(value: int, _: int) -> int:
    return value


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    return a, b


def _parts(pairs: Any, count: int) -> list[Any]:
    """So many numbers that `_pair` has joined, one after the other."""
    found = []
    for _ in range(count - 1):
        pairs, last = pairs
        found.append(last)
    return [pairs, *reversed(found)]


class Trial:
    """Other sizes in the place of the observed ones."""

    def __init__(self, seen: Observations, values: Sequence[Any]) -> None:
        self._seen, self._numbers = seen, list(values)
        self._are_the_observed = tuple(values) == seen.values
        self._held = 0

    def holds(self, count: int | None = None) -> bool:
        """True if these sizes get the same answers to the first `count` questions, or to all."""
        answers = self._seen.answers
        if self._are_the_observed:
            return True
        if self._held < 0:
            return False
        # In order: an earlier answer may be what makes a later question possible.
        while self._held < (len(answers) if count is None else count):
            comparison, left, right, answer, terms, same = answers[self._held]
            try:
                numbers = self._computed(terms)
            except (ZeroDivisionError, ValueError):
                self._held = -1
                return False
            if comparison(numbers[left], numbers[right]) is not answer:
                if same is None or not same():
                    self._held = -1
                    return False
                count = None  # `same` noted the answers that it depends on behind those of all questions so far
            self._held += 1
        return True

    def _computed(self, terms: int) -> list[int]:
        numbers, seen = self._numbers, self._seen
        done = len(numbers) - len(seen.values)
        for function, left, right in seen.terms[done:terms]:
            numbers.append(left if function is _first else function(numbers[left], numbers[right]))
        return numbers

    def number(self, size: Any) -> Any:
        """The number that an observed size is for these sizes; any other object is itself."""
        if not isinstance(size, Observed):
            return size
        return self._computed(max(size.term - len(self._seen.values) + 1, 0))[size.term]


def _method(symbol: str, find: Callable[[ObservedSize, Any], Any]) -> Any:
    """A method that finds its result for a number or a size once."""

    def method(self: ObservedSize, other: Any) -> Any:
        kind = type(other)
        key: tuple[object, ...] | None = None
        if kind is int:
            key = symbol, other
        elif kind is ObservedSize and other.seen is self.seen:
            key = symbol, other.term, None
        if key is None:
            return find(self, other)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = find(self, other)
        return found

    return method


def _arithmetic(symbol: str, *, reverse: bool = False) -> Any:
    neutral = _NEUTRAL_FIRST if reverse else _NEUTRAL

    def find(self: ObservedSize, other: Any) -> Any:
        kind, seen = type(other), self.seen
        if kind is int or kind is bool:
            if (symbol, other) in neutral:
                return self
            other = seen.constant(int(other))
        elif kind is float:
            function: Any = _ARITHMETIC[symbol]
            return function(other, self.fixed()) if reverse else function(self.fixed(), other)
        elif kind is not ObservedSize or other.seen is not seen:
            return NotImplemented
        return seen.made(symbol, other, self) if reverse else seen.made(symbol, self, other)

    return _method(f"reverse {symbol}" if reverse else symbol, find)


def _comparison(symbol: str) -> Any:
    def find(self: ObservedSize, other: Any) -> Any:
        kind, seen = type(other), self.seen
        if kind is int or kind is bool:
            other = seen.constant(int(other))
        elif kind is float:
            function: Any = _COMPARISONS[symbol]
            return function(self.fixed(), other)
        elif other is None:
            return NotImplemented
        elif kind is not ObservedSize or other.seen is not seen:
            raise TypeError(f"an observed size is compared with a {kind.__name__}")
        return seen.answer(symbol, self, other)

    return _method(symbol, find)


class ObservedSize(Observed):
    """A number of which each use is noted."""

    __slots__ = ("known", "seen", "term", "value")

    value: int

    def __init__(self, value: int, term: int, seen: Observations) -> None:
        self.value, self.term, self.seen = value, term, seen
        self.known: dict[tuple[object, ...], Any] = {}
        """Results of operations with numbers and other sizes."""

    def is_less(self, limit: int, same: Callable[[], bool]) -> bool:
        """``self < limit``, where that makes no difference if `same()`: it is asked for sizes with the other answer."""
        self.seen.answer_unless("<", self, self.seen.constant(limit), same)
        return self.value < limit

    def fixed(self) -> int:
        """The number itself: what follows holds for this number alone."""
        self.seen.answer("==", self, self.seen.constant(self.value))
        return self.value

    __add__, __sub__, __mul__, __floordiv__, __mod__ = map(_arithmetic, ("+", "-", "*", "//", "%"))
    __and__, __or__, __xor__, __lshift__, __rshift__ = map(_arithmetic, ("&", "|", "^", "<<", ">>"))
    __radd__, __rsub__, __rmul__ = (_arithmetic(symbol, reverse=True) for symbol in "+-*")
    __rfloordiv__, __rmod__ = (_arithmetic(symbol, reverse=True) for symbol in ("//", "%"))
    __rand__, __ror__, __rxor__ = (_arithmetic(symbol, reverse=True) for symbol in "&|^")
    __rlshift__, __rrshift__ = (_arithmetic(symbol, reverse=True) for symbol in ("<<", ">>"))
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_comparison, _COMPARISONS)
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise TypeError(f"an observed size has no {name}")

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def bit_length(self) -> Any:
        """As of an `int`."""
        return self.seen.made("bits", self, self)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        return self.fixed()

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.fixed())

    def __truediv__(self, other: Any) -> Any:
        return self.fixed() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.fixed()

    def __str__(self) -> str:
        return str(self.fixed())

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.fixed(), spec)


class Recalled(Generic[T]):
    """The results of one function of sizes, the latest first. Each serves all sizes that get the same answers."""

    def __init__(self) -> None:
        self._found: list[tuple[Observations, int, T]] = []
        """Results, with the observations, and how many of these there were, that they depend on."""
        self._can_observe = True

    def find(
        self, trial: Callable[[Observations], Trial], observe: Callable[[], tuple[Observations, T]]
    ) -> tuple[Observations, T] | None:
        """A result that holds for other sizes, and the observed sizes that are in it. None if they cannot be observed.

        trial: these other sizes in the place of observed ones.
        observe: finds the result for these sizes, which it observes; a TypeError if it cannot.
        """
        for seen, count, result in self._found:
            if trial(seen).holds(count):
                return seen, result
        if not self._can_observe:
            return None
        try:
            seen, result = observe()
        except TypeError:
            self._can_observe = False
            return None
        del self._found[MOST_ANSWERS - 1 :]
        self._found.insert(0, (seen, len(seen.answers), result))
        return seen, result

    def of(self, values: Sequence[int], function: Callable[[Sequence[Any]], T]) -> T:
        """The result for sizes, of a function that has no observed sizes in its results."""

        def observe() -> tuple[Observations, T]:
            seen = Observations(values)
            return seen, function(seen.sizes())

        found = self.find(lambda seen: Trial(seen, values), observe)
        return function(values) if found is None else found[1]
