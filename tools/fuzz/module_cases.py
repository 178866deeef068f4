"""Cases of HLO modules: well-typed by construction, every family of operations, every element type.

`ModuleDrawer` grows what `tests/support/nest_modules.py` does (types, sizes 0 and 1, loops, branches, calls) by
operations out of the table of op cases: a case gives opcode, attributes and types; earlier values, brought to its
operands' types, are its operands. So an operation that the table has is drawn here without further work.
"""

from __future__ import annotations

import random

import numpy as np
from hloom.hlo.bisection.shrink import Specimen, shrunk
from hloom.hlo.builder import (
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import HloError, HloParseError
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.movement import BroadcastAttributes
from hloom.hlo.ops.structure import FusionAttributes, FusionKind
from hloom.hlo.shape import Shape
from hloom.hlo.text.parser import parse

from hloom.backend_check.op_case import Array, Token
from hloom.backend_check.op_table import CASES, OpCase, Operand
from hloom.backend_check.op_values import any_value, finite
from support.nest_modules import SIZES, WIDE, NestDrawer
from support.random_modules import Drawer, random_module

from . import data, module_runs
from .case import Case, NDArray, Outcome, Stage, found
from .known import excluded_case, excluded_type
from .minimise import Shows, fewer_options
from .text_cases import minimised as minimised_text
from .text_cases import not_printed_as_read, read

use_oracle = False
"""Whether to compare with JAX; the child sets it."""
SECONDS = 600.0
"""For the shrinker: the search has a clock of its own."""
E = ElementType
O = Opcode  # noqa: E741

_NOT_DRAWN = frozenset(
    {O.PARAMETER, O.RNG, O.RNG_GET_AND_UPDATE_STATE, O.CUSTOM_CALL, O.INFEED, O.OUTFEED, O.SEND, O.RECV, O.RECV_DONE,
     O.SEND_DONE, O.BITCAST, O.RAGGED_ALL_TO_ALL}
)  # fmt: skip
"""Opcodes without a repeatable result, with a meaning only after layouts are assigned, or that refuse some numbers."""


def _is_drawn(case: OpCase) -> bool:
    if case.opcode in _NOT_DRAWN or excluded_case(case):
        return False
    if getattr(case.attributes, "has_dynamic_root", False):  # refuses all numbers but its members'
        return False
    shapes = [a.shape for a in case.arrays] + [s for s in case.result.leaves() if not s.is_token]
    return all(s.num_elements <= 3000 for s in shapes)


TABLE: dict[Opcode, list[OpCase]] = {}
for _case in CASES:
    if _is_drawn(_case):
        TABLE.setdefault(_case.opcode, []).append(_case)


class ModuleDrawer(NestDrawer):
    """Grows one computation."""

    def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.3:
            self.from_table()
        elif kind < 0.35:
            self.fusion()
        elif kind < 0.42:
            self.borrowed()
        elif kind < 0.48:
            self.rng.choice([self.dynamic_slice, self.dynamic_update_slice, self.in_place])()
        else:
            super().step()

    def inner(self, leaves: list[HloInstruction], steps: int) -> ModuleDrawer:
        drawer = ModuleDrawer(self.rng, self.depth - 1, self.sizes, self.poor)
        for leaf in leaves:
            drawer.add(leaf, rough=True)
        for _ in range(steps):
            drawer.step()
        return drawer

    def reducer(self, element: ElementType) -> tuple[HloComputation, HloInstruction]:
        """Half of the init values are neutral, as XLA wants them."""
        computation, init = super().reducer(element)
        opcode = computation.root.opcode
        if self.rng.random() < 0.5 or opcode not in (O.MAXIMUM, O.MINIMUM) or element is E.PRED:
            return computation, init
        low, high = element.limits if element.is_integral else (-np.inf, np.inf)
        return computation, make_constant(np.asarray(low if opcode is O.MAXIMUM else high, element.dtype))

    def from_table(self) -> None:
        """An operation out of the table, on earlier values."""
        case = self.rng.choice(TABLE[self.rng.choice(list(TABLE))])
        operands = [self.brought(operand, position) for position, operand in enumerate(case.operands)]
        result = make_instruction(case.opcode, operands, case.attributes, case.result)
        self.keep(result)

    def keep(self, result: HloInstruction) -> None:
        """Arrays become values; so do those in tuples."""
        if result.shape.is_token:
            return
        if not result.shape.is_tuple:
            self.add(result, rough=True)
            return
        for k in range(len(result.shape.elements)):
            self.keep(make_get_tuple_element(result, k))

    def brought(self, operand: Operand, position: int) -> HloInstruction:
        """An operand of a case: an earlier value in its type and dimensions, or a constant with values of its kind."""
        if isinstance(operand, Token):
            return make_instruction(O.AFTER_ALL)
        if not isinstance(operand, Array):
            return make_tuple([self.brought(o, position) for o in operand])
        shape = operand.shape
        same = [v for v in self.values if v.shape.compatible(shape)]
        if same and self.rng.random() < 0.8:
            return self.rng.choice(same)
        if self.values and self.rng.random() < 0.5:
            made = self.adapted(self.rng.choice(self.values), shape)
            if made is not None:
                return made
        generator = np.random.default_rng(self.rng.randrange(1 << 30))
        values = operand.values(shape.element, shape.dimensions, position, generator)
        return self.add(make_constant(np.asarray(values)), True)

    def adapted(self, value: HloInstruction, shape: Shape) -> HloInstruction | None:
        """`value` as an array of this shape: converted, and reshaped or its first element broadcast."""
        if value.shape.element is not shape.element:
            if value.shape.element.is_complex and not shape.element.is_complex:
                return None
            value = make_instruction(O.CONVERT, [value], shape=value.shape.with_element_type(shape.element))
        if value.shape.num_elements == shape.num_elements:
            return make_instruction(O.RESHAPE, [value], shape=shape)
        if value.shape.is_scalar:
            return make_instruction(O.BROADCAST, [value], BroadcastAttributes(()), shape)
        return None

    def fusion(self) -> None:
        """A computation of a few steps as a fusion instruction."""
        operands = [self.any() for _ in range(self.rng.randint(1, 3))]
        parameters = [make_parameter(i, x.shape, "p") for i, x in enumerate(operands)]
        drawer = NestDrawer(self.rng, 0, self.sizes, True)
        for parameter in parameters:
            drawer.add(parameter, rough=True)
        for _ in range(self.rng.randint(1, 4)):
            drawer.step()
        body = make_computation("fused", drawer.values[-1], parameters)
        kind = self.rng.choice([FusionKind.LOOP, FusionKind.INPUT, FusionKind.OUTPUT, FusionKind.CUSTOM])
        self.keep(make_instruction(O.FUSION, operands, FusionAttributes(kind, body)))

    def borrowed(self) -> None:
        """Gathers, scatters, sorts and the like of `random_modules`, which wants values of its own three types."""
        drawer = Drawer(self.rng, 0)
        drawer.values = [v for v in self.values if v.shape.element in (E.F32, E.S32, E.PRED) and v.shape.rank <= 3
                         and 0 not in v.shape.dimensions and v.shape.num_elements <= 200]  # fmt: skip
        if not drawer.values:
            return
        before = len(drawer.values)
        self.rng.choice([drawer.gather, drawer.scatter, drawer.sort, drawer.topk])()
        for value in drawer.values[before:]:
            self.add(value, rough=True)


def drawn_module(rng: random.Random) -> HloModule:
    """A module; now and then one of the tests' generator."""
    if rng.random() < 0.15:
        return random_module(rng, rng.randint(4, 20), rng.randint(0, 3))
    sizes = rng.sample(SIZES, rng.randint(1, 3))
    if rng.random() < 0.15:
        sizes.append(rng.choice(WIDE))
    if rng.random() < 0.6:
        sizes = [s for s in sizes if s] or [5]
    drawer = ModuleDrawer(rng, rng.choice([0, 1, 1, 2, 3]), sizes, rng.random() < 0.4)
    parameters: list[HloInstruction] = []
    for number in range(rng.randint(0, 2)):
        index = Shape.array(rng.choice((E.S32, E.S32, E.U8, E.S64)))
        parameters.append(make_parameter(number, index, f"index.{number}"))
    for number in range(len(parameters), len(parameters) + rng.randint(1, 4)):
        element = rng.choice([E.F32, E.F32, E.F32, E.S32, rng.choice(list(E))])
        shape = Shape.array(element, drawer.dimensions(rng.choice((None, None, None, 0))))
        if excluded_type(element):
            shape = shape.with_element_type(E.F32)
        parameters.append(make_parameter(number, shape, f"argument.{number}"))
        drawer.values = list(parameters)  # so that sizes agree
    for _ in range(rng.randint(3, 18)):
        drawer.step()
    results = drawer.values[-2:] + rng.choices(drawer.values, k=rng.choice((0, 1, 2, 4)))
    root = make_tuple(results) if rng.random() < 0.9 else results[0]
    return make_module("fuzz", make_computation("main", root, parameters))


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    while True:
        try:
            module = drawn_module(rng)
            break
        except HloError:
            continue  # sizes that do not fit; the next numbers of the same generator give another one
    generator = np.random.default_rng(seed)
    values = rng.choice([any_value, finite, finite])
    inputs = tuple(
        np.asarray(values(leaf.element, leaf.dimensions, k % 2, generator))
        for k, leaf in enumerate(leaf for p in module.entry.parameters for leaf in p.shape.leaves())
    )
    options = module_runs.random_options(rng)
    options["xla"] = rng.random() < 0.5
    return Case("hlo", seed, module.to_text(), inputs, options)


def check(case: Case, stage: Stage) -> Outcome:
    """Text, verifier, and all ways to run it."""
    stage("text")
    try:
        module = read(case.program)
    except HloParseError as error:
        return found(f"text: {type(error).__name__} {error.label}", f"a drawn module is refused: {error}")
    difference = not_printed_as_read(module)
    if difference:
        return found("text: not read as it was printed", difference)
    with_xla = use_oracle and bool(case.options.get("xla"))
    return module_runs.run(module, case.inputs, case.options, stage, seed=case.seed, with_xla=with_xla)


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data, in memory that held something else."""
    flavours, inputs = data.another(case.inputs, case.seed, number)
    return case.but(data=number, inputs=inputs, options=module_runs.other_run(case.options, flavours, number))


def minimised(case: Case, shows: Shows) -> Case:
    """Fewer options, then the shrinker of `hloom bisect`; if the program cannot be evaluated, fewer lines."""
    case = fewer_options(case, shows)
    best = case

    def still(module: HloModule, arguments: list[NDArray]) -> bool:
        nonlocal best
        candidate = case.but(program=module.to_text(), inputs=tuple(arguments))
        if not shows(candidate):
            return False
        best = candidate
        return True

    try:
        shrunk(Specimen(parse(case.program), list(case.inputs)), still, SECONDS)
    except HloError:
        return minimised_text(case, shows)
    return best
