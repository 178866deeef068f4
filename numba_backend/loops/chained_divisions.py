"""A transform: divide by a constant with multiplications where a loop waits for the quotient.

                                                reciprocal0 = 1.0 / c0
                                                rest0 = fma(-reciprocal0, c0, 1.0) / c0
                                                most0 = 2.0**700 if c0 may be used so, else -1.0
    for j in range(n):                          for j in range(n):
        carried0 = (x[j] + carried0) / c0 ->        dividend0 = x[j] + carried0
                                                    if 2.0**-700 <= abs(dividend0) <= most0:
                                                        quotient0 = fma(dividend0, reciprocal0, dividend0 * rest0)
                                                    else:
                                                        quotient0 = dividend0 / c0
                                                    carried0 = quotient0

The next operation waits 13 cycles for a quotient of f64, 10 for one of f32, and 7 for the two multiplications (Zen 4).
They give the same bits (Brisebarre, Muller, Raina, "Accelerating correctly rounded floating-point division when the
divisor is known in advance", IEEE Transactions on Computers 53, 2004). With numbers of p bits, `rest` is at most
``2**-p`` of the reciprocal. Both are 1 / c with a relative error of ``2**-2p``, and the product with `rest` adds as
much, so that the sum is ``2**(1 - 2p)`` away from the quotient at most before it is rounded. The quotient of numbers of
p and p - 3 bits is no midpoint between two numbers, and ``2**(2 - 2p)`` away from all of them. So the last three bits
of the divisor have to be zeros, which only a run knows, and no number may be so large or small that further bits are
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ...hlo.support.records import dataclass
from .expressions import Binary, Expr, Name, Number, Unary, call
from .rewrite import rewritten
from .statements import Assign, Block, For, If, Statement, While, expressions_of, with_blocks, with_values
from .straight_lines import assigned, is_straight, read_first, targets


@dataclass(frozen=True, slots=True)
class _Format:
    bits: str
    """The function that gives the bits of a number."""
    dividends: int
    """The exponent of the largest dividend; that of the least is its negative."""
    reciprocals: int
    """The same for the largest reciprocal."""


_FORMATS = {"float32": _Format("bitcast_f32_u32", 60, 30), "float64": _Format("bitcast_f64_u64", 700, 200)}


@dataclass(frozen=True, slots=True)
class _Divisor:
    reciprocal: Name
    rest: Name
    most: Name
    """The largest dividend to use them for; negative if the divisor has too many bits, or no reciprocal."""


def without_chained_divisions(block: Block, constants: Collection[str], fresh: Callable[[str], str]) -> Block:
    """The statements of a program with changed loops. `constants`: the arguments that are numbers of a program's text;
    `fresh`: a new name like a given one."""
    changes = _Changes(constants, fresh)
    changed = changes.block(block)
    return [*changes.before, *changed] if changes.before else block


class _Changes:
    def __init__(self, constants: Collection[str], fresh: Callable[[str], str]) -> None:
        self._constants, self._fresh = constants, fresh
        self.before: Block = []
        """What the loops use, for each divisor."""
        self._divisors: dict[str, _Divisor] = {}

    def block(self, block: Block) -> Block:
        return [self._statement(statement) for statement in block]

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, (For, While)) and is_straight(statement.body):
            return replace(statement, body=self._straight(statement.body))
        return with_blocks(statement, self.block)

    def _straight(self, body: Block) -> Block:
        carried = read_first(body, assigned(body))
        if not carried:
            return body
        awaited = _awaited(body, carried)
        waiting = set(carried)
        result: Block = []
        for statement in body:
            made = {target.name for target in targets(statement)}
            if made & awaited:
                statement = self._divided(statement, waiting, result)
            if any(name in waiting for e in expressions_of(statement) for name in e.names):
                waiting |= made
            result.append(statement)
        return result

    def _divided(self, statement: Statement, waiting: Collection[str], before: Block) -> Statement:
        """The statement with the names of quotients, which are added to the statements before it."""

        def quotient(e: Expr) -> Expr | None:
            if not (isinstance(e, Binary) and e.op == "/" and e.type == e.left.type == e.right.type in _FORMATS):
                return None
            if not (self._is_constant(e.right) and any(name in waiting for name in e.left.names)):
                return None
            divisor, least = self._of_divisor(e.right), 2.0 ** -_FORMATS[e.type].dividends
            dividend, found = Name(self._fresh("dividend"), e.type), Name(self._fresh("quotient"), e.type)
            product = call("fma", dividend, divisor.reciprocal, Binary("*", dividend, divisor.rest))
            usual = call("likely", _is_between(_number(least, e.type), dividend, divisor.most))
            before.append(Assign((dividend,), (rewritten(e.left, quotient),)))
            divided = Binary("/", dividend, e.right)
            before.append(If([(usual, [Assign((found,), (product,))])], [Assign((found,), (divided,))]))
            return found

        return with_values(statement, lambda value: rewritten(value, quotient))

    def _is_constant(self, e: Expr) -> bool:
        return not e.loads and all(name in self._constants for name in e.names)

    def _of_divisor(self, e: Expr) -> _Divisor:
        found = self._divisors.get(e.text)
        if found is not None:
            return found
        reciprocal, rest, most = [Name(self._fresh(name), e.type) for name in ("reciprocal", "rest", "most")]
        kind, one = _FORMATS[e.type], _number(1.0, e.type)
        ends = [_number(2.0**exponent, e.type) for exponent in (-kind.reciprocals, kind.reciprocals)]
        is_short = Binary("==", Binary("&", call(kind.bits, e), Number(7)), Number(0))
        is_used = Binary("and", is_short, _is_between(ends[0], reciprocal, ends[1]))
        self.before += [
            Assign((reciprocal,), (Binary("/", one, e),)),
            Assign((rest,), (Binary("/", call("fma", Unary("-", reciprocal), e, one), e),)),
            Assign((most,), (_number(-1.0, e.type),)),
            If([(is_used, [Assign((most,), (_number(2.0**kind.dividends, e.type),))])]),
        ]
        found = self._divisors[e.text] = _Divisor(reciprocal, rest, most)
        return found


def _number(value: float, kind: str) -> Expr:
    return Number(value) if kind == "float64" else call(kind, Number(value))


def _is_between(least: Expr, value: Expr, most: Expr) -> Expr:
    size = call("abs", value)
    return Binary("and", Binary("<=", least, size), Binary("<=", size, most))


def _awaited(body: Block, carried: Collection[str]) -> set[str]:
    """The names on which the next iteration's values of carried names depend."""
    found = set(carried)
    for statement in reversed(body):
        if any(target.name in found for target in targets(statement)):
            found.update(name for e in expressions_of(statement) for name in e.names)
    return found
