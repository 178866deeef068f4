"""Array programs as trees of statements: what the generator grows, the minimiser thins out, and Python runs.

A statement is a line of Python with the names of its arguments left open, and the computations (bodies of loops,
branches, functions to differentiate) that the line calls; these are blocks of statements again. The text of a program
uses only `jax`, `jnp`, `lax`, `nn` and `np`, so that it runs with hloom and with JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Var:
    """A value of a program: its name and type."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype.startswith(("int", "uint"))

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")


FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True)
class Block:
    """A function of `parameters`; `results` are names of values inside or outside of it."""

    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]
    form: str = "({},)"
    """How results are returned: `{}` for the names with commas between."""


@dataclass(frozen=True, slots=True)
class Statement:
    """`targets = template`, where `{0}`, `{1}`, ... are the arguments and `{f0}`, ... the blocks' functions."""

    targets: tuple[Var, ...]
    template: str
    arguments: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    kind: str = ""

    def uses(self) -> set[str]:
        """Names of values from outside."""
        return set(self.arguments).union(*(free_names(b) for b in self.blocks))


def free_names(block: Block) -> set[str]:
    """The names that a block uses and does not define."""
    made = set(block.parameters)
    used: set[str] = set()
    for statement in block.statements:
        used |= statement.uses() - made
        made |= {v.name for v in statement.targets}
    return used | (set(block.results) - made)


# ---- text


def to_source(block: Block) -> str:
    """The program as the function `program`."""
    return "\n".join(_function("program", block, "")) + "\n"


def _function(name: str, block: Block, indent: str) -> list[str]:
    inner = indent + "    "
    lines = [f"{indent}def {name}({', '.join(block.parameters)}):"]
    for statement in block.statements:
        names = {}
        for k, body in enumerate(statement.blocks):
            names[f"f{k}"] = f"f{k}_{statement.targets[0].name}"
            lines += _function(names[f"f{k}"], body, inner)
        targets = ", ".join(v.name for v in statement.targets)

        lines.append(f"{inner}{targets} = {statement.template.format(*statement.arguments, **names)}")
    lines.append(f"{inner}return {block.form.format(', '.join(block.results))}")
    return lines


# ---- smaller programs


def without_dead(block: Block) -> Block:
    """Only the statements that the results need."""
    needed = set(block.results)
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if needed & {v.name for v in statement.targets}:
            statement = replace(statement, blocks=tuple(map(without_dead, statement.blocks)))
            kept.append(statement)
            needed |= statement.uses()
    return replace(block, statements=tuple(reversed(kept)))


def smaller_programs(block: Block, inputs: Sequence[NDArray]) -> Iterator[Block]:
    """Programs of these inputs with less: fewer results, a statement that becomes a constant or one of its arguments,
    no second name for a value, and the same inside of blocks."""
    if len(block.results) > 1:
        half = len(block.results) // 2
        for results in (block.results[:half], block.results[half:]):
            yield without_dead(replace(block, results=results))
        for name in block.results:
            yield without_dead(replace(block, results=(name,)))
    for k in range(len(block.statements)):
        # as the result, without what comes after it
        names = tuple(v.name for v in block.statements[k].targets)
        if names != block.results:
            yield without_dead(replace(block, statements=block.statements[: k + 1], results=names))
    given = zip(block.parameters, inputs, strict=True)
    yield from _less_inside(block, {name: Var(name, a.shape, a.dtype.name) for name, a in given})


def _less_inside(block: Block, outer: dict[str, Var]) -> Iterator[Block]:
    types = {**outer, **{v.name: v for s in block.statements for v in s.targets}}
    for k, statement in reversed(list(enumerate(block.statements))):
        if statement.template == "{0}" and len(statement.targets) == 1 and not statement.kind:
            rest = replace(block, statements=block.statements[:k] + block.statements[k + 1 :])
            yield _renamed(rest, statement.targets[0].name, statement.arguments[0])
        for other in _in_its_place(statement, types):
            statements = block.statements[:k] + ((other,) if other else ()) + block.statements[k + 1 :]
            yield without_dead(replace(block, statements=statements))
        for n, body in enumerate(statement.blocks):
            for less in _less_inside(body, types):
                blocks = statement.blocks[:n] + (less,) + statement.blocks[n + 1 :]
                changed = replace(statement, blocks=blocks)
                statements = block.statements[:k] + (changed,) + block.statements[k + 1 :]
                yield without_dead(replace(block, statements=statements))


def _renamed(block: Block, old: str, new: str) -> Block:
    """The block with another value in the place of `old`; each name of a program is given once."""

    def names(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in given)

    statements = tuple(
        replace(s, arguments=names(s.arguments), blocks=tuple(_renamed(b, old, new) for b in s.blocks))
        for s in block.statements
    )
    return replace(block, statements=statements, results=names(block.results))


def _in_its_place(statement: Statement, types: dict[str, Var]) -> Iterator[Statement | None]:
    """Simpler statements for the same targets."""
    if statement.kind == "constant":
        return
    for name in dict.fromkeys(statement.arguments):
        var = types.get(name)
        if var is not None and all(var.shape == t.shape and var.dtype == t.dtype for t in statement.targets):
            value = "{0}" if len(statement.targets) == 1 else ", ".join(["{0}"] * len(statement.targets))
            yield Statement(statement.targets, value, (name,))
    made = [f"jnp.ones({t.shape}, '{t.dtype}')" for t in statement.targets]
    yield Statement(statement.targets, ", ".join(made), (), (), "constant")


def simpler_inputs(inputs: Sequence[NDArray], shows: Callable[[tuple[NDArray, ...]], bool]) -> tuple[NDArray, ...]:
    """Arrays of ones, or with their first element everywhere, or rounded to one digit, where that still shows it."""
    best = tuple(inputs)
    for k, array in enumerate(best):
        for other in _simpler(array):
            candidate = best[:k] + (other,) + best[k + 1 :]
            if shows(candidate):
                best = candidate
                break
    return best


def _simpler(array: NDArray) -> Iterator[NDArray]:
    yield np.ones_like(array)
    if array.size > 1:
        yield np.full_like(array, array.flat[0])
    if array.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            yield np.round(array, 1)
    if array.dtype.kind in "fciu" and array.size:
        yield np.arange(array.size).reshape(array.shape).astype(array.dtype)


# ---- running


def namespace_of(library: Any, numpy: Any, lax: Any, nn: Any) -> dict[str, Any]:
    """The global names of a program's text."""
    return {"jax": library, "jnp": numpy, "lax": lax, "nn": nn, "np": np, "bfloat16": ml_dtypes.bfloat16}


def compiled(source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function `program` of a source."""
    names = dict(names)
    exec(compile(source, "<fuzz>", "exec"), names)
    function: Callable[..., Any] = names["program"]
    return function
