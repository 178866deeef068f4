"""Simplification once for all modules that differ in sizes and ordinary constants."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo.analyses.forms import ModuleForm, with_sizes
from hloom.hlo.analyses.observed_literals import ObservedLiteral
from hloom.hlo.analyses.size_classes import classes_of
from hloom.hlo.errors import HloError
from hloom.hlo.ir import HloModule
from hloom.hlo.literal import Literal
from hloom.hlo.passes.layout import layout_assignment
from hloom.hlo.passes.layout.flow import turns_back
from hloom.hlo.passes.layout.layout_assignment import LayoutAssignment
from hloom.hlo.passes.manager import ByForm, FixedPoint, Pipeline
from hloom.hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from hloom.hlo.passes.simplify.constant_folding import ConstantFolding
from hloom.hlo.passes.simplify.dead_code_elimination import DeadCodeElimination
from hloom.hlo.support.observed import Observations, Trial
from hloom.hlo.verifier import verify
from hloom.numba_backend.pipeline import pipeline

from hloom import hlo
from support.known_kernels import forget_known
from support.random_modules import random_module

SIMPLIFY = FixedPoint(
    (AlgebraicSimplifier(), ConstantFolding(), CommonSubexpressionElimination(), DeadCodeElimination())
)
PLAIN = Pipeline("plain", (SIMPLIFY,))
OBSERVED = Pipeline("observed", (ByForm((SIMPLIFY,)),))


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget_known()
    yield
    forget_known()


def _module(body: str) -> HloModule:
    return hlo.parse("HloModule m\n\nENTRY main {\n" + body + "\n}\n")


def _of(run: Pipeline, module: HloModule) -> tuple[str, list[tuple[str, dict[str, int]]]]:
    new, records = run.run(module)
    return new.to_text(), [(r.name, dict(r.rewrites)) for r in records]


MEAN = """x = f32[N,30]{1,0} parameter(0)
    n = f32[] constant(C)
    one = f32[] constant(1)
    share = f32[] divide(one, n)
    shares = f32[N,30]{1,0} broadcast(share), dimensions={}
    p = f32[N,30]{1,0} multiply(x, shares)
    q = f32[N,30]{1,0} negate(p)
    z = f32[] constant(0)
    zeros = f32[N,30]{1,0} broadcast(z), dimensions={}
    y = f32[N,30]{1,0} maximum(q, zeros)
    flat = f32[M]{0} reshape(y)
    w = f32[N,30]{1,0} reshape(flat)
    twice = f32[N,30]{1,0} multiply(x, shares)
    ROOT s = f32[N,30]{1,0} subtract(w, twice)"""


def _mean(n: int, constant: str) -> HloModule:
    return _module(MEAN.replace("N", str(n)).replace("M", str(30 * n)).replace("C", constant))


def _refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("it is known")

    monkeypatch.setattr(AlgebraicSimplifier, "rewrite", refuse)


def test_a_module_of_the_form_is_not_simplified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another size nor another number of elements, whose reciprocal and its negative are in the result."""
    first = _of(OBSERVED, _mean(40, "1200"))
    assert first == _of(PLAIN, _mean(40, "1200"))
    expected = _of(PLAIN, _mean(50, "1500"))
    _refusing(monkeypatch)
    found = _of(OBSERVED, _mean(50, "1500"))
    assert found == expected
    assert found[0] != first[0]
    assert str(np.float32(-1) / np.float32(1500))[:8] in found[0]


def test_the_records_are_those_of_the_first_module() -> None:
    _, first = OBSERVED.run(_mean(40, "1200"))
    _, second = OBSERVED.run(_mean(50, "1500"))
    assert [(r.name, r.instructions_before, r.instructions_after, r.changed) for r in first] == [
        (r.name, r.instructions_before, r.instructions_after, r.changed) for r in second
    ]


CONSTANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "quotients by powers of two are products": ("divide(x, b)", ("3", "8", "5", "0.25", "-2", "1e-39", "7")),
    "powers": ("power(x, b)", ("2", "2.5", "3", "0.5")),
    "equal constants are one": ("add(multiply(x, b), multiply(x, d))", ("0.5", "0.25", "7", "0.5")),
    "signs of sums": ("add(maximum(x, b), z)", ("2", "-2", "3")),
    "sums of numbers": ("multiply(x, add(b, d))", ("0.5", "-0.5", "0.25", "-1.5")),
}
BODY = """x = f32[N]{0} parameter(0)
    c = f32[] constant(C)
    e = f32[] constant(0.5)
    k = f32[] constant(0)
    b = f32[N]{0} broadcast(c), dimensions={}
    d = f32[N]{0} broadcast(e), dimensions={}
    z = f32[N]{0} broadcast(k), dimensions={}
"""


def _nested(text: str) -> str:
    """`add(multiply(x, b), d)` as instructions."""
    lines: list[str] = []

    def of(expression: str) -> str:
        if "(" not in expression:
            return expression
        opcode, _, rest = expression.partition("(")
        depth, parts, part = 0, [], ""
        for letter in rest[:-1]:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and not depth:
                parts.append(part)
                part = ""
            else:
                part += letter
        operands = [of(p.strip()) for p in (*parts, part)]
        lines.append(f"    t{len(lines)} = f32[N]{{0}} {opcode}({', '.join(operands)})")
        return f"t{len(lines) - 1}"

    of(text)
    lines[-1] = "    ROOT" + lines[-1][3:]
    return "\n".join(lines)


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_that_decides_otherwise(name: str) -> None:
    expression, constants = CONSTANTS[name]
    for constant in (*constants, *reversed(constants)):
        for size in (40, 6):
            text = (BODY + _nested(expression)).replace("N", str(size)).replace("C", constant)
            assert _of(OBSERVED, _module(text)) == _of(PLAIN, _module(text)), (constant, size)


SIZES: dict[str, str] = {
    "slices that meet": """x = f32[N]{0} parameter(0)
        a = f32[K]{0} slice(x), slice={[0:K]}
        b = f32[10]{0} slice(x), slice={[K:N]}
        ROOT c = f32[N]{0} concatenate(a, b), dimensions={0}""",
    "a slice of all": """x = f32[N]{0} parameter(0)
        ROOT a = f32[17]{0} slice(x), slice={[0:17]}""",
    "equal shapes": """x = f32[N]{0} parameter(0)
        y = f32[N]{0} reverse(x), dimensions={0}
        a = f32[17]{0} slice(y), slice={[0:17]}
        b = f32[K]{0} slice(y), slice={[0:K]}
        ROOT c = (f32[17]{0}, f32[K]{0}) tuple(a, b)""",
    "a reshape of nothing": """x = f32[N]{0} parameter(0)
        a = f32[N,1]{1,0} reshape(x)
        ROOT b = f32[1,N]{1,0} transpose(a), dimensions={1,0}""",
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_decides_otherwise(name: str) -> None:
    for size in (30, 27, 17, 40, 27, 30):
        if "17]" in SIZES[name] and size < 17:
            continue
        text = SIZES[name].replace("N", str(size)).replace("K", str(size - 10))
        assert _of(OBSERVED, _module(text)) == _of(PLAIN, _module(text)), size


def test_integers_that_follow_from_sizes_are_not_observed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size has another form, and nothing would be found again."""
    body = """i = s32[N]{0} parameter(0)
        last = s32[] constant(K)
        limit = s32[N]{0} broadcast(last), dimensions={}
        ROOT c = s32[N]{0} minimum(i, limit)"""
    observed: list[int] = []

    def counted(*given: Any) -> Observations:
        observed.append(1)
        return Observations(*given)

    monkeypatch.setattr("hloom.hlo.passes.by_form.Observations", counted)
    counts = []
    for size in (40, 50, 60, 40, 45):
        module = _module(body.replace("N", str(size)).replace("K", str(size - 1 if size != 45 else 39)))
        assert _of(OBSERVED, module) == _of(PLAIN, module)
        counts.append(len(observed))
    assert counts == [1] * 5


@pytest.mark.parametrize(("end", "is_measured"), [("negate(t)", False), ("transpose(t), dimensions={1,0}", True)])
def test_a_transpose_is_measured_where_another_one_undoes_it(
    end: str, is_measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether an array is large says nothing of a program that only turns it."""
    runs: list[HloModule] = []

    def counted(module: HloModule) -> bool:
        runs.append(module)
        return turns_back(module)

    monkeypatch.setattr(layout_assignment, "turns_back", counted)
    run = Pipeline("layouts", (ByForm((LayoutAssignment(),)),))
    for n in (40, 40_000):
        shape = f"{n},30" if "transpose" in end else f"30,{n}"
        run.run(
            _module(
                f"""x = f32[{n},30]{{1,0}} parameter(0)
                turned = f32[30,{n}]{{1,0}} transpose(x), dimensions={{1,0}}
                t = f32[30,{n}]{{1,0}} exponential(turned)
                ROOT y = f32[{shape}]{{1,0}} {end}"""
            )
        )
    assert (len(runs) > 1) == is_measured


def test_who_looks_at_the_passes_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    OBSERVED.run(_mean(40, "1200"))
    seen: list[str] = []
    OBSERVED.run(_mean(50, "1500"), observer=lambda each, before, after: seen.append(each.name))
    assert "algebraic-simplifier" in seen


def test_a_pass_that_hashes_sizes_gets_numbers() -> None:
    class Hashing:
        name = "hashing"

        def __call__(self, module: HloModule) -> HloModule:
            assert {i.shape: 1 for i in module.entry.instructions}
            return module

    run = Pipeline("hashing", (ByForm((Hashing(), SIMPLIFY)),))
    for n in (40, 50):
        assert _of(run, _mean(n, "1200"))[0] == _of(PLAIN, _mean(n, "1200"))[0]


def test_an_error_of_a_pass_is_its_own() -> None:
    class Failing:
        name = "failing"

        def __call__(self, module: HloModule) -> HloModule:
            raise HloError(f"no {module.entry.parameters[0].shape}")

    run = Pipeline("failing", (ByForm((Failing(),)),))
    for n in (40, 50):
        with pytest.raises(HloError, match=rf"no f32\[{n},30\]"):
            run.run(_mean(n, "1200"))


def test_a_module_that_another_program_has_made_keeps_its_lines_and_names() -> None:
    def named(text: str, name: str, line: int) -> HloModule:
        metadata = f', metadata={{op_name="f/{name}" source_file="{name}.py" source_line={line}}}'
        return _module(text.replace("negate(p)", f"negate(p){metadata}").replace("p =", f"{name} =").replace(
            "(p)", f"({name})"))  # fmt: skip

    texts = []
    for run in (OBSERVED, PLAIN):
        run.run(named(MEAN.replace("N", "40").replace("M", "1200").replace("C", "1200"), "first", 3))
        second = named(MEAN.replace("N", "50").replace("M", "1500").replace("C", "1500"), "second", 7)
        texts.append(run.run(second)[0].to_text())
    assert texts[0] == texts[1]
    assert "second.py" in texts[0]
    assert "first" not in texts[0]


def test_an_observed_literal() -> None:
    value = Literal(np.float32(3000))

    def observed(of: Literal) -> tuple[Observations, ObservedLiteral]:
        seen = Observations((of,))
        return seen, ObservedLiteral(of, 0, seen)

    def holds(seen: Observations, number: float) -> bool:
        return Trial(seen, (Literal(np.float32(number)),)).holds()

    seen, x = observed(value)
    reciprocal = x.changed(lambda a: np.asarray(np.float32(1) / a))
    assert holds(seen, 4000)
    assert Trial(seen, (Literal(np.float32(4000)),)).number(reciprocal) == Literal(np.float32(1) / np.float32(4000))
    assert not holds(seen, 1)  # its reciprocal is not ordinary
    seen, x = observed(value)
    assert x.asked(lambda a: a > 100)
    assert holds(seen, 101)
    assert not holds(seen, 99)
    seen, x = observed(value)
    assert x != Literal(np.float32(0))
    assert x != Literal(np.float64(3000))
    assert holds(seen, 99)
    assert x == value
    assert not holds(seen, 99)
    seen, x = observed(value)
    assert x.array == 3000
    assert not holds(seen, 3001)
    with pytest.raises(TypeError):
        hash(x)
    seen, x = observed(Literal(np.float32(0.5)))
    assert type(x.changed(lambda a: a * 2)) is Literal
    assert not holds(seen, 0.25)


def changed(module: HloModule, rng: random.Random) -> HloModule | None:
    """The module with other numbers for its sizes and its ordinary constants; None if these are not allowed."""
    form, classes = ModuleForm(module), classes_of(module.computations)
    if not classes.hold(form.sizes):
        return None
    change: Callable[[int], int] = rng.choice([lambda n: n + 1, lambda n: 2 * n, lambda n: n + 5, lambda n: 3 * n])
    new = [change(n) if rng.random() < 0.7 else n for n in classes.sizes(form.sizes)]
    sizes, done = classes.places(new), {}
    constants: dict[Literal, Any] = {c: Literal(c.array * rng.choice((2, -1, 0.5, 3, 1))) for c in form.constants}
    for computation in module.computations:
        done[computation] = with_sizes(computation, sizes, constants, done)
    found = replace(module, entry=done[module.entry])
    try:
        verify(found)
    except HloError:
        return None
    return found if ModuleForm(found).structure == form.structure else None


def compared(module: HloModule, rng: random.Random) -> int:
    """Run the backend's passes up to fusion on a module and on others of its form; how many were compared."""
    whole = pipeline("cpu")
    first = Pipeline("first", whole.steps[: [isinstance(s, ByForm) for s in whole.steps].index(True) + 1])
    plain = Pipeline("plain", tuple(first.plain_steps()))
    count = 0
    for other in (module, *[changed(module, rng) for _ in range(3)]):
        if other is not None:
            assert first.run(other)[0].to_text() == plain.run(other)[0].to_text()
            count += 1
    return count


@pytest.mark.parametrize("seed", range(12))
def test_random_modules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random modules have small arrays: here sizes of 2 are none of the form, too."""
    for module in ("forms", "size_classes"):
        monkeypatch.setattr(f"hloom.hlo.analyses.{module}.FEW", 1)
    rng = random.Random(seed)
    forget_known()
    assert sum([compared(random_module(rng), rng) for _ in range(3)]) >= 3
