"""Random programs of loops: the evaluator, compiled code in each way to run a loop on guarded memory, and JAX agree.

`tools/fuzz` draws them (kinds "loop" and "loop-array") and makes findings small. A case is its seed:
`python -m tools.fuzz --replay loop:17` runs one again.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.buffers.assignment import BufferAssignment, assign_buffers
from hloom.hlo.evaluator import EVALUATE, evaluate, evaluate_computation
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.rules import RuleSet, rule
from hloom.hlo.passes.simplify.algebraic_simplifier import RULES, AlgebraicSimplifier
from hloom.hlo.verifier import verify
from hloom.numba_backend import pipeline
from hloom.numba_backend.emit import elementwise

import hloom
from support import guarded
from support.random_loops import loop_arguments, loop_module
from tools.fuzz import loop_cases
from tools.fuzz.case import Case, Outcome, Verdict
from tools.fuzz.kinds import KINDS
from tools.fuzz.minimise import Search
from tools.fuzz.worker import Drawn, Worker

O = Opcode  # noqa: E741
FEW = {"loop": 40, "loop-array": 5}
MANY = 400
MANY_ARRAY = 80
CHUNKS = 4


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(oracle=False) as made:
        yield made


@pytest.fixture(scope="module")
def memory_worker() -> Iterator[Worker]:
    """One that keeps no kernels on disk: there are too many, and none is needed again."""
    before = os.environ.get("HLOOM_CACHE_DIR")
    os.environ["HLOOM_CACHE_DIR"] = "off"
    try:
        with Worker() as made:
            yield made
    finally:
        if before is None:
            del os.environ["HLOOM_CACHE_DIR"]
        else:
            os.environ["HLOOM_CACHE_DIR"] = before


def assert_agreement(worker: Worker, kind: str, seeds: Sequence[int]) -> None:
    counts: Counter[Verdict] = Counter()
    for seed in seeds:
        outcome = worker.check(Drawn(kind, seed))
        counts[outcome.verdict] += 1
        if outcome.verdict is Verdict.FOUND:
            pytest.fail(smallest(worker, kind, seed, outcome))
    unstable = len(seeds) - counts[Verdict.OK] - counts[Verdict.ONLY_HERE]
    assert unstable <= max(2, len(seeds) // 20), f"too little is compared: {counts}"


def smallest(worker: Worker, kind: str, seed: int, outcome: Outcome) -> str:
    """The finding, with the smallest program that shows it."""
    case = worker.last_case
    if case is None:
        return f"{kind}:{seed}: {outcome.message}"
    search = Search(worker, case, outcome, seconds=60)
    search.run(KINDS[kind].minimised)
    inputs = "\n".join(map(repr, search.case.inputs))
    return f"{kind}:{seed}: {search.outcome.message}\n{search.case.program}\ninputs:\n{inputs}"


@pytest.mark.parametrize("kind", FEW)
def test_some_programs_agree(kind: str, worker: Worker) -> None:
    assert_agreement(worker, kind, range(FEW[kind]))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_agree(chunk: int, memory_worker: Worker) -> None:
    size = MANY // CHUNKS
    assert_agreement(memory_worker, "loop", range(10_000 + chunk * size, 10_000 + (chunk + 1) * size))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_array_programs_agree(chunk: int, memory_worker: Worker) -> None:
    size = MANY_ARRAY // 4
    assert_agreement(memory_worker, "loop-array", range(10_000 + chunk * size, 10_000 + (chunk + 1) * size))


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=10, suppress_health_check=list(hypothesis.HealthCheck))
def test_hypothesis_draws_them(rng: random.Random) -> None:
    module = loop_module(rng)
    verify(module)
    case = Case("loop", 0, module.to_text(), tuple(loop_arguments(module, rng.randrange(100))))
    outcome = loop_cases.check(case, lambda name: None)
    assert outcome.verdict is not Verdict.FOUND, f"{outcome.message}\n{case.program}"


# ---- what is drawn


def bodies(computation: HloComputation, depth: int = 1) -> Iterator[tuple[HloComputation, int]]:
    """The bodies of loops, and how many loops they are in."""
    for i in computation.instructions:
        for inner in i.attributes.called_computations():
            is_body = i.opcode is O.WHILE and inner is i.attributes.body
            if is_body:
                yield inner, depth
            if i.opcode in (O.WHILE, O.CONDITIONAL, O.CALL):
                yield from bodies(inner, depth + is_body)


IN_BODIES = frozenset({
    O.ADD, O.AND, O.BROADCAST, O.CALL, O.CHOLESKY, O.CLAMP, O.COMPARE, O.CONCATENATE, O.CONDITIONAL, O.CONVERT, O.COPY,
    O.DOT, O.DYNAMIC_SLICE, O.DYNAMIC_UPDATE_SLICE, O.GATHER, O.IOTA, O.MAXIMUM, O.OPT_BARRIER, O.PAD, O.REDUCE,
    O.RESHAPE, O.REVERSE, O.RNG_BIT_GENERATOR, O.SCATTER, O.SELECT, O.SLICE, O.SORT, O.TANH, O.TRANSPOSE,
    O.TRIANGULAR_SOLVE, O.WHILE,
})  # fmt: skip


def test_what_is_drawn() -> None:
    """Loops of every kind are among a few hundred programs."""
    opcodes: Counter[Opcode] = Counter()
    types: Counter[str] = Counter()
    steps: Counter[int] = Counter()
    seen: Counter[str] = Counter()
    sizes: set[int] = set()
    for seed in range(250):
        module = loop_module(random.Random(seed))
        inputs = loop_arguments(module, seed)
        seen["donates"] += bool(module.input_output_aliases)
        seen["special"] += any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in inputs)
        for body, depth in bodies(module.entry):
            seen[f"depth {depth}"] += 1
            opcodes.update(i.opcode for i in body.instructions)
            (state,) = body.parameters
            leaves = list(state.shape.leaves())
            types.update(leaf.element.value for leaf in leaves)
            sizes.update(leaf.num_elements for leaf in leaves)
            seen["no tuple"] += not state.shape.is_tuple
            seen["nested tuple"] += state.shape.is_tuple and any(s.is_tuple for s in state.shape.elements)
            seen["8 leaves"] += len(leaves) >= 8
            if body.root.opcode is O.TUPLE:
                outs = body.root.operands
                moved = [o.opcode is O.GET_TUPLE_ELEMENT and o.attributes.index != k for k, o in enumerate(outs)]
                seen["swapped"] += any(moved)
                seen["invariant"] += any(
                    o.opcode is O.GET_TUPLE_ELEMENT and not m for o, m in zip(outs, moved, strict=True)
                )
                seen["twice"] += len(set(outs)) < len(outs)
                seen["constant"] += any(o.opcode is O.CONSTANT for o in outs)
        steps.update(steps_of(module, inputs))
    assert opcodes.keys() >= IN_BODIES, IN_BODIES - opcodes.keys()
    assert types.keys() >= {"pred", "s8", "s32", "s64", "u8", "u32", "f16", "bf16", "f32", "f64", "c64"}
    assert sizes >= {0, 1, 64, 1000}
    assert all(steps[n] >= 10 for n in range(5)) and max(steps) < 20, steps
    for name in (
        "donates", "special", "depth 1", "depth 2", "depth 3", "no tuple", "nested tuple", "8 leaves", "swapped",
        "invariant", "twice", "constant",
    ):  # fmt: skip
        assert seen[name] >= 2, (name, seen)


def steps_of(module: HloModule, inputs: Sequence[Any]) -> list[int]:
    """How many steps the loops of the entry make."""
    found: list[int] = []
    rules = EVALUATE._rules

    def counting(shape: Any, attributes: Any, state: Any) -> Any:
        count = 0
        while evaluate_computation(attributes.condition, [state]):
            state, count = evaluate_computation(attributes.body, [state]), count + 1
        found.append(count)
        return state

    plain = EVALUATE[O.WHILE]
    rules[O.WHILE] = counting
    try:
        with np.errstate(all="ignore"):
            evaluate(module, *inputs)
    finally:
        rules[O.WHILE] = plain
    return found


# ---- a defect is found


def in_process(case: Case) -> Outcome:
    loop_cases.compiled.cache_clear()  # the library may be another one than a moment ago
    try:
        return loop_cases.check(case, lambda name: None)
    except Exception as error:
        return Outcome(Verdict.FOUND, repr(error), type(error).__name__)


def wrong_meaning(patch: pytest.MonkeyPatch) -> None:
    """The evaluator takes the smaller number for the larger one."""
    patch.setitem(EVALUATE._rules, O.MAXIMUM, EVALUATE[O.MINIMUM])


def wrong_clamp(patch: pytest.MonkeyPatch) -> None:
    """The evaluator reads at index 0 in place of each runtime index."""
    plain = EVALUATE[O.DYNAMIC_SLICE]

    def at_zero(shape: Any, attributes: Any, x: Any, *starts: Any) -> Any:
        return plain(shape, attributes, x, *(np.zeros_like(s) for s in starts))

    patch.setitem(EVALUATE._rules, O.DYNAMIC_SLICE, at_zero)


def wrong_kernel(patch: pytest.MonkeyPatch) -> None:
    """A kernel has the wrong operator."""
    patch.setitem(elementwise._EXTREMA, O.MAXIMUM, ("minimum", "<"))


def wrong_rule(patch: pytest.MonkeyPatch) -> None:
    """A rewrite: of a choice, always the second."""

    def wrong_select(i: HloInstruction) -> HloInstruction | None:
        return i.operands[2]

    rules = RuleSet((rule(wrong_select, O.SELECT), *RULES))
    patch.setattr(pipeline, "AlgebraicSimplifier", lambda: AlgebraicSimplifier(rules=rules))


def wrong_buffers(patch: pytest.MonkeyPatch) -> None:
    """At the end of a body the new state is not moved to where the next step reads it."""

    def without_moves(*arguments: Any, **options: Any) -> BufferAssignment:
        made = assign_buffers(*arguments, **options)
        return replace(made, at_end=dict.fromkeys(made.at_end, ()))

    patch.setattr(guarded, "assign_buffers", without_moves)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("defect", "start", "most"),
    [(wrong_meaning, 6, 4), (wrong_clamp, 0, 6), (wrong_kernel, 0, 6), (wrong_rule, 0, 8), (wrong_buffers, 0, 16)],
)
def test_a_defect_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], start: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`start`: a seed not long before one that shows it. `most`: instructions of the smallest program, or nearly."""
    hloom.clear_caches()  # kernels without the defect, and at the end those with it
    defect(monkeypatch)
    for seed in range(start, start + 60):
        case = loop_cases.draw(seed)
        if in_process(case).verdict is Verdict.FOUND:
            break
    else:
        raise AssertionError("not found")
    best = case

    def shows(candidate: Case) -> bool:
        nonlocal best
        if in_process(candidate).verdict is Verdict.FOUND:  # the passes, or what comes after them: either may show it
            best = candidate
            return True
        return False

    loop_cases.minimised(case, shows)
    assert best.program.count(" = ") <= most, best.program
    monkeypatch.undo()
    hloom.clear_caches()
    assert in_process(best).verdict is Verdict.OK, "found without the defect, too"


def test_an_access_outside_is_found() -> None:
    """Compiled code that keeps no index inside of its array ends the process, or changes the bytes around a buffer."""
    with Worker(prepare="support.fuzz_defects:wrong_memory", oracle=False) as broken:
        assert any(broken.check(Drawn("loop", seed)).verdict is Verdict.FOUND for seed in range(80))
