"""Run passes once for all modules that differ in sizes alone: a network with another batch is simplified and fused as
before.

The passes run on the first module of a form with sizes that are observed (`support/observed.py`). Its ordinary
constants are opaque, or observed too (`analyses/observed_literals.py`). The new entry computation is kept as a
template, in terms of the instructions of the module: most of its instructions are these, or copies of them. Another
module of the form, whose sizes and constants get the same answers, gets its entry computation from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

from ..analyses.forms import ModuleForm, OpaqueConstant, sizes_of, with_sizes
from ..analyses.observed_literals import ObservedLiteral
from ..analyses.size_classes import Classes, classes_of
from ..builder import make_computation, make_tuple
from ..custom_calls import is_built_in
from ..ir import NO_ATTRIBUTES, HloComputation, HloInstruction, HloModule
from ..literal import Literal
from ..opcode import Opcode
from ..ops.structure import ConstantAttributes
from ..shape import Shape
from ..support.kept import Kept
from ..support.observed import Observations, Observed, ObservedSize, Recalled, Trial

T = TypeVar("T")

LARGE = 1 << 13
"""Instructions of a module that is compiled alone: it seldom gets another size, and a template takes memory."""
_MOST_INSTRUCTIONS = 1 << 15
"""Instructions of all modules with templates, together: some megabytes."""
_known: Kept[tuple[object, ...], tuple[Classes, Recalled[Any]]] = Kept(_MOST_INSTRUCTIONS)
"""The classes of sizes, and templates with what else belongs to them, by form and options."""
_alike: Kept[int, int] = Kept(1 << 12)
"""The first form of those that differ in integer constants alone, by hashes of both. The others are left alone: their
constants follow from sizes, so that each other size has another form, and to observe one takes half as long again."""


def entry_by_form(
    module: HloModule, options: object, make: Callable[[HloModule], HloComputation]
) -> HloComputation:
    """The entry computation that `make` makes for a module; it may look at all of it but names and ordinary constants.
    `options`: all else that it depends on."""

    def run(observed: HloModule) -> tuple[HloModule, None]:
        return replace(observed, entry=make(observed)), None

    found = by_form(module, options, run)
    return make(module) if found is None else found[0]


def by_form(
    module: HloModule, options: object, run: Callable[[HloModule], tuple[HloModule, T]], *, with_constants: bool = False
) -> tuple[HloComputation, T] | None:
    """The entry computation of the module that `run` makes of one, and what else it returns, perhaps of a module of the
    same form; None if that cannot be found out. `run` may look at all of a module but names, and at the numbers of
    ordinary constants only `with_constants`. `options`: all else that it depends on."""
    computations = module.computations
    count = sum([len(c.instructions) for c in computations])
    if count > LARGE or any(Opcode.CUSTOM_CALL in c.opcodes and _calls_users(c) for c in computations):
        return None
    form = ModuleForm(module)
    if not form.is_dense:
        return None

    key = options, *form.structure
    known = _known.get(key)
    if known is None:
        alike, own = hash((options, *form.without_integers())), hash(key)
        first = _alike.get(alike)
        if first is None:
            _alike.keep(alike, own)
        elif first != own:
            return None
        known = _known.keep(key, (classes_of(computations), Recalled()), count)
    classes, templates = known
    if not classes.hold(form.sizes):
        return None
    sizes = classes.sizes(form.sizes)
    values: tuple[Any, ...] = (*sizes, *form.constants) if with_constants else sizes

    @cache
    def trial(seen: Observations) -> Trial:
        return Trial(seen, values)

    def observe() -> tuple[Observations, tuple[Template, T]]:
        seen = Observations(values)
        constants: dict[Literal, Any] = {
            literal: ObservedLiteral(literal, len(sizes) + k, seen) if with_constants else OpaqueConstant(k)
            for k, literal in enumerate(form.constants)
        }
        observed = _observed(module, classes.places(seen.sizes()), constants)
        new, more = run(observed)
        return seen, (Template(observed, new), more)

    found = templates.find(trial, observe)
    if found is None:
        return None
    seen, (template, more) = found
    return template.of(module, trial(seen)), more


def _calls_users(computation: HloComputation) -> bool:
    """True if a computation calls a user's function, perhaps by an object that a key would keep alive."""
    calls = [i for i in computation.instructions if i.opcode is Opcode.CUSTOM_CALL]
    return not all(is_built_in(i.attributes.custom_call_target) for i in calls)


def _observed(module: HloModule, sizes: Iterator[Any], constants: Mapping[Literal, Any]) -> HloModule:
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
    """The entry computation of a new module, in terms of the instructions of an observed one. A number stands for what
    instruction number k has. A TypeError if the new module is more than that."""

    def __init__(self, module: HloModule, new: HloModule) -> None:
        if any(getattr(new, f.name) != getattr(module, f.name) for f in fields(module) if f.name != "entry"):
            raise TypeError("other properties of the module than its entry changed")
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
        for computation in new.computations:
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
        metadata: Any = self._metadata.get(id(i.metadata), i.metadata)
        if type(metadata) is not int and metadata is not None:
            raise TypeError("new metadata, which another program does not have")
        return (
            i.opcode, self._shape(i.shape), tuple([position[o] for o in i.operands]), attributes,
            self._names.get(id(i.name), i.name), metadata, i.frontend_attributes, i.annotations,
        )  # fmt: skip

    def _shape(self, shape: Shape) -> Any:
        number = self._shapes.get(id(shape))
        if number is not None:
            return number
        if shape.tuple_shapes is not None and not shape.is_token:
            return tuple(map(self._shape, shape.tuple_shapes))
        if shape.is_array and not shape.array_layout.is_row_major:
            raise TypeError("a layout may depend on the sizes")
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
        _require_plain(empty)

        def calling(done: list[HloComputation], _: Trial) -> Any:
            numbers = iter(called)
            return empty.map_computations(lambda _: done[next(numbers)])

        return _Maker(calling)
    if type(attributes) is ConstantAttributes:
        literal = attributes.literal
        if type(literal) is not ObservedLiteral:
            return attributes
        return _Maker(lambda _, trial: ConstantAttributes(trial.number(literal)))
    if not _is_observed(attributes):
        return attributes
    _require_plain(sizes_of(attributes, lambda _: 1))
    return _Maker(lambda _, trial: sizes_of(attributes, trial.number))


def _require_plain(attributes: Any) -> None:
    if _is_observed(attributes):
        raise TypeError("a size in an attribute that has no place for sizes")


def _is_observed(value: Any) -> bool:
    """True if something in it is observed."""
    if isinstance(value, tuple):
        return any(map(_is_observed, value))
    if is_dataclass(value):
        return any(_is_observed(getattr(value, f.name)) for f in fields(value))
    return isinstance(value, Observed)


def _shape_of(shape: Any, inputs: Sequence[HloInstruction], trial: Trial) -> Shape:
    if type(shape) is int:
        return inputs[shape].shape
    if type(shape) is tuple:
        return Shape.tuple([_shape_of(part, inputs, trial) for part in shape])
    if shape.is_token or not any(type(d) is ObservedSize for d in shape.dimensions):
        return shape  # type: ignore[no-any-return]
    return Shape.array(shape.element, [trial.number(d) for d in shape.dimensions])
