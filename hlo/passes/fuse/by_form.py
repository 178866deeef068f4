"""Fuse once for all modules that differ in sizes alone: a network with another batch is fused as before.

The first module of a form is fused with sizes that are observed (`support/observed.py`) and with opaque constants. The
new entry computation is kept as a template, in terms of the instructions of the module: most of a fused computation
are copies of these. Another module of the form, whose sizes get the same answers, gets its entry computation from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from ...analyses.forms import ModuleForm, OpaqueConstant, sizes_of, with_sizes
from ...analyses.size_classes import Classes, classes_of
from ...builder import make_computation, make_tuple
from ...custom_calls import is_built_in
from ...ir import NO_ATTRIBUTES, HloComputation, HloInstruction, HloModule
from ...literal import Literal
from ...opcode import Opcode
from ...shape import Shape
from ...support.kept import Kept
from ...support.observed import Observations, ObservedSize, Recalled, Trial

LARGE = 1 << 13
"""Instructions of a module that is fused alone: it is seldom compiled for another size, and a template takes memory."""
_MOST_INSTRUCTIONS = 1 << 15
"""Instructions of all modules with templates, together: some megabytes."""
_known: Kept[tuple[object, ...], tuple[Classes, Recalled[Template]]] = Kept(_MOST_INSTRUCTIONS)
"""The classes of sizes and the templates, by form and options."""


def entry_by_form(
    module: HloModule, options: object, make: Callable[[HloModule], HloComputation]
) -> HloComputation:
    """The entry computation that `make` makes for a module; it may look at all of it but names. `options`: all else
    that it depends on."""
    computations = module.computations
    count = sum([len(c.instructions) for c in computations])
    if count > LARGE or any(Opcode.CUSTOM_CALL in c.opcodes and _calls_users(c) for c in computations):
        return make(module)
    form = ModuleForm(module)
    if not form.is_dense:
        return make(module)

    key = options, *form.structure
    known = _known.get(key)
    if known is None:
        known = _known.keep(key, (classes_of(computations), Recalled()), count)
    classes, templates = known
    if not classes.hold(form.sizes):
        return make(module)
    sizes = classes.sizes(form.sizes)

    @cache
    def trial(seen: Observations) -> Trial:
        return Trial(seen, sizes)

    def observe() -> tuple[Observations, Template]:
        seen = Observations(sizes)
        observed = _observed(module, classes.places(seen.sizes()), form.constants)
        return seen, Template(observed, make(observed))

    found = templates.find(trial, observe)
    if found is None:
        return make(module)
    seen, template = found
    return template.of(module, trial(seen))


def _calls_users(computation: HloComputation) -> bool:
    """True if a computation calls a user's function, perhaps by an object that a key would keep alive."""
    calls = [i for i in computation.instructions if i.opcode is Opcode.CUSTOM_CALL]
    return not all(is_built_in(i.attributes.custom_call_target) for i in calls)


def _observed(module: HloModule, sizes: Iterator[Any], ordinary: Sequence[Literal]) -> HloModule:
    constants = {literal: OpaqueConstant(k) for k, literal in enumerate(ordinary)}
    done: dict[HloComputation, HloComputation] = {}
    for computation in module.computations:
        done[computation] = with_sizes(computation, sizes, constants, done)
    return replace(module, entry=done[module.entry])


class _Computation(NamedTuple):
    name: str | int
    rows: list[Any]
    """A number is the instruction itself."""
    root: int


class Template:
    """An entry computation, in terms of the instructions of a module. A number stands for what instruction number k
    has."""

    def __init__(self, module: HloModule, entry: HloComputation) -> None:
        inputs = [*module.instructions()]
        self._same = {instruction: k for k, instruction in enumerate(inputs)}
        self._shapes = _numbers([i.shape for i in inputs])
        self._attributes = _numbers([i.attributes for i in inputs])
        self._names = _numbers([i.name for i in inputs])
        self._metadata = _numbers([i.metadata for i in inputs])
        own = {computation: k for k, computation in enumerate(module.computations)}
        names = _numbers([computation.name for computation in module.computations])
        self._computations: list[int | _Computation] = []
        """A number: the computation of the module."""
        made: dict[HloComputation, int] = {}
        for computation in replace(module, entry=entry).computations:
            if computation in own:
                self._computations.append(own[computation])
            else:
                position: dict[HloInstruction, int] = {}
                rows = []
                for i in computation.instructions:
                    rows.append(self._row(i, position, made))
                    position[i] = len(position)
                name = names.get(id(computation.name), computation.name)
                self._computations.append(_Computation(name, rows, position[computation.root]))
            made[computation] = len(made)
        del self._same, self._shapes, self._attributes, self._names, self._metadata

    def _row(self, i: HloInstruction, position: dict[HloInstruction, int], made: dict[HloComputation, int]) -> Any:
        same = self._same.get(i)
        if same is not None:
            return same
        attributes: Any = i.attributes
        if attributes is not NO_ATTRIBUTES:
            number = self._attributes.get(id(attributes))
            attributes = _attributes(attributes, made) if number is None else number
        return (
            i.opcode, self._shape(i.shape), tuple([position[o] for o in i.operands]), attributes,
            self._names.get(id(i.name), i.name), self._metadata.get(id(i.metadata), i.metadata), i.frontend_attributes,
            i.annotations,
        )  # fmt: skip

    def _shape(self, shape: Shape) -> Any:
        number = self._shapes.get(id(shape))
        if number is not None:
            return number
        if shape.tuple_shapes is not None:
            return tuple(map(self._shape, shape.tuple_shapes))
        return shape

    def of(self, module: HloModule, trial: Trial) -> HloComputation:
        """The entry computation of a module of the form."""
        own, inputs = module.computations, [*module.instructions()]
        done: list[HloComputation] = []
        for computation in self._computations:
            if isinstance(computation, int):
                done.append(own[computation])
                continue
            name, rows, root = computation
            made: list[HloInstruction] = []
            for row in rows:
                if type(row) is int:
                    made.append(inputs[row])
                    continue
                opcode, shape, operands, attributes, own_name, metadata, *rest = row
                if type(attributes) is int:
                    attributes = inputs[attributes].attributes
                elif type(attributes) is _Maker:
                    attributes = attributes.make(done, trial)
                made.append(HloInstruction(
                    opcode, inputs[shape].shape if type(shape) is int else _shape_of(shape, inputs, trial),
                    tuple([made[k] for k in operands]), attributes,
                    inputs[own_name].name if type(own_name) is int else own_name,
                    inputs[metadata].metadata if type(metadata) is int else metadata, *rest,
                ))  # fmt: skip
            done.append(HloComputation(own[name].name if isinstance(name, int) else name, tuple(made), made[root]))
        return done[-1]


def _numbers(objects: Sequence[object]) -> dict[int, int]:
    """The number of the first place of each object, by its identity; not of those that all instructions may have."""
    found: dict[int, int] = {}
    for k, each in enumerate(objects):
        if each is not None and each is not NO_ATTRIBUTES and each != "":
            found.setdefault(id(each), k)
    return found


class _Maker:
    """Attributes that are made for each module."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[list[HloComputation], Trial], Any]) -> None:
        self.make = make


_NOTHING = make_computation("nothing", make_tuple(()))


def _attributes(attributes: Any, made: dict[HloComputation, int]) -> Any:
    if called := [made[computation] for computation in attributes.called_computations()]:
        empty = attributes.map_computations(lambda _: _NOTHING)  # the observed computations are not kept

        def calling(done: list[HloComputation], _: Trial) -> Any:
            numbers = iter(called)
            return empty.map_computations(lambda _: done[next(numbers)])

        return _Maker(calling)
    probe = sizes_of(attributes, lambda size: size)
    return attributes if probe is attributes else _Maker(lambda _, trial: sizes_of(attributes, trial.number))


def _shape_of(shape: Any, inputs: Sequence[HloInstruction], trial: Trial) -> Shape:
    if type(shape) is int:
        return inputs[shape].shape
    if type(shape) is tuple:
        return Shape.tuple([_shape_of(part, inputs, trial) for part in shape])
    if not any(type(d) is ObservedSize for d in shape.dimensions):
        return shape  # type: ignore[no-any-return]
    return Shape.array(shape.element, [trial.number(d) for d in shape.dimensions])
