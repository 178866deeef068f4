"""Schedules that users give: their text, in place of a policy's, refused where results would change."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import ScheduleError
from hloom.hlo.targets import target_named
from hloom.numba_backend import stored_programs
from hloom.numba_backend.choices import schedules_of, with_schedules
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.schedule import text
from hloom.numba_backend.schedule.steps import (
    Accumulate,
    AnyOrder,
    Band,
    Collect,
    Jumps,
    Lanes,
    Order,
    Pack,
    Padded,
    Padding,
    Parallel,
    Part,
    Partial,
    Share,
    Slice,
    Split,
    Step,
    Unroll,
    Vectors,
)  # fmt: skip

import hloom
import hloom.numpy as jnp
from hloom import command_line, lax, scheduling

pytestmark = pytest.mark.usefixtures("narrow_registers")

EVERY_STEP = (
    Part("j", "strip"), Part("i", "block", size=12), Split("j", "column", 16, "short"), Split("p", "k0", Name("each")),
    Order("block", "strip", "j"), Unroll("i"), Partial("i"), Lanes("j"),
    Pack("b", "panel", "column", (("p", 256), ("j", 16))),
    Pack("a", "rows", "row", (("i", 6),)), Accumulate("row", adds=True), AnyOrder(), Collect("row", "totals", most=3),
    Padding("t", "n", "b"), Padded("a"), Padded("b", Name("of_column")),
    Band("a", Name("low"), Name("high"), by_columns=True),
    Parallel(("block",)), Slice("i"), Vectors(256), Share(0),
)  # fmt: skip


def test_a_text_is_read_as_it_is_written() -> None:
    schedules = {"dot.3": EVERY_STEP, "*": (Jumps(), Vectors(128))}
    written = text.to_text(schedules)
    assert {name: list(map(str, each)) for name, each in text.parse(written).items()} == {
        name: list(map(str, each)) for name, each in schedules.items()
    }
    assert text.to_text(text.parse(written)) == written
    assert list(text.parse("\n" * 10_000 + written)) == list(schedules), "a long text, to its end"
    assert {type(s).__name__ for s in EVERY_STEP} | {"Jumps"} == set(text.STEPS), "every step"


def arrays(m: int, k: int, n: int, *, transposed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers: sums are exact in any order."""
    rng = np.random.default_rng(m * n + k)
    x, y = (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (n, k) if transposed else (k, n)))
    return x, y


def product(x: Any, y: Any) -> Any:
    return x @ y


def compiled(schedules: Any, *inputs: np.ndarray, f: Callable[..., Any] = product) -> Any:
    module = with_schedules(hloom.make_hlo(f)(*inputs), text.schedules_of_user(schedules))
    return NumbaCompiler().compile(module)


X, Y = arrays(300, 64, 300)


def steps_of_policy() -> tuple[Step, ...]:
    return compiled({}, X, Y).kernels()["dot"].schedule


def test_a_printed_kernel_is_a_schedule() -> None:
    (printed,) = compiled({}, X, Y).kernels().values()
    (again,) = compiled(printed, X, Y).kernels().values()
    assert again == printed and again.schedule == printed.schedule


def _changed(**changes: Any) -> tuple[Step, ...]:
    """The policy's schedule where the steps named by kind and loop differ: `Split_row=4`."""
    found = []
    for step in steps_of_policy():
        name = getattr(step, "outer", "") or getattr(step, "loop", "") or getattr(step, "into", "")
        key = f"{type(step).__name__}_{name}"
        found.append(replace(step, **changes[key]) if key in changes else step)
    return tuple(found)


OTHERS: dict[str, Callable[[], Any]] = {
    "rows of a tile": lambda: _changed(Split_row={"size": 4}),
    "wider tiles": lambda: _changed(
        Part_strip={"size": 96}, Split_column={"size": 32}, Pack_panel={"layout": (("p", 64), ("j", 32))}
    ),
    "a part of a size": lambda: _changed(Part_block={"size": 50}),
    "another name": lambda: str(text.to_text({"dot": steps_of_policy()})).replace("'column'", "'c'"),
    "nothing but sums": lambda: "dot:\n Accumulate('j')\n Parallel(('i',))",
    "two tiles": lambda: """dot:
        Split('j', 'wide', 64, 'short')
        Split('j', 'narrow', 16, 'short')
        Split('i', 'row', 4, 'rest')
        Order('wide', 'row', 'narrow', 'p', 'i', 'j')
        Unroll('i')
        Lanes('j')
        Pack('b', 'copied', 'narrow', (('p', 64), ('j', 16)))
        Accumulate('narrow')
        Slice('j')""",
    "narrow vectors, one thread": lambda: {"*": "Vectors(bits=256)\nShare(0)"},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_schedules_give_the_same_results(name: str) -> None:
    given = OTHERS[name]()
    executable = compiled({"dot": given} if isinstance(given, tuple) else given, X, Y)
    np.testing.assert_array_equal(executable.execute([X, Y])[0], X @ Y)
    assert executable.kernels()["dot"] != compiled({}, X, Y).kernels()["dot"] or "one thread" in name


REFUSED: dict[str, tuple[Any, str]] = {
    "a step beside the name": ("dot: Vectors(256)", "line 1 of the schedules: 'dot: Vectors(256)' is no step"),
    "no kernel": ({"dog": "Vectors(256)"}, "no kernel dog; the program has dot"),
    "a tile larger than a part": ({"dot": lambda: _changed(Split_column={"size": 32})}, "room for 16"),
    "a block larger than the array": (
        "dot:\n Split('i', 'row', 512)\n Order('j', 'row', 'i', 'p')\n Accumulate('i')\n Parallel(('j',))",
        "row shifts blocks of 512, and there are but 300 elements",
    ),
    "a copy that is too small": (
        "dot:\n Pack('a', 'copied', 'i', (('p', 63),))\n Accumulate('j')\n Parallel(('i',))", "p has 64 elements",
    ),
    "collected sums without room": (
        "dot:\n Split('p', 'k0', 16, 'short')\n Split('i', 'row', 2, 'short')\n Order('j', 'k0', 'row', 'p', 'i')\n"
        " Unroll('i')\n Accumulate('row', adds=True)\n Collect('j', 'all', most=149)\n Parallel(('j',))",
        "row has 300 elements, and all room for 298",
    ),
    "a stack that is too small": (
        "dot:\n Pack('a', 'copied', 'i', (('p', 99999999),))\n Accumulate('j')\n Parallel(('i',))",
        "a local array of 99999999 elements",
    ),
    "a shift in a short block": (
        "dot:\n Split('j', 'c', 64, 'short')\n Split('j', 'd', 16)\n Accumulate('j')\n Slice('i')", "d cannot shift",
    ),
    "a summed axis that shifts": ({"dot": "Split('p', 'k0', 4)\nAccumulate('j')\nSlice('i')"}, "would count twice"),
    "no such loop": ({"dot": "Unroll('q')\nAccumulate('j')\nSlice('i')"}, "no loop q: there are i, j, p"),
    "no such dimension": ({"dot": "Slice('q')\nAccumulate('j')"}, "no dimension q: there are i, j, p"),
    "no such operand": (
        {"dot": "Pack('c', 'copied', 'i', ())\nAccumulate('j')\nSlice('i')"}, "no operand c: there are a, b",
    ),
    "a part without a size": (
        {"dot": "Part('i', 'mine')\nAccumulate('j')\nParallel(('mine',))"}, "needs a size",
    ),
    "nowhere to keep sums": ({"dot": "Slice('i')"}, "one step Accumulate"),
    "a name of a parameter": ({"dot": "Split('i', 'out', 4, 'rest')\nAccumulate('j')\nSlice('j')"}, "'out' is a name"),
    "a name of a function": ({"dot": "Split('i', 'exp', 4, 'rest')\nAccumulate('j')\nSlice('j')"}, "'exp' is a name"),
    "a word of Python": ({"dot": "Split('i', 'for', 4, 'rest')\nAccumulate('j')\nSlice('j')"}, "'for' is a name"),
    "a name that is made": (
        {"dot": "Split('i', 'sums0', 4, 'rest')\nAccumulate('j')\nSlice('j')"}, "'sums0' is a name",
    ),
    "one name twice": (
        {"dot": "Split('i', 'c', 4, 'rest')\nSplit('j', 'c', 4, 'rest')\nAccumulate('c')\nSlice('j')"}, "two things",
    ),
    "a band that nobody knows": (
        {"dot": "Band('a', <low>, <high>)\nAccumulate('j')\nSlice('i')"}, "the kernel's own schedule does not",
    ),
    "a size that nobody knows": (
        {"dot": "Split('p', 'k0', <low>, 'short')\nAccumulate('j')\nSlice('i')"}, "no parameter low",
    ),
    "loops for all kernels": ({"*": "Slice('i')"}, "is for one kernel"),
    "jumps of one kernel": ({"dot": "Jumps()"}, "is for a program"),
    "code": ({"dot": "__import__('os').system('true')"}, "is no step"),
    "code as a name": ({"dot": "Split('i', 'a: pass\\nimport os', 4)"}, "short words"),
    "code as a number": ({"dot": "Split('i', 'c', 2 ** 70)"}, "words, numbers and tuples"),
    "no step": ({"dot": "Tile('i')"}, "no step Tile: there are Part, Split"),
    "no schedules": (None, "schedules are a text, or steps by the names of kernels, not None"),
    "no steps": ({"dot": 5}, "the schedule of dot is its steps or their lines, not 5"),
    "no argument": ({"dot": "Tile"}, "'Tile' is no step"),
    "a word in a file": ("dot:\n hello there", "line 2 of the schedules: 'hello there' is no step"),
    "a step of no kernel": ("Slice('i')", "line 1 of the schedules: a step comes after the name"),
    "a kernel twice": ("dot:\n Slice('i')\ndot:\n", "line 3 of the schedules: there are two schedules of dot"),
    "two widths": ({"*": "Vectors(256)\nVectors(512)"}, "* has one step Vectors, not Vectors(bits=256) and Vectors"),
    "two shares": ("dot:\n Share(0)\n Share(9)", "dot has one step Share"),
    "an odd width": ({"*": "Vectors(257)"}, "128, 256 or 512"),
    "a bad name": ({"d ot": "Vectors(256)"}, "is no name of a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_schedule_that_does_not_fit_is_refused(name: str) -> None:
    given, reason = REFUSED[name]
    if isinstance(given, dict):
        given = {kernel: steps() if callable(steps) else steps for kernel, steps in given.items()}
    with pytest.raises(ScheduleError, match=re.escape(reason)):
        compiled(given, X, Y)


def test_loops_that_an_emitter_fixes_cannot_be_changed() -> None:
    with pytest.raises(ScheduleError, match=r"sin.*: its emitter fixes the order of its loops"):
        name = next(iter(compiled({}, X, f=jnp.sin).kernels()))
        compiled({name: "Slice('i')\nAccumulate('i')"}, X, f=jnp.sin)


def _random_steps(rnd: random.Random) -> tuple[Step, ...]:
    """A few changes of the policy's schedule, and of what they gave."""
    steps = list(steps_of_policy())
    for _ in range(rnd.randrange(1, 4)):
        k = rnd.randrange(len(steps))
        size = rnd.choice([2, 3, 4, 8, 16, 32, 64])
        loop = rnd.choice(["i", "j", "p", "column", "row", "block", "strip"])
        match rnd.randrange(8), steps[k]:
            case 0, _:
                del steps[k]
            case 1, Split() as split:
                steps[k] = replace(split, size=size, tail=rnd.choice(["shift", "rest", "short"]))
            case 2, Part() as part:
                steps[k] = replace(part, size=size)
            case 3, Pack() as pack:
                steps[k] = replace(pack, layout=tuple((n, rnd.choice([16, 64, size])) for n, _ in pack.layout))
            case 4, Order() as order:
                steps[k] = Order(*rnd.sample(order.loops, len(order.loops)))
            case 5, Accumulate():
                steps[k] = Accumulate(loop, rnd.random() < 0.5)
            case 6, _:
                steps.insert(k, rnd.choice([Unroll(loop), Lanes(loop), AnyOrder(), Slice(loop)]))
            case 7, _:
                at = next((n for n, s in enumerate(steps) if isinstance(s, Order)), 0)
                steps.insert(at, Split(loop, "new", size, rnd.choice(["shift", "rest", "short"])))
                if len(steps) > at + 1 and isinstance(order := steps[at + 1], Order):
                    loops = list(order.loops)
                    loops.insert(rnd.randrange(len(loops) + 1), "new")
                    steps[at + 1] = Order(*loops)
    return tuple(steps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_changes_are_refused_or_right(seed: int) -> None:
    rnd = random.Random(seed)
    done = 0
    for _ in range(60):
        x, y = arrays(rnd.choice([41, 300]), rnd.choice([64, 100]), 300, transposed=rnd.random() < 0.5)
        y = y if y.shape[0] == x.shape[1] else y.T
        steps = _random_steps(rnd)
        try:
            found = compiled({"dot": steps}, x, y)
        except ScheduleError:
            continue
        done += 1
        np.testing.assert_array_equal(found.execute([x, y])[0], x @ y, err_msg="\n".join(map(str, steps)))
    assert done >= 3


def test_a_convolution_keeps_what_lies_in_memory() -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 20, 20, 8)).astype(np.float32)
    w = np.random.default_rng(1).integers(-3, 4, (3, 3, 8, 24)).astype(np.float32)

    def convolution(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    plain = compiled({}, x, w, f=convolution)
    expected = plain.execute([x, w])[0]
    found = {name: t for name, t in plain.kernels().items() if Padded in map(type, t.schedule)}
    ((name, kernel),) = found.items()

    def changed(change: Callable[[Step], Step]) -> Any:
        return {name: [change(step) for step in kernel.schedule]}

    fewer = changed(lambda s: replace(s, size=3) if isinstance(s, Split) and s.loop == "p" else s)
    try:
        np.testing.assert_array_equal(compiled(fewer, x, w, f=convolution).execute([x, w])[0], expected)
    except ScheduleError as error:
        assert "in pieces" in str(error)
    wider = changed(lambda s: replace(s, size=s.size * 2) if isinstance(s, Split) and s.loop == "o" else s)
    with pytest.raises(ScheduleError, match=r"lies in memory as the steps along o say|in pieces"):
        compiled(wider, x, w, f=convolution)


def test_another_schedule_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_programs, "is_watched", lambda: False)
    module = hloom.make_hlo(product)(X, Y)
    others = [with_schedules(module, text.parse(f"*:\n Vectors({bits})\n")) for bits in (128, 256, 256)]
    keys = [stored_programs.key_of(m, target_named("cpu")) for m in (module, *others)]
    assert len(set(keys)) == 3 and keys[2] == keys[3] and None not in keys
    again = hloom.hlo.parse(others[0].to_text())
    assert schedules_of(again) == {"*": (Vectors(128),)}, "in the module's text"


# ---- as users write it


def test_around_a_function() -> None:
    x = jnp.asarray(X)
    f = hloom.jit(lambda x: jnp.sum(jnp.linspace(0.0, 1.0, 300) * (x @ x.T)))
    g = hloom.schedule(f, {"dot": "Accumulate('j')\nParallel(('i',))"}, check=True)
    np.testing.assert_allclose(g(x), f(x), rtol=1e-5)
    np.testing.assert_allclose(hloom.grad(g)(x), hloom.grad(f)(x), rtol=1e-5)
    scheduled = hloom.schedule(f, {"*": (Vectors(128),)})
    assert scheduled.lower(x).compile().kernels()["dot"].schedule[-1] == Vectors(128)
    assert Vectors(128) not in f.lower(x).compile().kernels()["dot"].schedule, "another program of the same function"
    later = f.lower(x).compile({"schedule": "*:\n Vectors(128)"})
    assert Vectors(128) in later.kernels()["dot"].schedule
    with pytest.raises(ScheduleError, match="no kernel dog; the program has"):
        hloom.schedule(f, {"dog": "Vectors(128)"})(x)
    with pytest.raises(ScheduleError, match="is no step"):
        hloom.schedule(f, "dot:\n nothing()")
    with pytest.raises(ValueError, match="must be a str"):
        hloom.jit(f, compiler_options={"schedule": 1})


def test_results_are_compared_with_the_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hloom.schedule(lambda x: {"a": x @ x.T, "b": 1}, {"*": "Vectors(256)"}, check=True)
    assert f(jnp.asarray(X))["b"] == 1
    monkeypatch.setattr(scheduling, "_elements", lambda x: np.asarray(x) + np.random.default_rng().uniform(0, 99))
    with pytest.raises(ScheduleError, match=r"under its schedule, result 0 of .* DIFFERS"):
        f(jnp.asarray(X))


def test_a_product_of_blas_becomes_a_kernel() -> None:
    x, y = arrays(512, 512, 512)
    assert not compiled({}, x, y).kernels()
    made = compiled({"dot": "Vectors(256)"}, x, y)
    assert made.kernels()["dot"].schedule[-1] == Vectors(256)
    np.testing.assert_array_equal(made.execute([x, y])[0], x @ y)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, schedule = tmp_path / "product.hlo", tmp_path / "schedule.txt"
    program.write_text(hloom.make_hlo(product)(X, Y).to_text())
    assert command_line.main(["opt", str(program), "--kernels"]) == 0
    printed = capsys.readouterr().out
    schedule.write_text(printed.replace("size=6", "size=4"))
    assert command_line.main(["opt", str(program), "--kernels", "--schedule", str(schedule)]) == 0
    assert "outer='row', size=4" in capsys.readouterr().out
    assert command_line.main(["check", str(program), "--compare", "--schedule", str(schedule)]) == 0
    assert command_line.main(["run", str(program), "--random", "--repeat", "2", "--schedule", str(schedule)]) == 0
    assert "fastest" in capsys.readouterr().err
    assert command_line.main(["opt", str(program), "--schedule", str(schedule)]) == 0
    assert "hloom_schedules=" in capsys.readouterr().out
    schedule.write_text("dog:\n Vectors(256)\n")
    assert command_line.main(["run", str(program), "--random", "--schedule", str(schedule)]) == 1
    assert "no kernel dog; the program has dot" in capsys.readouterr().err
    schedule.write_text("dot:\n what(\n")
    assert command_line.main(["run", str(program), "--random", "--schedule", str(schedule)]) == 1
    assert f"{schedule}: line 2" in capsys.readouterr().err
