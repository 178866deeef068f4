"""The rewriter: its record, its check of each application, its limits; and what every rule of every table promises."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hloom.hlo import optimize
from hloom.hlo.builder import make_instruction
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes import rewrite
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.passes.manager import FixedPoint, PassOptions, Pipeline, UnsettledWarning
from hloom.hlo.passes.patterns import make_splat, unary
from hloom.hlo.passes.rewrite import HloPass, calling, map_each_computation, rebuild, rewrite_computation
from hloom.hlo.passes.rewriter import RewriteLog
from hloom.hlo.passes.rule_check import RuleCheckError
from hloom.hlo.passes.rules import Rule, RuleSet, rule
from hloom.hlo.passes.simplify import control_flow_simplifier
from hloom.hlo.passes.simplify.algebraic_simplifier import RULES, AlgebraicSimplifier
from hloom.hlo.passes.simplify.call_inliner import CallInliner
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from hloom.hlo.passes.simplify.reducers import binary_reducer
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS as EXPANSIONS
from hloom.numba_backend.pipeline import pipeline

from hloom.backend_check.op_case import build_module
from hloom.backend_check.op_table import CASES
from support.random_modules import random_module

TABLES = {"algebraic": RULES, "expand": EXPANSIONS, "control flow": control_flow_simplifier.RULES}
ALL = [each for table in TABLES.values() for each in table]
FEW = """HloModule few
ENTRY main {
  x = f32[4] parameter(0)  y = f32[4] parameter(1)
  n = f32[4] negate(x)  a = f32[4] add(n, y)  b = f32[4] sine(a)  c = f32[4] negate(b)  ROOT d = f32[4] add(c, x)
}"""


def simplifier(*rules: Rule) -> AlgebraicSimplifier:
    return AlgebraicSimplifier(rules=RuleSet(rules))


def turned(i: HloInstruction) -> HloInstruction | None:
    """a + b = b + a."""
    return make_instruction(Opcode.ADD, i.operands[::-1])


def sine_to_cosine(i: HloInstruction) -> HloInstruction | None:
    """sin = cos: wrong, and undone by the next."""
    return unary(Opcode.COS, i.operands[0])


def cosine_to_sine(i: HloInstruction) -> HloInstruction | None:
    """cos = sin."""
    return unary(Opcode.SIN, i.operands[0])


def zero_for_negate(i: HloInstruction) -> HloInstruction | None:
    """-x = 0: wrong."""
    return make_splat(0, i.shape)


def positive_zero(i: HloInstruction) -> HloInstruction | None:
    """-x = 0 - x: wrong for 0.0, which becomes 0.0 instead of -0.0."""
    return make_instruction(Opcode.SUBTRACT, (make_splat(0, i.shape), i.operands[0]))


# the tables


def test_names_are_unique_and_those_of_the_functions() -> None:
    names = [each.name for each in ALL]
    assert len(set(names)) == len(names)
    assert all(each.name == each.function.__name__ for each in ALL)
    with pytest.raises(AssertionError, match="two rules of one name: turned"):
        RuleSet([rule(turned, Opcode.ADD), rule(turned, Opcode.MULTIPLY)])


def test_every_rule_says_when_it_is_valid() -> None:
    assert [each.name for each in ALL if not each.documentation.endswith((".", ")"))] == []
    assert all(each.opcodes for each in ALL)


def test_rules_of_an_opcode_are_in_the_order_of_the_table() -> None:
    for table in TABLES.values():
        for opcode in Opcode:
            assert list(table.of(opcode)) == [each for each in table if opcode in each.opcodes]


def test_no_rule_fires_where_the_opcodes_of_operands_leave_it_out() -> None:
    modules = [random_module(random.Random(seed)) for seed in range(40)] + [build_module(case) for case in CASES]
    for module in modules:
        for i in module.instructions():
            for each in RULES.of(i.opcode):
                assert each in RULES.for_instruction(i) or each.function(i) is None, (each, i)


# the record


def test_counts_and_applications() -> None:
    module = parse(FEW)
    pipeline = Pipeline("test", (AlgebraicSimplifier(),))
    _, (plain,) = pipeline.run(module, PassOptions())
    assert (dict(plain.rewrites), plain.applications, plain.unsettled) == ({"add_negated": 2}, [], ())
    _, (explained,) = pipeline.run(module, PassOptions(explain=True))
    assert [str(a) for a in explained.applications] == [
        "add_negated in main\n  - %a = f32[4]{0} add(%n, %y)\n  + %subtract~1 = f32[4]{0} subtract(%y, %x)",
        "add_negated in main\n  - %d = f32[4]{0} add(%c, %x)\n  + %subtract~1 = f32[4]{0} subtract(%x, %b)",
    ]


def test_what_rules_did_inside_of_called_computations_shows() -> None:
    module = parse("HloModule loop\n" + LOOP)
    _, records = optimize(module, options=PassOptions(explain=True))
    texts = [str(a) for r in records for a in r.applications if a.rule == "constant_state"]
    assert any("in body:" in text and "constant(7)" in text for text in texts), texts


LOOP = """
body { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 k = s32[] get-tuple-element(s), index=1
  j = s32[] add(i, k) ROOT t = (s32[], s32[]) tuple(j, k) }
condition { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(50)
  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY main { x = s32[] parameter(0) seven = s32[] constant(7) s = (s32[], s32[]) tuple(x, seven)
  ROOT loop = (s32[], s32[]) while(s), condition=condition, body=body }
"""


def test_the_record_is_the_same_each_time() -> None:
    for seed in range(5):
        module = random_module(random.Random(seed))
        first, second = (
            ["\n".join(map(str, r.applications)) for r in optimize(module, options=PassOptions(explain=True))[1]]
            for _ in range(2)
        )
        assert first == second


def test_a_log_with_a_limit_stops_there() -> None:
    module = parse(FEW)
    texts = []
    for limit in range(4):
        log = RewriteLog(limit=limit)
        texts.append(AlgebraicSimplifier().rewrite(module, log).to_text())
        assert sum(log.counts.values()) == min(limit, 2)
    assert texts[0] == module.to_text() and len(set(texts)) == 3


def test_instructions_that_settled_are_not_looked_at_again() -> None:
    asked: list[str] = []

    def spy(i: HloInstruction) -> HloInstruction | None:
        """Nothing."""
        asked.append(i.name)
        return None

    module = parse(FEW)
    each = simplifier(rule(spy, Opcode.ADD, Opcode.SIN, Opcode.NEGATE))
    log = RewriteLog()
    assert each.rewrite(module, log) is module
    assert asked == ["n", "a", "b", "c", "d"]
    assert each.rewrite(module, RewriteLog(settled=log.settled)) is module
    assert len(asked) == 5


# the check


def test_the_check_names_a_wrong_rule_and_shows_both_sides() -> None:
    for wrong, difference in ((zero_for_negate, "DIFFERS"), (positive_zero, "zeros of different sign")):
        pipeline = Pipeline("test", (simplifier(rule(wrong, Opcode.NEGATE)),))
        pipeline.run(parse(FEW), PassOptions())
        with pytest.raises(RuleCheckError) as caught:
            pipeline.run(parse(FEW), PassOptions(check_rules=True))
        text = str(caught.value)
        assert text.startswith(f"rule {wrong.__name__} of module few, pass algebraic-simplifier gives another result")
        assert difference in text and "before:\nHloModule" in text and "after:\nHloModule" in text


def test_the_check_can_be_set_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOOM_CHECK_RULES", "1")
    with pytest.raises(RuleCheckError, match="gives another result"):
        Pipeline("test", (simplifier(rule(zero_for_negate, Opcode.NEGATE)),)).run(parse(FEW))


def test_all_rules_on_random_modules() -> None:
    for seed in range(20):
        optimize(random_module(random.Random(seed)), options=PassOptions(check_rules=True))


@pytest.mark.slow
@pytest.mark.parametrize("opcode", sorted({case.opcode.value for case in CASES}))
def test_all_rules_on_the_cases_of_operations(opcode: str) -> None:
    for case in CASES:
        if case.opcode.value == opcode:
            optimize(build_module(case), options=PassOptions(check_rules=True))


# what does not settle


def test_rules_that_contradict_each_other_are_named() -> None:
    each = simplifier(rule(sine_to_cosine, Opcode.SIN), rule(cosine_to_sine, Opcode.COS))
    pipeline = Pipeline("circle", (FixedPoint((each,), limit=4),))
    with pytest.warns(UnsettledWarning) as caught:
        _, records = pipeline.run(parse(FEW), PassOptions())
    assert [str(w.message) for w in caught] == [
        "the fixed point of pipeline circle was given up after 4 rounds: still changing the module are "
        "algebraic-simplifier (sine_to_cosine, cosine_to_sine)"
    ]
    assert len(records) == 4
    assert records[-1].unsettled == ("sine_to_cosine", "cosine_to_sine")


def test_a_rule_that_goes_on_at_one_instruction_is_named() -> None:
    _, (record,) = Pipeline("once", (simplifier(rule(turned, Opcode.ADD)),)).run(parse(FEW), PassOptions())
    assert record.unsettled == ("turned",)
    assert record.rewrites == {"turned": 16}


def test_expansions_that_contradict_each_other_end() -> None:
    each = Expand(rules=RuleSet((rule(sine_to_cosine, Opcode.SIN), rule(cosine_to_sine, Opcode.COS))))
    _, (record,) = Pipeline("circle", (each,)).run(parse(FEW), PassOptions())
    assert record.unsettled == ("sine_to_cosine", "cosine_to_sine")


def test_what_settles_says_nothing() -> None:
    _, records = optimize(parse(FEW), options=PassOptions())
    assert all(not record.unsettled for record in records)


# computations keep their identity


def test_computations_are_told_apart_by_identity() -> None:
    """Two computations of one name, as a pass may leave them for a moment."""
    module = parse("HloModule m\n" + LOOP)
    condition, body, entry = module.computations
    other = HloComputation(body.name, condition.instructions, condition.root)
    loop = module.entry.root
    attributes = replace(loop.attributes, condition=other)
    root = replace(loop, attributes=attributes)
    again = HloModule("m", HloComputation("main", (*entry.instructions[:-1], root), root))
    seen: list[HloComputation] = []

    def look(old: HloComputation, current: HloComputation) -> HloComputation:
        seen.append(old)
        return rewrite_computation(
            current, lambda i, moved: replace(moved, name="") if moved.opcode is Opcode.ADD else moved
        )

    map_each_computation(again, look)
    assert {*map(id, seen)} == {id(other), id(body), id(again.entry)}
    assert np.size(seen) == 3


def test_a_function_may_see_to_what_instructions_call() -> None:
    """It gets the computations as they were, and `new` has those that it has made."""
    module = parse("HloModule m\n" + LOOP)
    new: dict[HloComputation, HloComputation] = {}
    seen: list[HloComputation] = []

    def changed(old: HloComputation, current: HloComputation) -> HloComputation:
        assert current is old
        seen.append(old)

        def visit(_: HloInstruction, moved: HloInstruction) -> HloInstruction:
            return replace(moved, name="") if moved.opcode is Opcode.ADD else calling(moved, new)

        return rewrite_computation(current, visit)

    after = map_each_computation(module, changed, new=new)
    assert seen == [*module.computations]
    condition, body, entry = module.computations
    assert set(new) == {body, entry}
    assert after.entry.root.attributes.condition is condition
    assert after.entry.root.attributes.body is not body


CALLS = """HloModule calls

reducer {
  a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b)
}

again {
  a.1 = f32[] parameter(0)  b.1 = f32[] parameter(1)  ROOT s.1 = f32[] add(a.1, b.1)
}

inner {
  p = f32[4] parameter(0)  ROOT n = f32[4] negate(p)
}

outer {
  q = f32[4] parameter(0)  ROOT c = f32[4] call(q), to_apply=inner
}

ENTRY main {
  x = f32[4,3] parameter(0)  z = f32[] constant(0)
  r = f32[4] reduce(x, z), dimensions={1}, to_apply=reducer
  t = f32[4] reduce(x, z), dimensions={1}, to_apply=again
  d = f32[4] call(r), to_apply=outer
  ROOT e = f32[4] subtract(d, t)
}
"""


@pytest.mark.parametrize("each", [CallInliner(), CommonSubexpressionElimination()], ids=lambda each: each.name)
def test_no_computation_is_rebuilt_for_its_calls_alone(each: HloPass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one at most once by a pass that changes those that it calls, too."""
    built: list[str] = []
    monkeypatch.setattr(
        rewrite, "rebuild", lambda c, *given: built.append(c.name) or rebuild(c, *given)  # type: ignore[func-returns-value]
    )
    module = parse(CALLS)
    after = each(module)
    verify(after)
    assert after is not module
    assert built.count("main") == 1
    assert len(built) == len(set(built))


@pytest.mark.parametrize("seed", range(12))
def test_what_was_there_before_a_pass_keeps_its_name(seed: int) -> None:
    module = random_module(random.Random(seed))
    before, names = module.to_text(), [i.name for i in module.instructions()]
    kept: list[tuple[HloModule, str]] = []
    pipeline("cpu").run(module, observer=lambda each, old, new: kept.extend([(old, old.to_text())]))
    assert [i.name for i in module.instructions()] == names
    assert module.to_text() == before
    assert all(old.to_text() == text for old, text in kept)
    reducer = binary_reducer(Opcode.ADD, ElementType.F32)
    assert [i.name for i in reducer.instructions] == ["x", "y", "add"]
