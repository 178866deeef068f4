"""Keep small arrays in registers: unroll their loops, and make variables of elements at known indices.

    for l in range(16):                           for l in range(16):
        for i in range(2):                            w_0 = w[0 * 16 + l]
            w[i * 16 + l] = ...           ->          w_1 = w[1 * 16 + l]
                                                      w_0 = ...
                                                      ...
                                                      w[0 * 16 + l] = w_0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...hlo.support.records import dataclass
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, all_of
from .inward import between
from .rewrite import Substitution, rewritten
from .statements import Assign, Block, For, If, LocalArray, Statement, Store, names_of, walk, with_blocks, with_values


@dataclass(frozen=True)
class Unroll:
    """All loops with bounds in the text, in loops over a variable of this name."""

    variable: str

    def applied(self, block: Block) -> Block:
        """The statements with these loops unrolled."""
        result: Block = []
        for statement in block:
            if isinstance(statement, For) and statement.variable.name == self.variable:
                once = Counter(t.name for s in walk(statement.body) if isinstance(s, Assign) for t in s.targets)
                known = frozenset(name for name, times in once.items() if times == 1)
                result.append(replace(statement, body=_Unrolled({}, known).block(statement.body)))
            else:
                result.append(with_blocks(statement, self.applied))
        return result


class _Unrolled(Substitution):
    """Unrolls loops while it writes their statements, so that each expression is folded once."""

    def __init__(self, known: Mapping[str, Expr], once: frozenset[str]) -> None:
        """`once`: names that are assigned to in one place. If the value is a number, the number replaces the name."""
        super().__init__(known, {}, lambda name: name)
        self._once = once

    def block(self, block: Block) -> Block:
        """The statements without loops; the numbers that names of the block stand for are known in it only."""
        inside = _Unrolled(self._values, self._once)
        return [new for statement in block for new in inside.statements(statement)]

    def statements(self, statement: Statement) -> Block:
        if isinstance(statement, For):
            bounds = _bounds(self.expression(statement.start or ZERO), self.expression(statement.stop))
            if bounds is not None:
                return self._iterations(statement, *bounds)
        match new := super().statements(statement):
            case [Assign(targets=(Name(name=name),), values=(Number(value=int()) as number,))] if (
                isinstance(statement, Assign) and name in self._once
            ):
                self._values[name] = number
                return []
        return new

    def _iterations(self, loop: For, start: _Bound, stop: _Bound) -> Block:
        result: Block = []
        for value in range(start[0], stop[0], loop.step):
            counter = self._values[loop.variable.name] = Number(value)
            own = between(counter, start[1], stop[1])
            body = self.block(loop.body)
            result += [If([(all_of(own), body)])] if own else body
        self._values.pop(loop.variable.name, None)
        return result


_Bound = tuple[int, Expr | None]


def _bounds(start: Expr, stop: Expr) -> tuple[_Bound, _Bound] | None:
    """The bounds of a loop that are in the text: of ``range(maximum(1, x), minimum(4, y))`` 1 and 4, beside x and y."""
    first, last = _bound(start, "maximum"), _bound(stop, "minimum")
    return None if first is None or last is None else (first, last)


def _bound(bound: Expr, of: str) -> _Bound | None:
    match bound:
        case Number(value=int() as number):
            return number, None
        case Call(function=function, arguments=(Number(value=int() as number), other)) if function == of:
            return number, other
    return None


@dataclass(frozen=True)
class Registers:
    """Elements of local arrays become variables in a loop over a variable of this name, which has no loop inside."""

    variable: str

    def applied(self, block: Block) -> Block:
        """The statements with variables in such loops."""
        arrays = {statement.name.name for statement in walk(block) if isinstance(statement, LocalArray)}
        return self._block(block, arrays, list(names_of(block)))

    def _block(self, block: Block, arrays: set[str], read: list[str]) -> Block:
        result: Block = []
        for statement in block:
            if isinstance(statement, For) and statement.variable.name == self.variable:
                inside = list(names_of(statement.body))
                after = {name for name in arrays if read.count(name) > inside.count(name)}
                found = _InRegisters(statement, arrays, after)
                result.append(replace(statement, body=found.body()))
            else:
                result.append(with_blocks(statement, lambda inner: self._block(inner, arrays, read)))
        return result


class _InRegisters:
    def __init__(self, loop: For, arrays: set[str], after: set[str]) -> None:
        """`after`: the arrays that are of interest after the loop."""
        self._loop, self._arrays, self._after = loop, arrays, after
        assert isinstance(loop.stop, Number)
        self._lanes = int(loop.stop.value)
        self._loaded: Block = []
        self._names: dict[tuple[str, int], Name] = {}
        self._stored: dict[tuple[str, int], Name] = {}

    def body(self) -> Block:
        changed = [self._statement(statement) for statement in self._loop.body]
        stores = [
            Store(pointer, self._index(number), self._names[name, number])
            for (name, number), pointer in self._stored.items() if name in self._after
        ]  # fmt: skip
        return [*self._loaded, *changed, *stores]

    def _index(self, number: int) -> Expr:
        return Binary("+", Binary("*", Number(number), Number(self._lanes)), self._loop.variable)

    def _number(self, pointer: Name, index: Expr) -> int | None:
        """Which element: its index is a literal times the number of iterations, plus the counter."""
        if pointer.name not in self._arrays:
            return None
        match index:
            case Name(name=name) if name == self._loop.variable.name:
                return 0
            case Binary(op="+", left=Number(value=at), right=Name(name=name)) if name == self._loop.variable.name:
                return int(at) // self._lanes
        raise AssertionError(f"{pointer}[{index}] is no element at a known index")

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Assign():
                return with_values(statement, self._value)
            case Store(pointer=pointer, index=index, value=value):
                number = self._number(pointer, index)
                if number is None:
                    return with_values(statement, self._value)
                new = self._value(value)
                self._stored[pointer.name, number] = pointer
                name = self._name(pointer, number)
                return Assign((name,), (new if new.type == name.type else Call(name.type, (new,)),))
        raise AssertionError(statement)

    def _name(self, pointer: Name, number: int) -> Name:
        name = f"{pointer.name}_{number}"
        return self._names.setdefault((pointer.name, number), Name(name, pointer.type[:-1]))

    def _value(self, e: Expr) -> Expr:
        return rewritten(e, self._register)

    def _register(self, e: Expr) -> Expr | None:
        number = self._number(e.pointer, e.index) if isinstance(e, Load) else None
        if number is None:
            return None
        assert isinstance(e, Load)
        if (e.pointer.name, number) not in self._names:
            name = self._name(e.pointer, number)
            self._loaded.append(Assign((name,), (e.pointer[self._index(number)],)))
        return self._name(e.pointer, number)
