"""Compile long operations as functions of the module: once, however often a kernel calls them.

Each scalar function has a version for each vector width, declared to LLVM as in `slow_path.py`, so that loops that call
it are still vectorised. The vector version is a loop over the lanes with the operation in it. LLVM vectorises it first,
so that one iteration is left, and no memory:

    define internal <8 x float> @"exp_0.v8"(<8 x float> %x)
        for each lane: result[lane] = exp(x[lane])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from .slow_path import add_attribute, keep, pure_function, variants_of, widths_of

Emit = Callable[[Any, list[Any]], Any]
"""emit(builder, values): the operation's result."""

_I64 = ir.IntType(64)
_FLOATS = ir.FloatType(), ir.DoubleType()


class OutlinedFunction:
    """An operation as a function of the module.

    `types`: of its arguments. `in_loops`: loops call it, for which it needs vector versions. `attributes`: of the
    functions that work on vectors.
    """

    def __init__(
        self, module: Any, name: str, emit: Emit, types: Sequence[Any], returned: Any, in_loops: bool,
        attributes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._scalar = pure_function(module, name, types, returned)
        builder = ir.IRBuilder(self._scalar.append_basic_block("entry"))
        builder.ret(emit(builder, list(self._scalar.args)))
        self._variants = ""
        if in_loops and all(type_ in _FLOATS for type_ in (*types, returned)):
            widths = widths_of(module)[: 1 if ir.DoubleType() in (*types, returned) else 2]
            keep(module, [_vector_version(self._scalar, width, emit, attributes) for width in widths])
            self._variants = variants_of(name, len(types), widths)

    def call(self, builder: Any, arguments: Sequence[Any]) -> Any:
        """A call of the function, with the attributes that let LLVM call a vector version instead."""
        call = builder.call(self._scalar, arguments)
        if self._variants:
            add_attribute(call, self._variants)
        return call


def _vector_version(scalar: Any, width: int, emit: Emit, attributes: Sequence[str]) -> Any:
    vectors = [ir.VectorType(argument.type, width) for argument in scalar.args]
    returned = ir.VectorType(scalar.function_type.return_type, width)
    function = pure_function(scalar.module, f"{scalar.name}.v{width}", vectors, returned)
    for attribute in attributes:
        add_attribute(function, attribute)
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "lane", "done"))
    builder = ir.IRBuilder(entry)
    slots = [builder.alloca(type_) for type_ in (*vectors, returned)]
    for slot, argument in zip(slots, function.args):
        builder.store(argument, slot)
    first = [builder.bitcast(slot, slot.type.pointee.element.as_pointer()) for slot in slots]
    builder.branch(loop)

    builder.position_at_end(loop)
    lane = builder.phi(_I64)
    lane.add_incoming(ir.Constant(_I64, 0), entry)
    value = emit(builder, [builder.load(builder.gep(pointer, [lane])) for pointer in first[:-1]])
    builder.store(value, builder.gep(first[-1], [lane]))
    following = builder.add(lane, ir.Constant(_I64, 1))
    lane.add_incoming(following, builder.block)
    again = builder.cbranch(builder.icmp_unsigned("<", following, ir.Constant(_I64, width)), loop, done)
    again.set_metadata("llvm.loop", _vectorised_by(scalar.module, width))

    builder.position_at_end(done)
    builder.ret(builder.load(slots[-1]))
    return function


def _vectorised_by(module: Any, width: int) -> Any:
    """The metadata of a loop of `width` iterations that become one; it must not be unrolled before."""
    i1, i32 = ir.IntType(1), ir.IntType(32)
    hints: list[tuple[Any, ...]] = [
        ("llvm.loop.unroll.disable",),
        ("llvm.loop.vectorize.width", ir.Constant(i32, width)),
        ("llvm.loop.interleave.count", ir.Constant(i32, 1)),
        ("llvm.loop.vectorize.enable", ir.Constant(i1, 1)),
    ]
    node = ir.values.MDValue(module, [], name=str(len(module.metadata)))
    node.operands = (node, *map(module.add_metadata, hints))
    return node
