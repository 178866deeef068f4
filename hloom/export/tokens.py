"""Tokens of ordered effects in a program of StableHLO.

A function with ordered effects takes a token for each of them, before its other arguments, and returns them before its
other results; they have the attribute `jax.token`. A use that takes no token itself is between two barriers: its
operands wait for the token, and the next token for its results. A region makes tokens of its own, since the operation
that has the region is between barriers, too. Source: "Module calling convention" in JAX's documentation of export.

    %y = call @acts(%x)                 %x1, %t1 = stablehlo.optimization_barrier %x, %t
                                 ->     %y1 = call @acts(%x1)
                                        %y, %t2 = stablehlo.optimization_barrier %y1, %t1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..extend.protocol import EFFECTS
from ..hlo.element_type import ElementType
from ..hlo.errors import UnsupportedError
from ..hlo.mlir.tree import (
    Attribute,
    Block,
    Function,
    Integer,
    Operation,
    Token,
    TypeAttribute,
    Value,
    function_type,
    operations,
)
from .functions import callee_of, functions_of

Tokens = dict[str, Value]
"""The tokens of effects, by the effects' texts."""
_ALIAS = "tf.aliasing_output"


def thread_tokens(module: Operation, effects: Sequence[Any]) -> None:
    """Change the module in place. effects: the ordered ones; `main` takes their tokens in this order. The operations
    that have them are composites with the attribute `hloom.effects`. A composite becomes a call if its function takes
    tokens. UnsupportedError for effects that their texts do not tell apart."""
    texts = [str(effect) for effect in effects]
    if not texts:
        return
    if len({*texts}) < len(texts):
        raise UnsupportedError(f"export: ordered effects with one text: {', '.join(texts)}")
    functions = functions_of(module)
    having = _effects_of_functions(functions, texts)
    having["main"] = texts
    for name, found in having.items():
        if found:
            _thread_function(functions[name], found, having)


def _effects_of_functions(functions: Mapping[str, Operation], texts: Sequence[str]) -> dict[str, list[str]]:
    """The effects of each function, and of all functions that it calls, in the order of `texts`."""
    found = {name: {t for o in operations(f) for t in _own(o)} for name, f in functions.items()}
    while True:
        more = {
            name: found[name].union(*[found.get(callee_of(o) or "", ()) for o in operations(f)])
            for name, f in functions.items()
        }
        if more == found:
            return {name: [t for t in texts if t in own] for name, own in found.items()}
        found = more


def _own(operation: Operation) -> list[str]:
    """The effects that an operation has by itself, unordered ones among them."""
    given = operation.attributes.get("composite_attributes")
    text = given.get(EFFECTS) if operation.name == "stablehlo.composite" and isinstance(given, dict) else None
    return text.split("; ") if isinstance(text, str) else []


def _thread_function(function: Operation, texts: Sequence[str], having: Mapping[str, Sequence[str]]) -> None:
    block, type_, count = function.regions[0].block, function_type(function), len(texts)
    tokens = {text: Value(Token()) for text in texts}
    block.arguments[:0] = tokens.values()
    if block.argument_locations:
        block.argument_locations[:0] = [None] * count
    _thread_block(block, tokens, having)
    block.operations[-1].operands[:0] = tokens.values()
    added = (Token(),) * count
    signature = Function((*added, *type_.inputs), (*added, *type_.results))
    function.attributes["function_type"] = TypeAttribute(signature)
    for name in ("arg_attrs", "res_attrs"):
        own: Any = function.attributes[name]
        marks: list[Attribute] = [{"jax.token": True} for _ in range(count)]
        function.attributes[name] = (*marks, *[_moved(each, count) for each in own])


def _moved(attributes: dict[str, Any], count: int) -> dict[str, Any]:
    """The attributes of an argument, where the numbers of results are larger by `count`."""
    alias = attributes.get(_ALIAS)
    if alias is None:
        return attributes
    return {**attributes, _ALIAS: Integer(alias.value + count, ElementType.S32)}


def _thread_block(block: Block, tokens: Tokens, having: Mapping[str, Sequence[str]]) -> None:
    """Pass the tokens from operation to operation. `tokens` has the last ones afterwards."""
    kept: list[Operation] = []
    for operation in block.operations:
        taken = having.get(callee_of(operation) or "", ())
        inside = {t: None for r in operation.regions for b in r.blocks for t in _thread_region(b, tokens, having)}
        waiting = [t for t in tokens if t not in taken and (t in inside or t in _own(operation))]
        if waiting and operation.operands:
            operation.operands[:] = _barrier(kept, operation.operands, waiting, tokens)
        if taken:
            callee = "decomposition" if operation.name == "stablehlo.composite" else "callee"
            operation.name, operation.attributes = "func.call", {"callee": operation.attributes[callee]}
            operation.operands[:0] = [tokens[t] for t in taken]
            new = [Value(Token()) for _ in taken]
            operation.results[:0] = new
            tokens.update(zip(taken, new, strict=True))
        kept.append(operation)
        if waiting and operation.results:
            results = operation.results
            operation.results = [Value(r.type) for r in results]
            _barrier(kept, operation.results, waiting, tokens, results)
    block.operations[:] = kept


def _thread_region(block: Block, tokens: Tokens, having: Mapping[str, Sequence[str]]) -> list[str]:
    """Make the tokens of a region at the beginning of its block, and pass them through it. The result is the ordered
    effects in the block."""
    inner = [o for each in block.operations for o in operations(each)]
    present = {t for o in inner for t in (*_own(o), *having.get(callee_of(o) or "", ()))}
    made = {text: Value(Token()) for text in tokens if text in present}
    if made:
        start = [Operation("stablehlo.create_token", [], [token]) for token in made.values()]
        _thread_block(block, dict(made), having)
        block.operations[:0] = start
    return list(made)


def _barrier(
    into: list[Operation], values: Sequence[Value], texts: Sequence[str], tokens: Tokens,
    results: Sequence[Value] | None = None,
) -> list[Value]:  # fmt: skip
    """The values, as `results` if these are given, and the tokens of these effects wait for one another."""
    after = list(results or [Value(v.type) for v in values])
    new = [Value(Token()) for _ in texts]
    operands = [*values, *[tokens[t] for t in texts]]
    into.append(Operation("stablehlo.optimization_barrier", operands, [*after, *new]))
    tokens.update(zip(texts, new, strict=True))
    return after


# ---- a program to run here

_MAKING = ("stablehlo.create_token", "stablehlo.after_all")
_PASSING = (
    *_MAKING, "func.call", "func.return", "stablehlo.optimization_barrier", "stablehlo.return", "stablehlo.while",
    "stablehlo.case", "stablehlo.if",
)  # fmt: skip


def drop_tokens(module: Operation) -> None:
    """Leave out all tokens of a module, in place: effects happen in the order of the program. UnsupportedError for an
    operation that acts with a token itself, such as a custom call."""
    for operation in [*operations(module)]:
        if operation.name not in _PASSING and any(map(_is_token, (*operation.operands, *operation.results))):
            raise UnsupportedError(f"an exported program with {operation.name} on a token of an ordered effect")
        operation.operands[:] = _arrays(operation.operands)
        operation.results = _arrays(operation.results)
        if operation.name == "func.func":
            _drop_from_type(operation)
        for region in operation.regions:
            for block in region.blocks:
                _drop_from_block(block)


def _is_token(value: Value) -> bool:
    return isinstance(value.type, Token)


def _arrays(values: Sequence[Value]) -> list[Value]:
    return [v for v in values if not _is_token(v)]


def _drop_from_type(function: Operation) -> None:
    type_ = function_type(function)
    for name, types in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
        given = function.attributes.get(name)
        if isinstance(given, tuple):
            pairs = zip(given, types, strict=True)
            function.attributes[name] = tuple([each for each, t in pairs if not isinstance(t, Token)])
    kept = (tuple([t for t in types if not isinstance(t, Token)]) for types in (type_.inputs, type_.results))
    function.attributes["function_type"] = TypeAttribute(Function(*kept))


def _drop_from_block(block: Block) -> None:
    if block.argument_locations:
        pairs = zip(block.argument_locations, block.arguments, strict=True)
        block.argument_locations[:] = [place for place, argument in pairs if not _is_token(argument)]
    block.arguments[:] = _arrays(block.arguments)
    block.operations[:] = [o for o in block.operations if o.name not in _MAKING and not _only_tokens(o)]


def _only_tokens(operation: Operation) -> bool:
    return operation.name == "stablehlo.optimization_barrier" and all(map(_is_token, operation.operands))
