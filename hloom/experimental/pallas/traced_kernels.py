"""A kernel, traced once: a computation from the blocks at a point of the grid to the blocks after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autodiff.batching import named_axes
from ...hlo.builder import make_tuple
from ...hlo.effects import effects_of
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation
from ...hlo.support.records import dataclass
from ...lax.parallel import at_places
from ...tracer.aval import ShapedArray
from ...tracer.core import Value
from ...tracer.references.refs import Ref
from ...tracer.settings.context import Override, current_context
from ...tracer.trees import tree
from .grid_points import Point, within
from .user_functions import call, parameters_of, traced

_INDEX = ShapedArray((), np.dtype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A traced kernel. Its parameters: the grid's indices; traced sizes of the grid; prefetched arrays; blocks of
    arguments and of results; scratch memory; captured values. Its results: the blocks and the scratch memory that it
    writes, and references from outside that it writes, as they are afterwards."""

    computation: HloComputation
    written: tuple[int, ...]
    """The numbers of the blocks and, after these, of the scratch memory that it writes."""
    indices: int
    sizes: int
    prefetched: int
    blocks: int
    scratch: int
    captured: tuple[Any, ...]
    """Arrays that functions of the library made, and references from outside."""
    written_outside: tuple[Ref, ...]
    """References from outside that it writes."""

    @property
    def first_block(self) -> int:
        """The number of the first block among the parameters."""
        return self.indices + self.sizes + self.prefetched

    @property
    def first_scratch(self) -> int:
        """The number of the first scratch memory among the parameters."""
        return self.first_block + self.blocks

    @property
    def first_captured(self) -> int:
        """The number of the first captured value among the parameters."""
        return self.first_scratch + self.scratch

    @property
    def acts(self) -> bool:
        """Whether it has side effects, such as printing."""
        return bool(effects_of(self.computation))

    @property
    def used(self) -> frozenset[int]:
        """The numbers of the parameters that it uses."""
        read = {o for i in self.computation.instructions for o in i.operands}
        return frozenset([k for k, p in enumerate(self.computation.parameters) if p in read])


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a kernel, as types and structures of trees."""

    prefetched: tuple[Sequence[ShapedArray], Any]
    inputs: tuple[Sequence[ShapedArray], Any]
    outputs: tuple[Sequence[ShapedArray], Any]
    scratch: tuple[Sequence[ShapedArray], Any]

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of all leaves."""
        return [a for avals, _ in (self.prefetched, self.inputs, self.outputs, self.scratch) for a in avals]

    def unflatten(self, leaves: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Positional arguments with their names for messages, and those by keyword: scratch memory in a dictionary."""
        rest, found = list(leaves), []
        for avals, structure in (self.prefetched, self.inputs, self.outputs, self.scratch):
            found.append(tree.unflatten(structure, rest[: len(avals)]))
            del rest[: len(avals)]
        prefetched, inputs, outputs, scratch = found
        positional = {f"args[{k}]": v for k, v in enumerate([*prefetched, *inputs])}
        if isinstance(outputs, tuple | list):
            positional |= {f"outputs[{k}]": v for k, v in enumerate(outputs)}
        else:
            positional["outputs"] = outputs
        if isinstance(scratch, dict):
            return positional, scratch
        return positional | {f"scratch_shapes[{k}]": v for k, v in enumerate(scratch)}, {}


def trace_kernel(
    kernel: Callable[..., Any], described: str, arguments: Arguments, grid: Sequence[Any], names: Sequence[Any] | None
) -> Kernel:
    """Trace a kernel on blocks.

    described: its name and line, for messages. grid: sizes, None for those that are traced. names: of the grid's axes.
    ValueError if it returns something, or uses arrays from outside.
    """
    count, dynamic = len(grid), sum(n is None for n in grid)

    def flat(values: list[Value]) -> list[Value]:
        ids, sizes = values[:count], iter(values[count : count + dynamic])
        references = [Ref(v) for v in values[count + dynamic :]]
        positional, keywords = arguments.unflatten(references)

        def explained() -> str:
            given = {**positional, **{f"{name}=": v for name, v in keywords.items()}}
            shown = [f"{name} {getattr(v, 'aval', type(v).__name__)}" for name, v in given.items()]
            return (
                f"The kernel function in the pallas_call {described} takes {parameters_of(kernel)}. It is given "
                f"{len(shown)} arguments: {', '.join(shown)}."
            )

        point = Point(ids, [next(sizes) if n is None else n for n in grid])
        with within(point), _named(names, grid), at_places(dict(zip(names or (), ids, strict=False))):
            result = call(kernel, [*positional.values()], keywords, explained)
        if result is not None:
            raise ValueError(
                f"The kernel function in the pallas_call {described} should return None. It returns a PyTree: "
                f"{tree.structure(result)}"
            )
        return [r.current() for r in references[len(arguments.prefetched[0]) :]]

    avals = [*[_INDEX] * (count + dynamic), *arguments.avals]
    found, outside = traced(flat, avals, getattr(kernel, "__name__", "kernel"), keep_references=True)
    if outside:
        types = ", ".join(v.aval.str_short() for v in outside)
        raise ValueError(
            f"The kernel function in the pallas_call {described} captures constants [{types}]. You should pass them as "
            "inputs."
        )
    if names is not None and (used := named_axes(found.computation) & {*names}):
        raise UnsupportedError(
            f"the kernel {described} uses the grid's axis {sorted(map(str, used))[0]} in a collective: the points of a "
            "grid run one after the other"
        )
    first = count + dynamic + len(arguments.prefetched[0])
    computation, written = _changes(found.computation, first, len(arguments.avals) - len(arguments.prefetched[0]))
    return Kernel(
        computation, written, count, dynamic, len(arguments.prefetched[0]),
        len(arguments.inputs[0]) + len(arguments.outputs[0]), len(arguments.scratch[0]), tuple(found.captured),
        tuple(found.written),
    )  # fmt: skip


def _changes(computation: HloComputation, first: int, count: int) -> tuple[HloComputation, tuple[int, ...]]:
    """The computation without those of its first `count` results that are parameters, from number `first` on, as they
    were; and the numbers of the others."""
    results, parameters = computation.root.operands, computation.parameters
    changed = tuple([k for k in range(count) if results[k] is not parameters[first + k]])
    root = make_tuple([*[results[k] for k in changed], *results[count:]])
    kept = tuple([i for i in computation.instructions if i is not computation.root])
    return HloComputation(computation.name, (*kept, root), root), changed


def _named(names: Sequence[Any] | None, grid: Sequence[Any]) -> Override:
    """The grid's names, for `lax.axis_size`."""
    known = zip(names or (), grid, strict=False)
    return Override(axis_names=(*current_context().axis_names, *[(n, s) for n, s in known if isinstance(s, int)]))
