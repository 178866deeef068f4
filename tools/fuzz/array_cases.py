"""Cases of array programs: what users write, at the level of `hloom.numpy`, run in every way.

Outside of jit, under jit (on inputs in odd memory: strides, views, read-only), and in JAX where it is installed; all
compared with the evaluator on the traced program. Programs that are differentiated are also checked against themselves:
forward mode against reverse mode, and against differences in double precision.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from hloom.hlo.errors import HloError, UnsupportedError
from hloom.hlo.ir import HloModule

import hloom
import hloom.numpy

from . import data
from .agreement import How, differences
from .array_derivatives import Derivatives
from .array_drawer import HLOOM, Ends, ProgramDrawer
from .array_edges import exact
from .array_programs import (
    Block,
    Var,
    compiled,
    free_names,
    namespace_of,
    simpler_inputs,
    smaller_programs,
    to_source,
    without_dead,
)
from .array_statements import DTYPES
from .attempt import Raised, attempt, flat
from .case import OK, Case, NDArray, Outcome, Stage, Verdict, dtype_named, found
from .minimise import Shows, fewer_options
from .noise import Budget, TooLong, evaluate_within
from .worker import signature_of

use_oracle = False
"""Whether to compare with JAX; the child sets it."""
SIZES = (0, 1, 1, 2, 3, 3, 4, 5, 8)
VIEWS = ("plain", "plain", "array", "array", "fortran", "reversed", "strided", "read-only", "transposed", "unaligned")
"""The layout of an input in memory. "array": an array of the library."""
OF_A_RUN = ("views", "jax", "outside")
"""Options that do not cause a new trace."""


def _random_dtype(rng: random.Random, x64: bool) -> str:
    dtype = rng.choice(DTYPES)
    return dtype if x64 or dtype not in ("float64", "int64") else "float32"


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    smooth = rng.random() < 0.25
    x64 = smooth or rng.random() < 0.25
    parameters = []
    for k in range(rng.randint(1, 3)):
        dtype = "float64" if smooth else _random_dtype(rng, x64)
        shape = tuple(rng.choice(SIZES[1:] if smooth else SIZES) for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))
        parameters.append(Var(f"x{k}", shape, dtype))
    if not smooth and rng.random() < 0.5:
        parameters.append(Var(f"x{len(parameters)}", (), "int32"))
    options: dict[str, Any] = {"x64": x64, "views": [rng.choice(VIEWS) for _ in parameters]}
    edge = random.Random(seed).random()  # apart from `rng`: seeds of before draw what they drew
    if not smooth and edge < 0.06:
        options["strict"] = True
    elif not smooth and edge < 0.12:
        return _exact_case(seed, rng, parameters[0], options)
    with _settings(options):
        drawer = ProgramDrawer(rng, parameters, rng.choice((0, 1, 1, 2, 2, 3)), {}, x64, smooth)
        steps = rng.randint(3, 12)
        ended = False
        for _ in range(steps):
            try:
                drawer.step(refused=not smooth)
            except Ends:
                ended = True
                break
        names = [v.name for v in drawer.values if v not in parameters]
        results = list(dict.fromkeys(names[-2:] + rng.sample(names, min(len(names), 2)))) or ["x0"]
        if ended:
            results = [t.name for t in drawer.statements[-1].targets]
        block = Block(tuple(p.name for p in parameters), tuple(drawer.statements), tuple(results))
        if smooth:
            options["derivatives"] = True
            block = _floats_only(block, drawer)
    block = without_dead(block)
    if rng.random() < 0.1 and not ended:
        options["donate"] = rng.randrange(len(parameters))
    generator = np.random.default_rng(seed)
    special = 0.2 if not smooth and rng.random() < 0.25 else 0.0
    inputs = tuple(_random_input(p, generator, special) for p in parameters)
    return Case("array", seed, to_source(block), inputs, options, block)


def _exact_case(seed: int, rng: random.Random, x: Var, options: dict[str, Any]) -> Case:
    """One function of one array, outside of jit and inside: the same bits."""
    x = x if x.is_float or x.is_complex else replace(x, dtype=rng.choice(("float16", "bfloat16", "float32")))
    with _settings(options):
        drawer = ProgramDrawer(rng, [x], 0, {}, bool(options["x64"]))
        drawer.family("exact", exact)
    names = [v.name for v in drawer.values if v is not x]
    block = Block((x.name,), tuple(drawer.statements), tuple(names or [x.name]))
    options = {**options, "exact": True, "views": ["plain"]}
    inputs = (_random_input(x, np.random.default_rng(seed), 0.3),)
    return Case("array", seed, to_source(block), inputs, options, block)


def _floats_only(block: Block, drawer: ProgramDrawer) -> Block:
    floats = [n for n in block.results if drawer.scope[n].is_float]
    return replace(block, results=tuple(floats) or ("x0",))


def _has_large_unsigned(array: NDArray) -> bool:
    """Has it numbers that JAX takes for negative when they are indices (docs/differences.md)?"""
    return array.dtype.kind == "u" and bool((array > np.iinfo(array.dtype).max // 2).any())


def _random_input(var: Var, generator: np.random.Generator, special: float) -> NDArray:
    dtype = dtype_named(var.dtype)
    if var.dtype == "bool":
        return generator.integers(0, 2, var.shape).astype(bool)
    if var.is_integer:
        info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
        values = np.asarray(generator.integers(max(-4, int(info.min)), 6, var.shape))
        if special:
            edge = generator.choice([float(info.min), float(info.max), 0.0, 1.0], var.shape)
            with np.errstate(all="ignore"):
                values = np.where(generator.random(var.shape) < special, edge.astype(dtype), values.astype(dtype))
        return np.asarray(values).astype(dtype)
    values = np.asarray(generator.standard_normal(var.shape))
    if special:
        odd = generator.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 1e30, 1e-30], var.shape)
        values = np.where(generator.random(var.shape) < special, odd, values)
    with np.errstate(all="ignore"):
        if var.is_complex:
            return np.asarray(values + 1j * generator.standard_normal(var.shape)).astype(dtype)
        return np.asarray(values).astype(dtype)


# ---- running


@contextmanager
def _settings(options: dict[str, Any]) -> Iterator[None]:
    """The settings under which a case is drawn and run; `strict`: those that let nothing promote by itself."""
    with ExitStack() as stack:
        stack.enter_context(hloom.enable_x64(bool(options.get("x64"))))
        if options.get("strict"):
            stack.enter_context(hloom.numpy_dtype_promotion("strict"))
            stack.enter_context(hloom.numpy_rank_promotion("raise"))
        yield


def viewed(array: NDArray, view: str) -> Any:
    """An equal array with another layout in memory."""
    if array.ndim == 0 and view != "array":
        return array
    match view:
        case "array":
            return hloom.numpy.asarray(array)
        case "fortran":
            return np.asfortranarray(array)
        case "reversed":
            where = (slice(None, None, -1),) * array.ndim
            return np.ascontiguousarray(array[where])[where]
        case "strided":
            wide = np.zeros(tuple(2 * n + 1 for n in array.shape), array.dtype)
            part = wide[tuple(slice(1, 2 * n + 1, 2) for n in array.shape)]
            part[...] = array
            return part
        case "read-only":
            array = array.copy()
            array.flags.writeable = False
            return array
        case "transposed":
            return np.ascontiguousarray(array.T).T
        case "unaligned":
            raw = np.zeros(array.nbytes + 1, np.uint8)
            part = raw[1:].view(array.dtype).reshape(array.shape)
            part[...] = array
            return part
    return array


_BUGS = (AssertionError, KeyError, AttributeError, UnboundLocalError, RecursionError, SystemError, UnicodeError)
"""Errors that count as defects, never as refusals."""


def check(case: Case, stage: Stage) -> Outcome:
    """All ways to run it, compared."""
    views = case.options.get("views") or ["plain"] * len(case.inputs)
    program = _program(case.program, case.options.get("donate"))
    with _settings(case.options):
        inputs = [viewed(a, v) for a, v in zip(case.inputs, views, strict=False)]
        stage("tracer")
        lowered = program.lowered(inputs, str({k: v for k, v in case.options.items() if k not in OF_A_RUN}))
        stage("outside of jit")
        made = {"lower": lowered}
        if case.options.get("outside", True):
            made["outside of jit"] = attempt(lambda: flat(program.function(*map(hloom.numpy.asarray, inputs))))
        stage("jit")
        made["jit"] = attempt(lambda: flat(program.donating(*inputs)))
    raised = {name: r for name, r in made.items() if isinstance(r, Raised)}
    if raised:
        return _judge_refusal(case, raised, len(made), stage)
    stage("evaluator")
    # Arrays that the program has made while it was traced are parameters of the module, after the others.
    traced = _Traced(lowered.module, [*case.inputs, *map(np.asarray, lowered._captured)], case.seed)
    try:
        expected = evaluate_within(traced.module, traced.arguments, Budget())
    except TooLong:
        return Outcome(Verdict.SKIPPED, "runs too long")
    verdict = OK
    ways = {what: actual for what, actual in made.items() if what != "lower"}
    for what, actual in ways.items():
        outcome = traced.judged(what, expected, actual)
        if outcome.verdict is Verdict.FOUND:
            return outcome
        verdict = outcome if outcome is not OK else verdict
    if case.options.get("exact") and not all(map(_same_bits, *ways.values())):
        return found("other bits outside of jit", "jit and the same function outside of it differ in some bits")
    if case.options.get("derivatives"):
        stage("derivatives")
        outcome = program.derivatives.check(case.inputs, case.seed, outside=case.data == 0)
        if outcome.verdict is Verdict.FOUND:
            return outcome
    if use_oracle and case.options.get("jax", True):
        outcome = _beside_jax(case, traced, expected, stage)
        if outcome is not OK:
            return outcome
    return verdict


def _same_bits(a: NDArray, b: NDArray) -> bool:
    """Equal bits; all NaN are equal."""
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    return all(bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | (x != x) & (y != y))) for x, y in parts)


@dataclass(slots=True)
class _Program:
    """A program, made ready to run with many sets of data."""

    function: Callable[..., Any]
    jitted: Any
    """Under jit; `donating`: with the argument that the case donates."""
    donating: Callable[..., Any]
    derivatives: Derivatives
    traced: dict[Any, Any] = field(default_factory=dict)

    def lowered(self, inputs: Sequence[Any], how: Any) -> Any:
        """The result of `jit(...).lower`, or Raised."""
        key = how, tuple((a.shape, a.dtype) for a in inputs)
        if key not in self.traced:
            self.traced[key] = attempt(lambda: self.jitted.lower(*inputs))
        return self.traced[key]


@lru_cache(maxsize=1)
def _program(source: str, donated: int | None) -> _Program:
    function = compiled(source, HLOOM)
    jitted = hloom.jit(function)
    donating = jitted if donated is None else hloom.jit(function, donate_argnums=donated)
    return _Program(function, jitted, donating, Derivatives(function, jitted))


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data, in other layouts in memory."""
    rng = random.Random(f"{case.seed} {number}")
    options: dict[str, Any] = {**case.options, "views": [rng.choice(VIEWS) for _ in case.inputs]}
    if case.options.get("derivatives"):
        return case.but(data=number, inputs=data.normal(case.inputs, case.seed, number), options=options)
    flavours, inputs = data.another(case.inputs, case.seed, number)
    if not flavours <= data.ORDINARY or any(map(_has_large_unsigned, inputs)):
        options["jax"] = False
    return case.but(data=number, inputs=inputs, options=options)


@dataclass(frozen=True, slots=True)
class _Traced:
    """The program as the tracer sees it."""

    module: HloModule
    arguments: list[NDArray]
    seed: int

    def judged(self, what: str, expected: Sequence[NDArray], actual: Sequence[NDArray], **how: bool) -> Outcome:
        verdict, text = differences(self.module, self.arguments, expected, actual, How(seed=self.seed, **how))
        if verdict is Verdict.FOUND:
            return found(f"{what} differs", f"{what}, and the evaluator on the traced program: {text}")
        return OK if verdict is Verdict.OK else Outcome(verdict)


def _judge_refusal(case: Case, raised: dict[str, Raised], ways: int, stage: Stage) -> Outcome:
    """The library raised: rightly, if JAX raises too."""
    first = next(iter(raised.values()))
    text = "\n".join(f"{n}: {r}" for n, r in raised.items())
    if any(isinstance(r.error, UnsupportedError) for r in raised.values()):
        return Outcome(Verdict.REFUSED, str(first)[:150])
    bug = next((r for r in raised.values() if isinstance(r.error, _BUGS) or not str(r.error)), None)
    if bug is not None and not isinstance(bug.error, HloError):
        return found(signature_of(bug.error), text)
    if use_oracle:
        stage("jax")
        result = _run_jax(case)
        if not isinstance(result, Raised):
            return found(f"JAX has a result: {signature_of(first.error)}", text)
    if len(raised) < ways:
        return found(f"raises only in {', '.join(raised)}: {signature_of(first.error)}", text)
    return Outcome(Verdict.REFUSED, str(first)[:150])


@lru_cache(maxsize=1)
def _in_jax(source: str) -> Callable[..., Any]:
    import jax
    import jax.numpy

    return jax.jit(compiled(source, namespace_of(jax, jax.numpy, jax.lax, jax.nn)))


def _run_jax(case: Case) -> Any:
    import jax

    def run() -> list[NDArray]:
        with jax.enable_x64(bool(case.options.get("x64"))):
            return [np.asarray(r) for r in jax.tree.leaves(_in_jax(case.program)(*case.inputs))]

    return attempt(run)


def _beside_jax(case: Case, traced: _Traced, expected: Sequence[NDArray], stage: Stage) -> Outcome:
    stage("jax")
    actual = _run_jax(case)
    stage("compared with JAX")
    if isinstance(actual, Raised):
        return Outcome(Verdict.ONLY_HERE, str(actual))
    return traced.judged("JAX", expected, actual, flush=True, signed_zeros=False, formulas=True)


# ---- smaller cases


def minimised(case: Case, shows: Shows) -> Case:
    """Fewer options, fewer statements, simpler inputs."""
    case = fewer_options(case, shows)
    block = case.parts
    if not isinstance(block, Block):
        return case
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_programs(block, case.inputs):
            if candidate == block:
                continue
            changed = case.but(program=to_source(candidate), parts=candidate)
            if shows(changed):
                case, block, smaller = changed, candidate, True
                break
    case = _without_unused(case, block, shows)
    simpler_inputs(case.inputs, lambda inputs: shows(case.but(inputs=inputs)))
    return case


def _without_unused(case: Case, block: Block, shows: Shows) -> Case:
    """Without the parameters that nothing uses."""
    used = free_names(replace(block, parameters=()))
    kept = [k for k, name in enumerate(block.parameters) if name in used]
    if len(kept) == len(block.parameters):
        return case
    fewer = replace(block, parameters=tuple(block.parameters[k] for k in kept))
    options = {k: v for k, v in case.options.items() if k != "donate"}
    if "views" in options:
        options["views"] = [options["views"][k] for k in kept]
    changed = case.but(
        program=to_source(fewer), parts=fewer, inputs=tuple(case.inputs[k] for k in kept), options=options
    )
    return changed if shows(changed) else case


