"""Random modules of the kind that normalisations and their gradients are: element-wise work on arrays of one shape,
reductions over any of its dimensions, and computations on their results broadcast back."""

from __future__ import annotations

import math
import random

import numpy as np
from hloom.hlo.builder import (
    make_computation,
    make_constant,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.movement import BroadcastAttributes
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.shape import Shape

SIZES = (1, 2, 3, 8, 16, 17, 24, 40)
E = ElementType
TYPES = (E.F32, E.F32, E.F64, E.S32, E.U8, E.BF16, E.C64)
Kept = tuple[int, ...]


def reducer(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """A reducer that applies a binary op."""
    x, y = (make_parameter(i, Shape.array(element_type), n) for i, n in enumerate("xy"))
    return make_computation(opcode.value, make_instruction(opcode, [x, y]), [x, y])


def reduction_module(rng: random.Random, steps: int = 12) -> HloModule:
    """A module with 2 or 3 parameters of one shape, perhaps one of a row or a column, and up to 8 results."""
    element = rng.choice(TYPES)
    rank = rng.choice((2, 2, 3))
    dimensions = tuple(rng.choice(SIZES) for _ in range(rank))
    if rng.random() < 0.05:
        dimensions = (*dimensions[:-1], 0) if rng.random() < 0.5 else (0, *dimensions[1:])
    everywhere = tuple(range(rank))
    parameters = [make_parameter(k, Shape.array(element, dimensions), f"x{k}") for k in range(rng.choice((2, 3)))]
    values: list[tuple[HloInstruction, Kept]] = [(p, everywhere) for p in parameters]
    if rng.random() < 0.5:
        kept = (rng.randrange(rank),)
        vector = make_parameter(len(parameters), Shape.array(element, [dimensions[d] for d in kept]), "v")
        parameters.append(vector)
        values.append((vector, kept))
    binary = [Opcode.ADD, Opcode.SUBTRACT]
    if not element.is_complex:
        binary += [Opcode.MAXIMUM, Opcode.MINIMUM]
    sums = [Opcode.ADD] if element.is_complex else [Opcode.MAXIMUM, Opcode.MINIMUM]
    if not element.is_complex and element is not ElementType.BF16:  # sums of the others depend on the order too much
        sums += [Opcode.ADD, Opcode.ADD]
    along = [tuple(sorted(rng.sample(everywhere, rng.randint(1, rank - (rng.random() < 0.8))))) for _ in range(2)]
    for _ in range(steps):
        full = [v for v, k in values if k == everywhere]
        small = [(v, k) for v, k in values if k != everywhere]
        draw = rng.random()
        if draw < 0.4:
            value, gone = rng.choice(full[-4:]), rng.choice(along)
            opcode = rng.choice(sums)
            start = make_constant(np.asarray(opcode is not Opcode.ADD, element.dtype))
            new = make_instruction(Opcode.REDUCE, (value, start), ReduceAttributes(gone, reducer(opcode, element)))
            if opcode is Opcode.ADD and element is not ElementType.U8:  # values stay small, and whole numbers exact
                count = np.asarray(max(1, math.prod(dimensions[d] for d in gone)), element.dtype)
                wide = make_instruction(
                    Opcode.BROADCAST, (make_constant(count),), BroadcastAttributes(()), new.shape
                )
                new = make_instruction(Opcode.DIVIDE, (new, wide))
            kept = tuple(d for d in everywhere if d not in gone)
        elif draw < 0.7 and small:
            value, kept = rng.choice(small[-3:])
            shape = Shape.array(element, dimensions)
            wide = make_instruction(Opcode.BROADCAST, (value,), BroadcastAttributes(kept), shape)
            new, kept = make_instruction(rng.choice(binary), (rng.choice(full[-4:]), wide)), everywhere
        elif draw < 0.85 and element.is_floating:
            value, kept = rng.choice(values[-6:])
            new = make_instruction(rng.choice((Opcode.TANH, Opcode.NEGATE, Opcode.SIN)), (value,))
        else:
            value, kept = rng.choice(values)
            new = make_instruction(rng.choice(binary), (value, rng.choice([v for v, k in values if k == kept])))
        values.append((new, kept))
    computed = [v for v, _ in values if v.opcode is not Opcode.PARAMETER]
    results = [computed[-1], *rng.sample(computed[:-1], rng.randint(1, min(7, len(computed) - 1)))]
    return make_module("reductions", make_computation("main", make_tuple(results), parameters))

