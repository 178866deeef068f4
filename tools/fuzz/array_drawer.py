"""Grows array programs: one statement after the other, each of types that the library infers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hloom.hlo.errors import UnsupportedError

import hloom
import hloom.numpy

from .array_edges import ALL
from .array_programs import Block, Statement, Var, compiled, namespace_of, to_source, without_dead
from .array_statements import WITH_BLOCKS, Draft, Family, Values
from .case import dtype_named
from .known import excluded_statement

HLOOM = namespace_of(hloom, hloom.numpy, hloom.lax, hloom.nn)
HAS_VMAP = hasattr(hloom, "vmap")
LARGEST = 4000
"""Elements of a statement's results."""


class Ends(Exception):
    """The program ends with a statement that the library refuses: JAX says whether it should."""


class ProgramDrawer:
    """Grows one block. `scope` has the types of all names that are visible."""

    def __init__(
        self, rng: random.Random, parameters: Sequence[Var], depth: int, names: dict[str, int], x64: bool,
        differentiable: bool = False, outer: Sequence[Var] = (),
    ) -> None:  # fmt: skip
        self.rng, self.depth, self.names, self.x64 = rng, depth, names, x64
        self.differentiable = differentiable
        self.values = [*outer, *parameters]
        self.scope = {v.name: v for v in self.values}
        self.parameters = tuple(parameters)
        self.statements: list[Statement] = []

    def fresh(self, stem: str) -> str:
        self.names[stem] = self.names.get(stem, 0) + 1
        return f"{stem}{self.names[stem]}"

    def step(self, refused: bool = False) -> None:
        """One more statement. `refused`: now and then one that the library refuses, as the last."""
        table = dict(ALL)
        if self.depth:
            table.update(WITH_BLOCKS)
        if not HAS_VMAP:
            table.pop("mapped", None)
        table = {name: family for name, family in table.items() if not excluded_statement(name)}
        name = self.rng.choices(list(table), [weight for _, weight in table.values()])[0]
        self.family(name, table[name][0], refused)

    def family(self, name: str, draw: Family, refused: bool = False) -> None:
        """One more statement, of a family."""
        draft = draw(Values(self.rng, self.values, self.depth, self.differentiable, self.inner))
        if draft is not None:
            self.add(draft, name, refused)

    def add(self, draft: Draft, kind: str, refused: bool = False) -> None:
        template = draft.template
        if draft.blocks and draft.count == 1 and kind != "derivative":
            template += "[0]"
        targets = tuple(Var(self.fresh("v"), (), "") for _ in range(draft.count))
        statement = Statement(targets, template, draft.arguments, draft.blocks, kind)
        try:
            types = self.types_of(statement)
        except UnsupportedError:
            return
        except Exception:
            if refused and self.rng.random() < 0.2:
                self.statements.append(statement)
                raise Ends from None
            return
        if sum(t.size for t in types) > LARGEST or any(t.rank > 5 for t in types):
            return
        self.statements.append(replace(statement, targets=types))
        self.values += types
        self.scope.update((t.name, t) for t in types)

    def types_of(self, statement: Statement) -> tuple[Var, ...]:
        """The types of the targets, as the library infers them."""
        needed = sorted(statement.uses())
        targets = tuple(t.name for t in statement.targets)
        source = to_source(Block(tuple(needed), (statement,), targets))
        given = [self.scope[name] for name in needed]
        structures = [hloom.ShapeDtypeStruct(v.shape, dtype_named(v.dtype), weak_type=v.weak) for v in given]
        with np.errstate(all="ignore"):
            results = hloom.eval_shape(compiled(source, HLOOM), *structures)
        return tuple(
            Var(name, tuple(r.shape), str(r.dtype), bool(getattr(r, "weak_type", False)))
            for name, r in zip(targets, results, strict=True)
        )

    def inner(
        self, parameters: Sequence[Var], steps: int, wanted: Sequence[Var], whole: bool = False, extra: int = 0,
        smooth: bool = False,
    ) -> Block | None:  # fmt: skip
        """A block on new names of the parameters' types; its results have the types of `wanted`.

        `whole`: these are the state of a loop, and nothing of it is weakly typed. `extra`: more results, of any type.
        """
        renamed = [replace(p, name=self.fresh(p.name.rstrip("0123456789") or "p"), weak=False) for p in parameters]
        outer = [v for v in self.values if self.rng.random() < 0.3] if self.rng.random() < 0.5 else []
        drawer = ProgramDrawer(
            self.rng, renamed, self.depth - 1, self.names, self.x64, smooth or self.differentiable, outer
        )
        for _ in range(5 * steps):
            drawer.step()
            if len(drawer.statements) == steps:
                break
        results = [drawer.of_type(w) for w in wanted]
        results += [drawer.rng.choice(drawer.values).name for _ in range(extra)]
        if any(r is None for r in results):
            return None
        names = tuple(p.name for p in renamed)
        return without_dead(Block(names, tuple(drawer.statements), tuple(r for r in results if r is not None)))

    def of_type(self, wanted: Var) -> str | None:
        """The name of a value of a type: one that there is, or one made of the last value."""
        fitting = [v for v in self.values if (v.shape, v.dtype, v.weak) == (wanted.shape, wanted.dtype, False)]
        made_here = {t.name for s in self.statements for t in s.targets}
        computed = [v for v in fitting if v.name in made_here]
        if computed and self.rng.random() < 0.8:
            return computed[-1].name
        candidates = [v for v in self.values if v.is_float == wanted.is_float and not v.is_complex]
        if not candidates or (fitting and self.rng.random() < 0.15):
            return self.rng.choice(fitting).name if fitting else None
        x = candidates[-1] if self.rng.random() < 0.8 else self.rng.choice(candidates)
        before = len(self.values)
        text = f"jnp.broadcast_to({'{0}' if x.shape == wanted.shape else 'jnp.sum({0})'}, {wanted.shape})"
        if x.shape != wanted.shape and self.differentiable:
            text = f"jnp.broadcast_to(jnp.mean({{0}}), {wanted.shape})"
        self.add(Draft(f"{text}.astype('{wanted.dtype}')", (x.name,)), "made")
        return self.values[-1].name if len(self.values) > before else None
