"""Cases of loops as users of `hloom.numpy` write them: recurrences along rows and columns of arrays that are updated.

Run as `array_cases` are: outside of jit, under jit, by the evaluator, and in JAX where it is installed. All arrays have
one type, and numbers stay small and whole, so that results are exact. Indices come from counters and from data, and are
often negative or out of range. The loops are `fori_loop`, `scan` and `while_loop`, with known and unknown ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import array_cases, data
from .array_programs import Block, Statement, Var, to_source, without_dead
from .case import Case, Outcome, Stage, dtype_named
from .minimise import Shows

SIZES = (1, 1, 2, 3, 4, 5, 8, 20)
DTYPES = ("float32",) * 4 + ("int32",) * 2 + ("float64", "int16", "uint8", "bfloat16")
KINDS = "Mvusi"
"""A matrix (n, m), a vector (m), a vector (n), a scalar, and an index, which is an int32."""

# How each kind is made. W(...) brings numbers back below 17; T is the type, N and M are n and m. Then the arguments.
STEPS: dict[str, tuple[tuple[str, str], ...]] = {
    "M": (
        ("{0}.at[{1}].set({2})", "Miv"), ("W({0}.at[{1}].add({2}))", "Miv"), ("{0}.at[:, {1}].set({2})", "Miu"),
        ("{0}.at[{1}, {2}].set({3})", "Miis"), ("W({0}.at[{1}, {2}].add({3}))", "Miis"),
        ("{0}.at[{1}, {2}].max({3})", "Miis"), ("W({0}.at[{1}].multiply({2}))", "Mis"),
        ("{0}.at[{1}].set({0}[{1} - 1])", "Mi"), ("{0}.at[:, {1}].set(W({0}[:, {1} - 1] - {0}[:, {1} - 2]))", "Mi"),
        ("{0}.at[{1}, {2}].set(W({0}[{1} - 1, {2} - 1] + {3}))", "Miis"), ("{0}.at[{1}, 1:].set({0}[{1}, :-1])", "Mi"),
        ("{0}.at[1:, {1}].set(W({0}[:-1, {1}] + {0}[1:, {1}]))", "Mi"), ("{0}.at[{1}].set({2}, mode='drop')", "Miv"),
        ("{0}.at[{1}].set({2}, mode='clip')", "Miv"), ("{0}.at[{1}, {2}].set({0}[{2} - 1, {1} - 1])", "Mii"),
        ("lax.dynamic_update_slice({0}, {1}[None], ({2}, 0))", "Mvi"),
        ("lax.dynamic_update_slice({0}, {0}[:1, :1], ({1}, {2}))", "Mii"),
        ("jnp.where(jnp.arange(N)[:, None] > {1}, {0}, W({0} + {2}))", "Miv"), ("{0}[::-1]", "M"),
        ("jnp.roll({0}, 1, 0)", "M"), ("W({0} + {1})", "MM"),
        ("W({0} * {1}[:, None])", "Mu"), ("W(jnp.outer({0}, {1}))", "uv"), ("jnp.maximum({0}, {1})", "Mv"),
        ("W({0} - {1})", "MM"), ("W(jnp.cumsum({0}, 1, dtype='T'))", "M"), ("jnp.flip({0}, 1)", "M"),
        ("{0}.at[{1}].set({2}).at[{1} + 1].set({0}[{1}])", "Miv"), ("jnp.concatenate([{0}[1:], {1}[None]])", "Mv"),
    ),
    "v": (
        ("{0}[{1}]", "Mi"), ("{0}.at[{1}].get(mode='fill', fill_value=7)", "Mi"), ("{0}.at[{1}].set({2})", "vis"),
        ("W({0}.at[{1}].add({0}[{2}]))", "vii"), ("{0}[::-1]", "v"), ("jnp.concatenate([{0}[1:], {1}[None]])", "vs"),
        ("jnp.concatenate([{1}[None], {0}[:-1]])", "vs"), ("lax.cummax({0})", "v"), ("jnp.maximum({0}, {1})", "vv"),
        ("W(jnp.sum({0}, 0, dtype='T'))", "M"), ("W({0} @ {1})", "uM"), ("W(jnp.cumsum({0}, dtype='T'))", "v"),
        ("jnp.where({0} > {1}, {0}, {2})", "vsv"), ("W({0} * {1} + {2})", "vsv"),
        ("lax.dynamic_index_in_dim({0}, {1}, 0, keepdims=False)", "Mi"), ("jnp.max({0}, 0)", "M"),
        ("W({0} - {1})", "vv"),
        ("lax.dynamic_update_slice({0}, {1}[None], ({2},))", "vsi"),
    ),
    "u": (
        ("{0}[:, {1}]", "Mi"), ("W({0} @ {1})", "Mv"), ("{0}.at[{1}].set({2})", "uis"), ("jnp.min({0}, 1)", "M"),
        ("W({0} + {1})", "uu"), ("{0}.at[{1}].set({0}[{1} - 1])", "ui"), ("W({0} * {1})", "us"),
    ),
    "s": (
        ("{0}[{1}]", "vi"), ("{0}[{1}, {2}]", "Mii"), ("W(jnp.sum({0}, dtype='T'))", "v"), ("jnp.max({0})", "M"),
        ("W({0} + {1})", "ss"), ("W({0} * {1})", "ss"), ("jnp.where({0} > 2, {0}, {1})", "ss"), ("W({0} @ {1})", "vv"),
        ("W({0} * {1} + {2})", "sss"), ("jnp.where({0} > 1, {1}, {2})", "iss"), ("jnp.minimum({0}, {1})", "ss"),
    ),
    "i": (
        ("{0} + 1", "i"), ("{0} * 2 - 3", "i"), ("-{0}", "i"), ("jnp.argmax({0}).astype('int32')", "v"),
        ("{0}.astype('int32')", "s"), ("{0} // 2", "i"), ("jnp.minimum({0}, N)", "i"), ("{0} + {1}", "ii"),
    ),
}  # fmt: skip

ADDED = {
    **dict.fromkeys(("MM", "vv", "uu", "ss", "ii", "sM", "sv", "su", "vM"), "W({0} + {1})"),
    "uM": "W({0} - {1}[:, None])", "iM": "{0}.at[{1}].set(1)", "iv": "{0}.at[{1}].set(2)", "iu": "{0}.at[{1}].set(3)",
    "vs": "W({0} + jnp.max({1}))", "Ms": "W({0} - jnp.max({1}))", "Mv": "W({0} + {1}[-1])",
}  # fmt: skip
"""How a value of the first kind goes into one of the second."""


@dataclass
class Setting:
    """The state shared by all parts of a program. `names` counts the names that were given."""

    rng: random.Random
    dtype: str
    n: int
    m: int
    names: list[int] = field(default_factory=lambda: [0])

    def fresh(self, kind: str) -> str:
        self.names[0] += 1
        return f"{kind}{self.names[0]}"

    def var(self, kind: str, name: str) -> Var:
        shape = {"M": (self.n, self.m), "v": (self.m,), "u": (self.n,)}.get(kind, ())
        return Var(name, shape, "int32" if kind == "i" else self.dtype)

    def text(self, template: str) -> str:
        """A template with this program's sizes and types."""
        sizes = (("jnp.arange(N)", f"jnp.arange({self.n})"), (", N)", f", {self.n})"), ("'T'", f"'{self.dtype}'"))
        for old, new in sizes:
            template = template.replace(old, new)
        return _bounded(template, self.dtype)


def _bounded(template: str, dtype: str) -> str:
    """W(x): x modulo a small number, so that sums and products are exact."""
    if dtype.startswith(("int", "uint")):
        return template.replace("W(", "(")
    return template.replace("W(", f"(lambda x: jnp.fmod(x, {3 if dtype == 'bfloat16' else 17}))(")


class LoopProgram:
    """Grows one block: `values` are the names of each kind."""

    def __init__(self, setting: Setting, values: dict[str, list[str]], depth: int) -> None:
        self.set, self.rng, self.depth = setting, setting.rng, depth
        self.values = {kind: list(values.get(kind, ())) for kind in KINDS}
        self.statements: list[Statement] = []

    def any(self, kind: str) -> str:
        found = self.values[kind]
        if not found:
            self.add("jnp.int32(1)" if kind == "i" else f"jnp.ones({self.set.var(kind, '').shape}, 'T')", (), kind)
        return self.rng.choice(found[-3:])

    def add(self, template: str, arguments: Sequence[str], kinds: str, blocks: tuple[Block, ...] = ()) -> None:
        if blocks and len(kinds) == 1:
            template += "[0]"
        targets = tuple(self.set.var(kind, self.set.fresh(kind)) for kind in kinds)
        self.statements.append(Statement(targets, self.set.text(template), tuple(arguments), blocks))
        for kind, target in zip(kinds, targets, strict=True):
            self.values[kind].append(target.name)

    def step(self) -> None:
        if self.depth and self.rng.random() < 0.3:
            self.rng.choice((self.fori, self.scan, self.while_loop, self.cond))()
            return
        kind = self.rng.choice("MMMvvvuussi")
        template, kinds = self.rng.choice(STEPS[kind])
        self.add(template, [self.any(k) for k in kinds], kind)

    # blocks
    def state(self) -> tuple[str, list[str]]:
        kinds = "".join(self.rng.choice("MMvvusi") for _ in range(self.rng.randint(1, 4)))
        return kinds, [self.any(kind) for kind in kinds]

    def body(self, kinds: str, outer: bool = True, extra: str = "") -> tuple[list[str], LoopProgram]:
        """The names of a block's parameters, and the block after some steps; it may see the values around it."""
        names = [self.set.fresh(kind) for kind in kinds + extra]
        seen = {kind: list(found) if outer and self.rng.random() < 0.5 else [] for kind, found in self.values.items()}
        inner = LoopProgram(self.set, seen, self.depth - 1)
        for kind, name in zip(kinds + extra, names, strict=True):
            inner.values[kind].append(name)
        for _ in range(self.rng.randint(1, 5)):
            inner.step()
        return names, inner

    def results(self, kinds: str, given: Sequence[str]) -> list[str]:
        """Values of these kinds: rather the last ones, or the state rotated; what nothing uses is added to them."""
        made = {t.name for s in self.statements for t in s.targets}
        used = {name for s in self.statements for name in s.uses()}
        names = []
        for k, kind in enumerate(kinds):
            mine = [name for name in self.values[kind] if name in made]
            same = [name for j, name in enumerate(given[: len(kinds)]) if kinds[j] == kind and j != k]
            kept = self.rng.random()
            names.append(same[0] if same and kept < 0.2 else mine[-1] if mine and kept < 0.9 else given[k])
        unused = [(kind, name) for kind in KINDS for name in self.values[kind] if name in made - used - {*names}]
        for kind, name in unused:
            places = [k for k, other in enumerate(kinds) if kind + other in ADDED]
            if places and self.rng.random() < 0.8:
                k = self.rng.choice(places)
                self.add(ADDED[kind + kinds[k]], (names[k], name), kinds[k])
                names[k] = self.values[kinds[k]][-1]
        return names

    def fori(self) -> None:
        kinds, state = self.state()
        names, inner = self.body(kinds, extra="i")
        *carried, counter = names
        results = inner.results(kinds, carried)
        block = _unpacked((counter, "carry"), carried, inner.statements, results, "({},)")
        bounds, ends = self.rng.choice((
            (f"0, {self.rng.choice((0, 1, 2, self.set.n, self.set.m))}", []), (f"-1, {self.set.n}", []),
            (f"0, jnp.clip({{{len(state)}}}, 0, 6)", ["i"]), (f"jnp.clip({{{len(state)}}}, 0, 3), 4", ["i"]),
        ))  # fmt: skip
        given = ", ".join(f"{{{k}}}" for k in range(len(state)))
        arguments = [*state, *(self.any(kind) for kind in ends)]
        self.add(f"lax.fori_loop({bounds}, {{f0}}, ({given},))", arguments, kinds, (block,))

    def scan(self) -> None:
        kinds, state = self.state()
        rows, last = self.rng.choice((("M", "v"), ("u", "s"), ("", "i")))
        names, inner = self.body(kinds, extra=last)
        *carried, row = names
        stacked = {"M": "v", "u": "s"}.get(rows, "s")
        result = inner.any(stacked)
        results = [*inner.results(kinds, carried), result]
        form = f"(lambda *r: (r[:{len(kinds)}], r[{len(kinds)}]))({{}})"
        block = _unpacked(("carry", row), carried, inner.statements, results, form)
        given = ", ".join(f"{{{k}}}" for k in range(len(state)))
        how = self.rng.choice(("", "", ", reverse=True", ", unroll=2"))
        xs = f"{{{len(state)}}}" if rows else f"jnp.arange({self.set.n}, dtype='int32')"
        call = f"(lambda r: (*r[0], r[1]))(lax.scan({{f0}}, ({given},), {xs}{how}))"
        self.add(call, [*state, *(self.any(rows) for _ in rows)], kinds + {"v": "M", "s": "u"}[stacked], (block,))

    def while_loop(self) -> None:
        """Until a counter is at its end; rather earlier, if data says so."""
        kinds, state = self.state()
        names, inner = self.body(kinds, extra="is")
        *carried, counter, fuel = names
        inner.statements.append(Statement((Var(f"{counter}n", (), "int32"),), "{0} + 1", (counter,)))
        going = self.rng.choice(("{0} * 0.5", "jnp.where({1} > 2, jnp.nan, {0} * 0.5)")).replace("jnp.nan", "0")
        inner.statements.append(
            Statement((self.set.var("s", f"{fuel}n"),), f"({going}).astype('{self.set.dtype}')", (fuel, counter))
        )
        results = [*inner.results(kinds, carried), f"{counter}n", f"{fuel}n"]
        body = _unpacked(("carry",), names, inner.statements, results, "({},)")
        test = self.rng.choice(
            (f"{{0}} < {self.rng.randint(0, 6)}", "({0} < 7) & ({1} > 0)", "({0} < 5) & ({1} == {1})")
        )
        decide = Statement((Var(f"{counter}t", (), "bool"),), test, (counter, fuel))
        condition = _unpacked(("carry",), names, [decide], [f"{counter}t"], "{}")
        given = ", ".join(f"{{{k}}}" for k in range(len(state)))
        first = f"{{{len(state)}}}"
        call = f"lax.while_loop({{f0}}, {{f1}}, ({given}, jnp.int32(0), {first}))"
        self.add(call, [*state, self.any("s")], kinds + "is", (condition, body))

    def cond(self) -> None:
        kinds, state = self.state()
        blocks = []
        count = self.rng.choice((2, 2, 3))
        for _ in range(count):
            names, inner = self.body(kinds)
            results = tuple(inner.results(kinds, names))
            blocks.append(Block(tuple(names), tuple(inner.statements), results, "({},)"))
        given = ", ".join(f"{{{k}}}" for k in range(len(state)))
        if count == 2:
            test, kind = self.rng.choice((("{X} > 1", "s"), ("{X} % 2 == 0", "i")))
            call = f"lax.cond({test}, {{f0}}, {{f1}}, {given})"
        else:
            call, kind = f"lax.switch({{X}}, [{{f0}}, {{f1}}, {{f2}}], {given})", "i"
        self.add(call.replace("{X}", f"{{{len(state)}}}"), [*state, self.any(kind)], kinds, tuple(blocks))


def _unpacked(
    parameters: tuple[str, ...],
    carried: Sequence[str],
    statements: Sequence[Statement],
    results: Sequence[str],
    form: str,
) -> Block:
    """A block that first takes its parameter `carry` apart."""
    targets = tuple(Var(name, (), "") for name in carried)
    first = Statement(targets, "{0}" if len(carried) > 1 else "{0}[0]", ("carry",), (), "constant")
    return Block(parameters, (first, *statements), tuple(results), form)


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    setting = Setting(rng, rng.choice(DTYPES), rng.choice(SIZES), rng.choice(SIZES))
    kinds = "M" + "".join(rng.sample("vus", rng.randint(0, 3))) + "i"
    names = [f"x{k}" for k in range(len(kinds))]
    program = LoopProgram(setting, {}, rng.choice((1, 2, 2)))
    for kind, name in zip(kinds, names, strict=True):
        program.values[kind].append(name)
    for _ in range(rng.choice((0, 0, 1))):
        program.step()
    rng.choice((program.fori, program.fori, program.scan, program.while_loop))()
    for _ in range(rng.choice((0, 0, 1, 2))):
        program.step()
    targets = [t.name for s in program.statements for t in s.targets]
    block = without_dead(Block(tuple(names), tuple(program.statements), tuple(targets[-6:])))
    generator = np.random.default_rng(seed)
    inputs = tuple(_input(setting, kind, generator) for kind in kinds)
    options: dict[str, Any] = {"x64": setting.dtype == "float64"}
    if rng.random() < 0.2:
        options["donate"] = 0
    return Case("loop-array", seed, to_source(block), inputs, options, block)


def _input(setting: Setting, kind: str, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    var = setting.var(kind, "")
    low = 0 if var.dtype == "uint8" else -3
    return np.asarray(generator.integers(low, 5, var.shape)).astype(dtype_named(var.dtype))


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data, in other layouts in memory. Few run outside of jit, where a loop is traced
    again for each."""
    rng = random.Random(f"{case.seed} {number}")
    options = {**case.options, "views": [rng.choice(array_cases.VIEWS) for _ in case.inputs]}
    options["outside"] = number % 16 == 1
    return case.but(data=number, inputs=data.another_exact(case.inputs, case.seed, number), options=options)


check: Callable[[Case, Stage], Outcome] = array_cases.check


def minimised(case: Case, shows: Shows) -> Case:
    """As array programs."""
    return array_cases.minimised(case, shows)
