"""Sums of a counter and random bits are opaque to LLVM: ``opaque(a + b)`` is the sum, and no arithmetic on a counter.

    for i in range(lo, hi):                          for i in range(lo, hi):
        first = add(uint32(i), key[1])                   first = add(uint32(i), key[1])
        mixed = bit_xor(rotated, first)       ->         mixed = bit_xor(rotated, first)
        second = add(uint32(i), mixed)                   second = opaque(add(uint32(i), mixed))

A counter-based generator (Threefry, Philox) and a hash start from the counter of a loop, add, xor and rotate. LLVM's
loop strength reduction then sees dozens of sums of the counter and something, each with one more term than the one
before. It takes half a second to find no cheaper way to step them. `opaque` costs one instruction for each generated
number, and nothing else, in vectorised loops too. Users write such arithmetic themselves, so no emitter knows of it
earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .expressions import Binary, Call, Expr, Name, Number
from .statements import Assign, Block, For, Statement, Store, walk, with_blocks, with_values

_COUNTER, _MIXED = "counter", "mixed"
_FEW = 8
"""With fewer xors there is nothing to hide."""


def with_opaque_sums(block: Block) -> Block:
    """The statements with such sums hidden; the same object if there are none."""
    found = sums_of_counters(block)
    return _with_opaque(block, found) if found else block


def _with_opaque(block: Block, found: Collection[int]) -> Block:
    hidden = [with_values(statement, lambda value: _hidden(value, found)) for statement in block]
    return [with_blocks(statement, lambda inner: _with_opaque(inner, found)) for statement in hidden]


def _hidden(value: Expr, found: Collection[int]) -> Expr:
    parts = tuple([_hidden(part, found) for part in value.parts])
    changed = value if all(a is b for a, b in zip(parts, value.parts)) else value.with_parts(parts)
    return Call("opaque", (changed,)) if id(value) in found else changed


def sums_of_counters(block: Block) -> frozenset[int]:
    """The identities of the nodes `a + b`, `add(a, b)` and casts of them, if one operand steps with a loop's counter
    and the other is the result of `^` or `bit_xor`. Steps are followed through additions only."""
    statements = list(walk(block))
    pairs = [pair for s in statements for pair in _assigned(s)]
    if sum(_is_xor(part) for _, value in pairs for part in value.walk()) < _FEW:
        return frozenset()
    carried = {name for name, value in pairs if _steps(name, value)} | {
        s.variable.name for s in statements if isinstance(s, For)
    }
    kinds: dict[str, str | None] = dict.fromkeys(carried, _COUNTER)
    found: set[int] = set()
    for name, value in pairs:
        kind = _kind(value, kinds, found)
        if name not in carried:
            kinds[name] = kind
    return frozenset(found)


def _assigned(statement: Statement) -> Iterator[tuple[str, Expr]]:
    """Names and their new values; an element of an array has no name."""
    if isinstance(statement, Assign):
        for target, value in zip(statement.targets, statement.values, strict=True):
            yield target.name, value
    elif isinstance(statement, Store):
        yield "", statement.value


def _is_xor(node: Expr) -> bool:
    return _sign(node) == "^"


def _steps(name: str, value: Expr) -> bool:
    """Is the value `name + literal`, perhaps in casts?"""
    value = _uncast(value)
    if _sign(value) not in ("+", "-"):
        return False
    left, right = value.parts
    return isinstance(left, Name) and left.name == name and isinstance(_uncast(right), Number)


_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "bit_xor": "^"}


def _sign(node: Expr) -> str | None:
    """The operator of an operation with two operands, on indices or on data."""
    if isinstance(node, Binary):
        return node.op
    return _SIGNS.get(node.function) if isinstance(node, Call) else None


def _uncast(value: Expr) -> Expr:
    while isinstance(value, Call) and len(value.arguments) == 1:
        value = value.arguments[0]
    return value


def _kind(node: Expr, kinds: dict[str, str | None], found: set[int]) -> str | None:
    if isinstance(node, Name):
        return kinds.get(node.name)
    if isinstance(node, Call) and node.function == "opaque":
        return None
    if isinstance(node, Call) and len(node.arguments) == 1:
        (inner,) = node.arguments
        kind = _kind(inner, kinds, found)
        if id(inner) in found:  # the narrower type: more of them fit into a vector
            found.remove(id(inner))
            found.add(id(node))
        return kind
    sign = _sign(node)
    if sign is None:
        for part in node.arguments if isinstance(node, Call) else ():
            _kind(part, kinds, found)
        return None
    left, right = (_kind(part, kinds, found) for part in node.parts)
    if sign == "^":
        return _MIXED
    if sign in ("+", "-") and _COUNTER in (left, right):
        if _MIXED not in (left, right):
            return _COUNTER
        if sign == "+":
            found.add(id(node))
    elif sign == "*" and _COUNTER in (left, right):
        return _COUNTER if any(isinstance(part, Number) for part in node.parts) else None
    return None

