"""The pass manager: order, fixed points, records, switches, dumps, and the verifier, which names the wrong pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hloom.hlo.backend import optimize
from hloom.hlo.builder import make_computation, make_constant, make_instruction, make_module, make_parameter
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import UnsupportedError, VerificationError
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import FixedPoint, PassOptions, PassOptionsError, Pipeline, UnsettledWarning
from hloom.hlo.passes.rewrite import rewrite_computation
from hloom.hlo.shape import Shape
from hloom.hlo.text.parser import parse
from hloom.numba_backend.pipeline import pipeline as numba_pipeline

F32 = ElementType.F32


@dataclass(frozen=True)
class Step:
    """A pass made of a function, for these tests."""

    name: str
    function: Callable[[HloModule], HloModule]

    def __call__(self, module: HloModule) -> HloModule:
        return self.function(module)


def chain(length: int, opcode: Opcode = Opcode.NEGATE) -> HloModule:
    x = make_parameter(0, Shape.array(F32, (3,)), "x")
    y = x
    for _ in range(length):
        y = make_instruction(opcode, [y])
    return make_module("chain", make_computation("main", y, [x]))


def without_last(module: HloModule) -> HloModule:
    """Takes one instruction off the end of a chain."""
    entry = module.entry
    if len(entry.instructions) == 1:
        return module
    kept = entry.instructions[:-1]
    return replace(module, entry=HloComputation(entry.name, kept, kept[-1]))


def test_records_say_what_each_pass_did() -> None:
    pipeline = Pipeline("test", (Step("shorten", without_last), Step("nothing", lambda m: m)))
    module, records = pipeline.run(chain(2), PassOptions())
    assert len(module.entry.instructions) == 2
    assert [(r.name, r.instructions_before, r.instructions_after, r.changed) for r in records] == [
        ("shorten", 3, 2, True),
        ("nothing", 2, 2, False),
    ]
    assert all(r.milliseconds >= 0 for r in records)


def test_fixed_point_runs_until_nothing_changes() -> None:
    calls: list[str] = []

    def counted(module: HloModule) -> HloModule:
        calls.append("other")
        return module

    step = FixedPoint((Step("shorten", without_last), Step("other", counted)))
    module, _ = Pipeline("test", (step,)).run(chain(5), PassOptions())
    assert len(module.entry.instructions) == 1
    assert len(calls) == 5  # once a change, and not again for a module that it has left alone
    with pytest.warns(UnsettledWarning, match="after 3 rounds: still changing the module are shorten$"):
        module, records = Pipeline("test", (replace(step, limit=3),)).run(chain(5), PassOptions())
    assert len(module.entry.instructions) == 3
    assert len(records) == 6
    assert [r.unsettled for r in records] == [(), (), (), (), ("shorten",), ()]


@dataclass(frozen=True)
class Idempotent(Step):
    """One that finds nothing in its own result."""

    is_idempotent: ClassVar[bool] = True


def test_an_idempotent_pass_does_not_visit_its_own_result() -> None:
    step = FixedPoint((Step("nothing", lambda m: m), Idempotent("shorten", without_last)))
    _, records = Pipeline("test", (step,)).run(chain(5), PassOptions())
    assert [r.name for r in records] == ["nothing", "shorten", "nothing"]
    step = FixedPoint((Idempotent("once", without_last), Step("shorten", without_last)))
    module, _ = Pipeline("test", (step,)).run(chain(5), PassOptions())
    assert len(module.entry.instructions) == 1  # it does visit the result of another one


def test_disabled_passes_do_not_run() -> None:
    pipeline = Pipeline("test", (Step("shorten", without_last), Step("other", lambda m: m)))
    module = chain(2)
    after, records = pipeline.run(module, PassOptions(disabled=frozenset({"shorten"})))
    assert after is module
    assert [r.name for r in records] == ["other"]


def test_unknown_pass_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(PassOptionsError, match=r"no pass named fusoin; known: .*\bcse\b.*\bfusion\b"):
        optimize(chain(1), options=PassOptions(disabled=frozenset({"fusoin", "dce"})))


def test_options_from_the_environment() -> None:
    read = PassOptions.from_environment
    assert read({}) == PassOptions()
    everything = {"HLOOM_VERIFY_PASSES": "1", "HLOOM_DUMP_TO": "/d", "HLOOM_DISABLE_PASSES": "cse, dce,"}
    assert read(everything) == PassOptions(verify=True, dump_to="/d", disabled=frozenset({"cse", "dce"}))
    assert not read({"HLOOM_VERIFY_PASSES": "0"}).verify
    assert read({"HLOOM_CHECK_RULES": "1"}) == PassOptions(check_rules=True)


def test_environment_is_used_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "fusion,memory-scheduling")
    monkeypatch.setenv("HLOOM_DUMP_TO", str(tmp_path / "dumps"))
    module, records = optimize(chain(3))
    assert not {r.name for r in records} & {"fusion", "memory-scheduling"}
    assert all(i.opcode is not Opcode.FUSION for i in module.instructions())
    assert (tmp_path / "dumps" / "chain").is_dir()


def break_shapes(module: HloModule) -> HloModule:
    """A wrong pass: it changes shapes."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return moved if old.opcode is Opcode.PARAMETER else replace(moved, shape=Shape.array(F32, (4,)))

    return replace(module, entry=rewrite_computation(module.entry, visit))


def test_the_verifier_names_the_pass_that_broke_the_module() -> None:
    shorten = Step("shorten", without_last)
    pipeline = Pipeline("test", (shorten, Step("bad", break_shapes), shorten))
    with pytest.raises(VerificationError, match="module chain failed after bad"):
        pipeline.run(chain(3), PassOptions(verify=True))
    pipeline.run(chain(3), PassOptions(verify=False))


def test_the_verifier_names_broken_input() -> None:
    with pytest.raises(VerificationError, match="module chain failed before any pass"):
        Pipeline("test", ()).run(break_shapes(chain(3)), PassOptions(verify=True))


def test_dumps_are_numbered_and_readable(tmp_path: Path) -> None:
    pipeline = Pipeline(
        "test", (Step("shorten", without_last), Step("nothing", lambda m: m), Step("odd name/..", without_last))
    )
    options = PassOptions(dump_to=str(tmp_path))
    pipeline.run(chain(3), options)
    pipeline.run(replace(chain(3), name="../escape"), options)
    pipeline.run(chain(1), options)
    folders = sorted(p.name for p in tmp_path.iterdir())
    assert folders == ["_escape", "chain", "chain.1"]
    files = sorted(p.name for p in (tmp_path / "chain").iterdir())
    stems = ["000.before", "001.shorten", "002.odd_name_..", "003.after"]
    assert files == sorted(f"{stem}.{kind}" for stem in stems for kind in ("hlo", "dot"))
    assert len(parse((tmp_path / "chain" / "001.shorten.hlo").read_text()).entry.instructions) == 3
    assert (tmp_path / "chain" / "001.shorten.dot").read_text().startswith("digraph")


def test_a_dump_folder_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(PassOptionsError, match="HLOOM_DUMP_TO"):
        optimize(chain(1), options=PassOptions(dump_to=str(file)))


def test_unknown_target() -> None:
    with pytest.raises(UnsupportedError, match="'abacus'"):
        optimize(chain(1), target="abacus")


def test_pass_names_are_distinct_words() -> None:
    names = [type(p).__name__ for p in numba_pipeline().passes()]
    by_name = {p.name: type(p).__name__ for p in numba_pipeline().passes()}
    assert len(set(by_name)) == len(set(names))
    assert all(name == name.lower() and " " not in name and "," not in name for name in by_name)


def test_optimizing_twice_changes_nothing_more() -> None:
    module, _ = optimize(chain(5, Opcode.SIN))
    again, _ = optimize(module)
    assert len(list(again.instructions())) == len(list(module.instructions()))


def test_deep_and_long_programs_finish() -> None:
    """10,000 instructions in a row, which no pass may walk recursively or in quadratic time."""
    x = make_parameter(0, Shape.array(F32, (8,)), "x")
    y = x
    for k in range(5000):
        y = make_instruction(Opcode.SIN if k % 2 else Opcode.ADD, [y] if k % 2 else [y, x])
        if k % 10 == 0:
            y = make_instruction(Opcode.MULTIPLY, [y, make_constant(np.full(8, 1.0, np.float32))])
    module = make_module("long", make_computation("main", y, [x]))
    after, records = optimize(module, options=PassOptions(disabled=frozenset({"fusion"})))
    assert len(after.entry.instructions) == 5001  # the multiplications by one are gone
    assert sum(r.milliseconds for r in records) < 20_000
