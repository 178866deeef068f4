"""The IR: instructions in computations in a module. Everything here is immutable; a pass builds a new module.

Instructions and computations are in `instruction.py`. The module is above the text, because it prints itself:

    instruction.py  <-  ops/<family>.py  <-  text/printer.py  <-  ir.py

So `print(module)` and `module.to_text()` are plain methods: they need neither a circular import nor a registration
from above; the printer is loaded when a module is first printed. The first line of the text, which is about the module
and not its computations, is written in this file.
Source: XLA's HloModule.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from .aliases import BufferDonor, InputOutputAlias
from .errors import UnsupportedError
from .instruction import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, post_order
from .layout import Layout
from .metadata import Metadata
from .notebooks import in_notebooks
from .shape import Shape
from .support.lazy import lazy_property
from .support.loading import load
from .support.records import dataclass
from .support.shared_value import SharedValue
from .text.frontend_attributes import frontend_attributes_text
from .text.names import module_name

__all__ = [
    "NO_ATTRIBUTES",
    "Attributes",
    "BufferDonor",
    "HloComputation",
    "HloInstruction",
    "HloModule",
    "InputOutputAlias",
    "Metadata",
    "post_order",
]


@dataclass(frozen=True, eq=False)
class HloModule(SharedValue):
    """A program: the entry computation and, through it, every computation that it calls."""

    name: str
    entry: HloComputation
    input_output_aliases: tuple[InputOutputAlias, ...] = ()
    is_scheduled: bool = False
    entry_parameter_layouts: tuple[Layout | None, ...] = ()
    """The layout in which the caller passes each leaf of the parameters; None, or an empty tuple: the instruction's."""
    frontend_attributes: tuple[tuple[str, str], ...] = ()
    entry_result_layouts: tuple[Layout | None, ...] = ()
    """The layout in which the caller gets each leaf of the result; None, or an empty tuple: the instruction's."""
    replica_count: int = 1
    """How many devices run the program, each on its own data; here there is one."""
    num_partitions: int = 1
    """The number of parts into which the program is split, one for each device; here there is one."""
    buffer_donors: tuple[BufferDonor, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    """Attributes that have no meaning on one CPU: key and text of the value."""

    @lazy_property
    def computations(self) -> tuple[HloComputation, ...]:
        """Every computation, callees before callers, the entry last."""
        order: dict[HloComputation, None] = {}
        _add_called(self.entry, order)
        return tuple(order)

    @lazy_property
    def entry_parameter_shapes(self) -> tuple[Shape, ...]:
        """The parameters' shapes as the caller sees them: `entry_parameter_layouts` override the instructions'."""
        layouts = iter(self.entry_parameter_layouts)
        return tuple(_with_leaf_layouts(p.shape, layouts) for p in self.entry.parameters)

    @lazy_property
    def entry_result_shape(self) -> Shape:
        """The result's shape as the caller sees it: `entry_result_layouts` override the instruction's."""
        return _with_leaf_layouts(self.entry.root.shape, iter(self.entry_result_layouts))

    def instructions(self) -> Iterator[HloInstruction]:
        """All instructions of all computations, callees first."""
        for computation in self.computations:
            yield from computation.instructions

    def to_text(self, *, elide_over: int | None = None, metadata: bool = True) -> str:
        """The module in XLA's HLO syntax. Names that are not identifiers, or not unique, are changed.

        `elide_over`: larger constants are printed as `{...}`. That is for reading; `parse` refuses such text.
        `metadata`: say of each instruction from which line of the user's program it comes.
        """
        printer = load(".text.printer", __package__)
        computations = printer.computation_texts(self.computations, self.entry, elide_over, metadata)
        return "\n\n".join([header_text(self), *computations]) + "\n"

    def as_text(self, dialect: str | None = None, *, metadata: bool = False, debug_info: bool = False) -> str:
        """The module as HLO text, for reading. `metadata`, which JAX calls `debug_info`: with the user's lines.

        UnsupportedError for a `dialect` other than "hlo".
        """
        if dialect not in (None, "hlo"):
            raise UnsupportedError(
                f'an HloModule is written as HLO, as_text() or as_text("hlo"), not in the dialect {dialect!r}; '
                "hloom.hlo.stablehlo.to_text and a lowered function's as_text write StableHLO"
            )
        return self.to_text(metadata=metadata or debug_info)

    def as_hlo_text(self) -> str:
        """The module as HLO text: the name in XLA's own objects (`compiler_ir("hlo")`)."""
        return self.to_text()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        instructions = sum(len(c.instructions) for c in self.computations)
        return f"<HloModule {self.name}: {len(self.computations)} computations, {instructions} instructions>"

    _repr_html_ = in_notebooks

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the text. (The parser is above this file.)"""
        return import_module(".text.parser", __package__).parse, (self.to_text(),)


def _add_called(computation: HloComputation, order: dict[HloComputation, None]) -> None:
    """Append the called computations, then the computation itself. (A function inside of a method that calls itself
    would keep all these alive until the collector finds it.)"""
    if computation in order:
        return
    for called in computation.callees:
        _add_called(called, order)
    order[computation] = None


def _with_leaf_layouts(shape: Shape, layouts: Iterator[Layout | None]) -> Shape:
    if shape.is_token:
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_with_leaf_layouts(element, layouts) for element in shape.tuple_shapes])
    layout = next(layouts, None)
    return shape if layout is None else shape.with_layout(layout)


def header_text(module: HloModule) -> str:
    """`HloModule name, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}, ...`"""
    fields = [f"HloModule {module_name(module.name)}"]
    if module.is_scheduled:
        fields.append("is_scheduled=true")
    if module.input_output_aliases:
        aliases = ", ".join(_alias_text(alias) for alias in module.input_output_aliases)
        fields.append(f"input_output_alias={{ {aliases} }}")
    if module.buffer_donors:
        donors = ", ".join(f"({d.parameter}, {_index_text(d.parameter_index)})" for d in module.buffer_donors)
        fields.append(f"buffer_donor={{ {donors} }}")
    parameters = ", ".join(shape.to_text() for shape in module.entry_parameter_shapes)
    fields.append(f"entry_computation_layout={{({parameters})->{module.entry_result_shape.to_text()}}}")
    if module.replica_count != 1:
        fields.append(f"replica_count={module.replica_count}")
    if module.num_partitions != 1:
        fields.append(f"num_partitions={module.num_partitions}")
    fields += [f"{key}={text}" for key, text in module.annotations]
    if module.frontend_attributes:
        fields.append(frontend_attributes_text(module.frontend_attributes))
    return ", ".join(fields)


def _alias_text(alias: InputOutputAlias) -> str:
    kind = "must-alias" if alias.must_alias else "may-alias"
    return f"{_index_text(alias.output_index)}: ({alias.parameter}, {_index_text(alias.parameter_index)}, {kind})"


def _index_text(index: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, index))}}}"
