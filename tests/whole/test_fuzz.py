"""The fuzzer (`tools/fuzz/`): defects that are put in are found and made small; nothing else is a defect to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.evaluator import evaluate
from hloom.hlo.text.parser import parse

import hloom
from tools.fuzz import data, kinds, ledger
from tools.fuzz.agreement import How, differences
from tools.fuzz.array_programs import Block, Statement, Var, smaller_programs, to_source, without_dead
from tools.fuzz.case import Case, Outcome, Verdict, read, write
from tools.fuzz.command import Run, main
from tools.fuzz.definite import is_definite
from tools.fuzz.known import KNOWN
from tools.fuzz.minimise import Search, TimeIsUp, without_parts
from tools.fuzz.sameness import first_difference
from tools.fuzz.worker import ROOT, Drawn, Limits, Worker

CASES = 300


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(oracle=False) as made:
        yield made


def found_by(kind: str, defect: str, start: int) -> tuple[Case, Outcome]:
    """The smallest case, and its outcome, of the first case of a kind that shows a defect."""
    with Worker(prepare=f"support.fuzz_defects:{defect}", oracle=False) as worker:
        for seed in range(start, start + 400):
            outcome = worker.check(Drawn(kind, seed))
            if outcome.verdict is Verdict.FOUND:
                assert worker.last_case is not None
                search = Search(worker, worker.last_case, outcome, 60)
                search.run(kinds.KINDS[kind].minimised)
                with Worker(oracle=False) as healthy:
                    assert healthy.check(search.case).verdict is not Verdict.FOUND, "found without the defect, too"
                return search.case, search.outcome
    raise AssertionError(f"{defect} is not found by cases of {kind}")


@pytest.mark.first
@pytest.mark.parametrize(
    ("kind", "defect", "start", "signature", "most"),
    [
        pytest.param("text", "wrong_kernel", 150, "compiled code differ", 9, marks=pytest.mark.slow),
        pytest.param("text", "wrong_text", 56, "text: not read as it was printed", 6, marks=pytest.mark.slow),
        pytest.param("text", "crash", 71, "crash in printer", 9, marks=pytest.mark.slow),
        pytest.param("hlo", "wrong_rule", 61, "passes differ", 9, marks=pytest.mark.slow),
        pytest.param("hlo", "wrong_kernel", 5, "compiled code differ", 9, marks=pytest.mark.slow),
        ("hlo", "wrong_memory", 17, "compiled code", 8),
        ("array", "wrong_kernel", 4, "jit differs", 5),
        pytest.param("array", "wrong_derivative", 176, "jvp and differences differ", 6, marks=pytest.mark.slow),
    ],
)
def test_a_defect_is_found_and_made_small(kind: str, defect: str, start: int, signature: str, most: int) -> None:
    """`start`: a seed not long before one that shows it. `most`: lines of the smallest program, or its instructions."""
    case, outcome = found_by(kind, defect, start)
    assert signature in outcome.signature
    if kind == "array":
        assert case.program.count("\n") <= most, case.program
    else:
        assert case.program.count(" = ") <= most, case.program


@pytest.mark.parametrize("defect", ["hang", pytest.param("deadlock", marks=pytest.mark.slow)])
def test_a_hang_is_found(defect: str) -> None:
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] tanh(x) }"
    with Worker(Limits(processor=1.0, idle=10.0), prepare=f"support.fuzz_defects:{defect}", oracle=False) as worker:
        outcome = worker.check(Case("text", 0, text))
        assert outcome.verdict is Verdict.FOUND and "hang in printer" in outcome.signature
        assert "to_text" in outcome.message, "it says where the child was"
        assert worker.check(Case("text", 0, text.replace("tanh", "cosine"))).verdict is Verdict.OK


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_seed_is_a_case(kind: str, worker: Worker) -> None:
    """The same case in another process, which has other hashes."""
    for seed in (3, 101):
        worker.check(Drawn(kind, seed))
        theirs, mine = worker.last_case, kinds.KINDS[kind].draw(seed)
        assert theirs is not None and theirs.program == mine.program and theirs.options == mine.options
        for a, b in zip(theirs.inputs, mine.inputs, strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", [kind for kind in kinds.KINDS if kind != "limit"])
def test_some_cases_find_nothing(kind: str, worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(worker, tmp_path, minimise_seconds=0)
    for seed in range(5_000_000, 5_000_025 if kind == "hostile" else 5_000_010):
        run.one(kind, seed)
    assert not run.found, capsys.readouterr().out
    assert run.counts[kind, Verdict.OK] >= 2 or (kind == "hostile" and run.counts[kind, Verdict.REFUSED] > 20)
    assert f"{kind}:5000003 " in capsys.readouterr().out
    assert run.counts[kind, Verdict.UNSTABLE] <= 3, "what is unstable is not checked"


@pytest.mark.parametrize("kind", kinds.WITH_DATA)
def test_a_program_runs_with_many_sets_of_data(kind: str, worker: Worker) -> None:
    """The first set is drawn with the program; each set is a case of its own, here and in the child."""
    ran = 0
    for seed in range(5_000_000, 5_000_004):
        outcomes = worker.outcomes(Drawn(kind, seed, 0, 8))
        assert len(outcomes) in (1, 8) and not any(o.verdict is Verdict.FOUND for o in outcomes), outcomes
        ran += len(outcomes) == 8
        first = kinds.KINDS[kind].draw(seed)
        sets = [first, *(kinds.with_data(first, number) for number in range(1, 8))]
        assert len({case.id for case in sets}) == 8 and {case.program for case in sets} == {first.program}
        for case in sets[5:6]:
            worker.check(Drawn(kind, seed, 5))
            theirs = worker.last_case
            assert theirs is not None and theirs.id == case.id and theirs.options == case.options
            for a, b in zip(theirs.inputs, case.inputs, strict=True):
                assert a.dtype == b.dtype and a.tobytes() == b.tobytes()
    assert ran


@pytest.mark.parametrize("element", list(ElementType))
@pytest.mark.parametrize("flavour", data.FLAVOURS)
def test_each_flavour_has_numbers_of_each_type(flavour: str, element: ElementType) -> None:
    for dims in ((), (0,), (3, 5)):
        made = data.FLAVOURS[flavour](element, dims, 0, np.random.default_rng(0))
        assert np.shape(made) == dims and np.asarray(made).dtype == element.dtype


def test_a_crash_with_another_set_of_data_is_found(worker: Worker) -> None:
    """When the child has ended, the parent knows the set that ended it."""
    with Worker(prepare="support.fuzz_defects:crash_of_subnormals", oracle=False) as broken:
        programs = (broken.outcomes(Drawn("hlo", seed, 0, 8)) for seed in range(30))
        outcomes = next(outcomes for outcomes in programs if outcomes[-1].verdict is Verdict.FOUND)
        case = broken.last_case
        assert case is not None and case.data > 0 and "crash in compiled code" in outcomes[-1].signature
        assert broken.check(case).signature == outcomes[-1].signature
    assert worker.check(case).verdict is Verdict.OK


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("hostile", 400), ("store", 100), ("limit", 12), ("interrupt", 150)])
def test_attacks_find_nothing(kind: str, cases: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--kind", kind, "--cases", str(cases), "--minutes", "5", "--seed", "8", "--out", str(tmp_path)]
    assert main([*options, "--quiet", "--minimise", "0", "--no-jax"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "defect", "signature"),
    [
        ("store", "takes_all", "store: "),
        ("interrupt", "left_behind", ""),
    ],
)
def test_what_an_attack_is_for_is_found(kind: str, defect: str, signature: str) -> None:
    with Worker(prepare=f"support.fuzz_defects:{defect}", oracle=False) as worker:
        outcomes = (worker.check(Drawn(kind, seed)) for seed in range(60))
        first = next((outcome for outcome in outcomes if outcome.verdict is Verdict.FOUND), None)
    assert first is not None and signature in first.signature


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--no-jax", "--minimise", "10", "--out", str(tmp_path), "--most", "1"]
    broken = ["--prepare", "support.fuzz_defects:wrong_kernel"]
    assert main(["--kind", "hlo", "--cases", "100", *options, *broken]) == 1
    out = capsys.readouterr().out
    (path,) = tmp_path.glob("*.hlo")
    assert f"--replay {path}" in out and "compiled code differ" in out
    assert main(["--replay", str(path), "--no-jax", *broken]) == 1
    seed = path.stem.replace("_", ":")
    assert main(["--replay", seed, "--no-jax", *broken]) == 1
    assert main(["--replay", str(path), "--no-jax"]) == 0
    assert main(["--kind", "poetry"]) == 2


# ---- what is a difference

_CHAOS = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  one = f32[] constant(3)
  c = f32[4] broadcast(one), dimensions={}
  y = f32[4] multiply(x, c)
  z = f32[4] sine(y)
  big = f32[] constant(1e6)
  b = f32[4] broadcast(big), dimensions={}
  w = f32[4] multiply(z, b)
  ROOT r = f32[4] ROOT_OP(w)
}
"""
X = np.linspace(0.1, 1, 4, dtype=np.float32)


def verdict_of(operation: str, change: object) -> Verdict:
    """For the results of a program, changed."""
    module = parse(_CHAOS.replace("ROOT_OP", operation))
    (expected,) = evaluate(module, X)
    return differences(module, [X], [expected], [np.asarray(change(expected))], How())[0]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("operation", "change", "verdict"),
    [
        ("negate", lambda y: y, Verdict.OK),
        ("negate", lambda y: np.nextafter(y, np.float32(np.inf)), Verdict.OK),
        ("negate", lambda y: y * np.float32(1 + 2e-6), Verdict.OK),  # as far as errors of the sine go
        ("negate", lambda y: y * np.float32(1 + 1e-4), Verdict.FOUND),
        ("negate", lambda y: y + np.float32([0, 0, 0, 100]), Verdict.FOUND),
        ("negate", lambda y: np.where(y == y[1], np.nan, y).astype(np.float32), Verdict.FOUND),
        ("negate", lambda y: y.astype(np.float64), Verdict.FOUND),
        ("negate", lambda y: y[:3], Verdict.FOUND),
        ("sine", lambda y: -y, Verdict.OK),  # of some 1e6, with errors of 0.1 and more
        ("sine", lambda y: y + 5, Verdict.FOUND),  # never
        ("floor", lambda y: y + 1, Verdict.UNSTABLE),
        ("sign", lambda y: -y, Verdict.FOUND),  # far from where it jumps
    ],
)
def test_differences(operation: str, change: object, verdict: Verdict) -> None:
    assert verdict_of(operation, change) is verdict


def test_zeros_and_subnormal_numbers() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] multiply(x, x) }")
    x = np.float32([0, 1e-20])
    expected = evaluate(module, x)
    other = [np.float32([-0.0, 0])]
    assert differences(module, [x], expected, other, How())[0] is Verdict.FOUND
    assert differences(module, [x], expected, other, How(signed_zeros=False))[0] is Verdict.FOUND
    assert differences(module, [x], expected, other, How(signed_zeros=False, flush=True))[0] is Verdict.OK


_INFINITE = np.array([-np.inf - 0.7j, 1, 2], np.complex64)
_HUGE = np.array([3e38 + 3e38j, 3e38, 1e38], np.complex64)
_UNDERFLOW = np.array([-1e-41 + 1e-29j], np.complex64), np.array([3e-43 + 1e-37j], np.complex64)
_SIGN_BIT = (
    "{ x = f32[1] parameter(0)  s = f32[1] SOME  b = s32[1] bitcast-convert(s)  n = s32[] constant(31)"
    "  m = s32[1] broadcast(n), dimensions={}  p = s32[1] shift-right-arithmetic(b, m)  o = s32[] constant(1)"
    "  q = s32[1] broadcast(o), dimensions={}  r = s32[1] or(p, q)  ROOT y = f32[1] convert(r) }"
)
_TIMES = "f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] multiply(a, b) }"
_PRODUCT = "{ x = f32[3] parameter(0)  o = f32[] constant(1)  ROOT y = f32[] reduce(x, o), dimensions={0}, to_apply=f }"
_MULTIPLY = "{ x = c64[1] parameter(0)  z = c64[1] parameter(1)  ROOT y = c64[1] multiply(x, z) }"


@pytest.mark.parametrize(
    ("entry", "arguments", "verdict"),
    [
        pytest.param(
            "{ x = c64[3] parameter(0)  ROOT y = c64[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
            [_INFINITE], Verdict.UNSTABLE, id="BLAS",
        ),
        pytest.param(
            "{ x = c64[3] parameter(0)  ROOT y = f32[4] fft(x), fft_type=IRFFT, fft_length={4} }",
            [_HUGE], Verdict.UNSTABLE, id="a sum that overflows",
        ),
        pytest.param(_MULTIPLY, _UNDERFLOW, Verdict.OK, id="a product that underflows"),
        pytest.param(_MULTIPLY, [_UNDERFLOW[0] * 1e30, _UNDERFLOW[1] * 1e30], Verdict.FOUND, id="one that does not"),
        pytest.param(
            _MULTIPLY, [np.full(1, 3e38 + 3e38j, np.complex64)] * 2, Verdict.UNSTABLE, id="a product that overflows"
        ),
        pytest.param(
            _PRODUCT,
            [np.float32([1e30, 1e30, 1e-30])], Verdict.UNSTABLE, id="a product that overflows on the way",
        ),
        pytest.param(
            _PRODUCT,
            [np.float32([1e10, 1e10, 1e-10])], Verdict.FOUND, id="one that stays in range",
        ),
        pytest.param(
            _PRODUCT.replace("constant(1)", "constant(48)")
            .replace("y = f32[]", "y = f32[3]").replace("reduce(", "reduce-window(")
            .replace("dimensions={0}", "window={size=3 pad=2_0}"),
            [np.float32([1e-20, 1e20, 1e14])], Verdict.UNSTABLE, id="a product with padding that overflows on the way",
        ),
        pytest.param(
            "{ x = c64[1] parameter(0)  z = c64[1] parameter(1)  ROOT y = c64[1] power(x, z) }",
            [np.complex64([6e35 - 1e-30j]), np.complex64([2])], Verdict.UNSTABLE, id="a function that overflows",
        ),
        pytest.param(
            _SIGN_BIT.replace("SOME", "logistic(x)"), [np.float32([np.nan])], Verdict.UNSTABLE, id="the sign of NaN",
        ),
        pytest.param(
            _SIGN_BIT.replace("SOME", "copy(x)"), [np.float32([np.nan])], Verdict.FOUND, id="a sign that is given",
        ),
        pytest.param(
            _MULTIPLY.replace("multiply", "atan2"), [np.complex64([1e-20]), np.complex64([-1])], Verdict.UNSTABLE,
            id="a cut",
        ),
        pytest.param(
            _MULTIPLY.replace("multiply", "divide"), [np.zeros(1, np.complex64), np.complex64([2 - 3j])], Verdict.OK,
            id="a quotient that is zero",
        ),
    ],
)  # fmt: skip
def test_what_the_order_decides(entry: str, arguments: list[np.ndarray], verdict: Verdict) -> None:
    """Results with different signs in all elements."""
    module = parse(f"HloModule m\n{_TIMES}\nENTRY e {entry}")
    (expected,) = evaluate(module, *arguments)
    assert differences(module, arguments, [expected], [-expected], How())[0] is verdict


def test_integers_are_equal_or_not() -> None:
    module = parse("HloModule m\nENTRY e { x = s4[3] parameter(0)  ROOT y = s4[3] negate(x) }")
    x = np.array([1, 2, 3]).astype(parse(module.to_text()).entry.parameters[0].shape.element.dtype)
    expected = evaluate(module, x)
    assert differences(module, [x], expected, expected, How())[0] is Verdict.OK
    assert differences(module, [x], expected, [x], How())[0] is Verdict.FOUND


@pytest.mark.parametrize(
    ("operation", "line", "definite"),
    [
        ("r = f32[] add(a, b)", "reduce(x, c), dimensions={0}, to_apply=f", True),
        ("r = f32[] subtract(a, b)", "reduce(x, c), dimensions={0}, to_apply=f", False),
        ("r = f32[] divide(a, b)", "reduce(x, c), dimensions={0}, to_apply=f", False),
        ("n = f32[] negate(b)  ROOT r = f32[] maximum(a, n)", "reduce(x, c), dimensions={0}, to_apply=f", False),
        ("r = pred[] compare(a, b), direction=LT", "sort(x), dimensions={0}, to_apply=f", True),
        ("r = pred[] compare(a, b), direction=LE", "sort(x), dimensions={0}, to_apply=f", False),
        ("r = pred[] compare(a, b), direction=NE", "sort(x), dimensions={0}, to_apply=f", False),
    ],
)
def test_what_has_a_definite_result(operation: str, line: str, definite: bool) -> None:
    root = operation if "ROOT" in operation else f"ROOT {operation}"
    module = parse(
        f"HloModule m\nf {{ a = f32[] parameter(0)  b = f32[] parameter(1)  {root} }}\n"
        f"ENTRY e {{ x = f32[8] parameter(0)  c = f32[] constant(0)  ROOT y = {line} }}"
    )
    assert is_definite(module) is definite


@pytest.mark.parametrize(("kind", "definite"), [("", False), (", type=TOTALORDER", True)])
def test_a_sort_of_nan_needs_a_total_order(kind: str, definite: bool) -> None:
    module = parse(
        f"HloModule m\nf {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT"
        f"{kind} }}\nENTRY e {{ x = f32[8] parameter(0)  ROOT y = f32[8] sort(x), dimensions={{0}}, to_apply=f }}"
    )
    assert is_definite(module, [np.ones(8, np.float32)])
    assert is_definite(module, [np.full(8, np.nan, np.float32)]) is definite


@pytest.mark.parametrize(("element", "zero", "definite"), [("f32", "0", True), ("c64", "(0, 0)", False)])
def test_a_minimum_of_nan(element: str, zero: str, definite: bool) -> None:
    one = f"{element}[]"
    module = parse(
        f"HloModule m\nf {{ a = {one} parameter(0)  b = {one} parameter(1)  ROOT r = {one} minimum(a, b) }}\n"
        f"ENTRY e {{ x = {element}[8] parameter(0)  c = {one} constant({zero})\n"
        f"ROOT y = {one} reduce(x, c), dimensions={{0}}, to_apply=f }}"
    )
    dtype = {"f32": np.float32, "c64": np.complex64}[element]
    assert is_definite(module, [np.ones(8, dtype)])
    assert is_definite(module, [np.full(8, np.nan, dtype)]) is definite


def test_modules_that_say_the_same() -> None:
    module = parse(_CHAOS.replace("ROOT_OP", "negate"))
    assert first_difference(module, parse(module.to_text())) == ""
    for old, new in (("ROOT_OP", "sine"), ("constant(3)", "constant(4)"), ("(w)", "(b)"), ("y = ", "name = ")):
        text = _CHAOS.replace(old, new).replace("ROOT_OP", "negate")
        other = parse(text.replace("(y)", "(name)") if "name" in new else text)
        assert bool(first_difference(module, other)) is (old != "y = ")
    assert first_difference(module, replace(module, is_scheduled=True))


# ---- making small


def test_delta_debugging() -> None:
    tried = []

    def holds(parts: list[int]) -> bool:
        tried.append(parts)
        return {3, 77} <= set(parts)

    assert without_parts(range(100), holds) == [3, 77]
    assert len(tried) < 120
    assert without_parts([1, 2, 3], lambda parts: True) == []
    assert without_parts([1, 2, 3], lambda parts: len(parts) == 3) == [1, 2, 3]


def _statement(target: str, template: str, *arguments: str, blocks: tuple[Block, ...] = ()) -> Statement:
    return Statement((Var(target, (3,), "float32"),), template, arguments, blocks)


_BODY = Block(("i", "c"), (_statement("d", "jnp.tanh({0})", "c"), _statement("e", "{0} * 2", "d")), ("e",), "{}")
_PROGRAM = Block(
    ("x",),
    (
        _statement("a", "jnp.sin({0})", "x"),
        _statement("b", "{0} + {0}", "a"),
        _statement("l", "lax.fori_loop(0, 3, {f0}, {0})", "b", blocks=(_BODY,)),
        _statement("r", "jnp.exp({0})", "l"),
    ),
    ("r", "a"),
)


def test_smaller_programs_run() -> None:
    """Each is a program, and one of them is the smallest with a tanh in a loop."""
    x = np.ones(3, np.float32)
    program, smaller = _PROGRAM, True
    while smaller:
        smaller = False
        for candidate in smaller_programs(program, (x,)):
            source = to_source(candidate)
            run = kinds.KINDS["array"].check(Case("array", 0, source, (x,)), lambda name: None)
            assert run.verdict is Verdict.OK, source
            if candidate != program and "tanh" in source:
                program, smaller = candidate, True
                break
    assert to_source(program).count("\n") == 6, to_source(program)
    assert [s.targets[0].name for s in without_dead(replace(_PROGRAM, results=("b",))).statements] == ["a", "b"]


def test_a_search_ends_when_its_time_is_up(worker: Worker) -> None:
    search = Search(worker, Case("text", 0, "x"), Outcome(Verdict.FOUND, "", "s"), -1.0)
    with pytest.raises(TimeIsUp):
        search.shows(Case("text", 0, "y"))
    search.run(kinds.KINDS["text"].minimised)
    assert search.case.program == "x"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "complex64", "bool", "float8_e5m2"])
def test_a_reproduction_is_the_case(dtype: str, tmp_path: Path) -> None:
    import ml_dtypes

    array = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))
    case = Case("text", 7, "HloModule m \udc80\n", (array, array[0, 0]), {"target": "tpu"})
    again = read(write(tmp_path, "case", case, Outcome(Verdict.FOUND, "message", "signature")))
    assert (again.kind, again.seed, again.program, again.options) == ("text", 7, case.program, case.options)
    for a, b in zip(again.inputs, case.inputs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_no_defect_is_known() -> None:
    """Each defect that is found is mended. The list holds it until then."""
    assert KNOWN == ()


# ---- the ledger


def test_the_ledger_counts_cases(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    assert ledger.total(file) == ({}, {})
    several = {("text", "ok"): 4, ("text", "refused"): 1, ("hlo", "ok"): 8}
    ledger.add(["text", "hlo"], ledger.Seeds(3, 0, 5, 4), several, [], False, file)
    more = {("hlo", "ok"): 6, ("hlo", "FOUND"): 1}
    ledger.add(["hlo", "hlo"], ledger.Seeds(4, 10, 7, 1), more, ["it differs"], False, file)
    assert ledger.total(file) == ({"text": 3, "hlo": 9}, {"text": 5, "hlo": 15})
    first, second = ledger.lines(file)
    assert (first["seed"], first["start"], first["programs"], first["data"], first["jax"]) == (3, 0, 5, 4, None)
    assert first["verdicts"] == {"ok": 12, "refused": 1}
    assert second["found"] == ["it differs"] and second["version"].startswith(hloom.__version__)


def test_all_lines_of_the_ledger_can_be_run_again() -> None:
    for line in ledger.lines():
        assert set(line["cases"]) <= set(line["kinds"]) <= set(kinds.KINDS), line
        assert 0 < line["programs"] <= sum(line["cases"].values()) <= line["programs"] * line["data"], line


def test_the_documents_say_how_many() -> None:
    programs, cases = ledger.total()
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    counted = f"{programs.total():,} programs, {programs['op']:,} of them single operations"
    assert f"{cases.total():,} cases are in its ledger: {counted}" in text


# ---- five minutes


@pytest.mark.first
@pytest.mark.slow
def test_five_minutes_find_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside JAX where it is installed. A fast machine draws no more cases than CASES, so that a result can be had
    again; `make fuzz` draws others. Loops have a test of their own, `test_random_loops.py`."""
    options = ["--minutes", "5", "--cases", str(CASES), "--seed", "8", "--out", str(tmp_path), "--quiet"]
    assert main([*options, "--kind", "text,hlo,array"]) == 0, capsys.readouterr().out
