"""The arguments and results of an exported function, before its program is written: structures, types, places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..hlo.ir import HloModule
from ..hlo.sizes import is_symbolic
from ..hlo.support.records import dataclass
from ..hlo.symbolic.arguments import Solution, solve
from ..tracer.aval import FLOAT0
from ..tracer.sharding.shardings import NamedSharding, Sharding
from ..tracer.sharding.shardy import ShardyMeshes, has_shardy_form, with_constraints
from ..tracer.sharding.spmd import named_shardings
from ..tracer.stages import Traced
from ..tracer.trees import tree
from ..tracer.trees.treedef import PyTreeDef
from .paths import argument_names
from .placing import abstract_sharding, stored_rank, text_of


def array_positions(avals: Sequence[Any]) -> list[int]:
    """The positions of the types for which a program has arrays: all but float0."""
    return [k for k, aval in enumerate(avals) if aval.dtype != FLOAT0]


@dataclass(frozen=True, slots=True)
class Interface:
    """Structures and types of arguments and results, with float0 types, which the program does not take."""

    in_tree: PyTreeDef
    in_avals: tuple[Any, ...]
    out_tree: PyTreeDef
    out_avals: tuple[Any, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The positions of the arguments that the program takes."""
        return tuple(array_positions(self.in_avals))

    def result_names(self) -> list[str]:
        """The results in JAX's words: ``result[0]``."""
        return [f"result{tree.keystr(path)}" for path in tree.paths_of_structure(self.out_tree)]

    def solution(self) -> Solution | None:
        """How the program finds the variables of its sizes; None if it has none."""
        if not any(is_symbolic(n) for a in self.in_avals for n in a.shape):
            return None
        names = argument_names(self.in_tree)
        return solve([self.in_avals[k].shape for k in self.kept], [names[k] for k in self.kept])


@dataclass(frozen=True, slots=True)
class Places:
    """How the arguments and results are divided, and over how many devices."""

    ins: tuple[NamedSharding | None, ...]
    outs: tuple[NamedSharding | None, ...]
    devices: int

    def stated(self, program: HloModule, interface: Interface) -> tuple[HloModule, tuple[list[str], list[str]]]:
        """The program, and the shardings of its arguments and results: as Shardy's attributes, if the program has that
        form, else in XLA's words."""
        ins = [(self.ins[k], interface.in_avals[k]) for k in interface.kept]
        outs = list(zip(self.outs, interface.out_avals, strict=True))
        if not has_shardy_form(program, ()):
            return program, ([text_of(*each) for each in ins], [text_of(*each) for each in outs])
        meshes = ShardyMeshes(are_abstract=True)
        given, made = ([meshes.sharding(s, stored_rank(a)) for s, a in pairs] for pairs in (ins, outs))
        return meshes.declare(with_constraints(program, meshes)), (given, made)


def places_of(traced: Traced, interface: Interface) -> Places:
    """The places that the user has said. UnsupportedError for shardings that files do not have."""
    signature = traced._signature
    assert signature.stated is not None, f"{traced} is not from this process"
    ins, outs = signature.stated()
    every = [s for s in (*ins, *outs, *named_shardings(traced._computation)) if s is not None]
    return Places(
        tuple(_abstract(interface.in_avals, ins)),
        tuple(_abstract(interface.out_avals, outs)),
        max([s.num_devices for s in every], default=1),
    )


def _abstract(avals: Sequence[Any], places: Sequence[Sharding | None]) -> Iterator[NamedSharding | None]:
    """The sharding of each array as files have it. places: of the arrays that are not float0; those have none."""
    given = iter(places)
    for aval in avals:
        yield None if aval.dtype == FLOAT0 else abstract_sharding(next(given), aval)
