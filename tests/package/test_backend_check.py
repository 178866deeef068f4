"""The check of backends: good ones pass, and each defect is found by the check that is there for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo.backend import Executable, register_backend, unregister_backend
from hloom.hlo.evaluator_backend import EvaluatorCompiler, EvaluatorExecutable

from hloom import hlo
from hloom.backend_check.__main__ import main
from hloom.backend_check.checking import check_backend
from hloom.backend_check.report import Report

NDArray = np.ndarray[Any, Any]


class Wrong(EvaluatorExecutable):
    """Results that are off by one."""

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        return [np.asarray(r + r.dtype.type(1)) if r.dtype.kind == "f" else r for r in super().execute(arguments)]


class Sharing(EvaluatorExecutable):
    """Results that are views of arguments."""

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        return hlo.evaluate(self.module, *arguments)


class Writing(EvaluatorExecutable):
    """Arguments that are used as scratch memory."""

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        results = super().execute(arguments)
        for array in arguments:
            np.asarray(array)[...] = 0
        return results


class Lenient(EvaluatorExecutable):
    """Arguments of any type."""

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        shapes = self.parameter_shapes
        given = [*arguments, *(np.zeros(s.dimensions, s.element.dtype) for s in shapes[len(arguments) :])]
        return super().execute([np.resize(a, s.dimensions).astype(s.element.dtype) for a, s in zip(given, shapes)])


class Forgetful(EvaluatorExecutable):
    """Arguments that are kept in the executable for a while."""

    def execute(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        self.kept = arguments
        time.sleep(1e-3)
        return super().execute(self.kept)


class Pickled(EvaluatorExecutable):
    """An executable that can be pickled."""

    __reduce__ = object.__reduce__  # type: ignore[assignment]


class Broken(EvaluatorCompiler):
    """A backend with a defect."""

    def __init__(self, kind: Callable[[hlo.HloModule], Executable], any_target: bool = False) -> None:
        self._kind = kind
        self._any_target = any_target

    def compile(self, module: hlo.HloModule, **options: Any) -> Executable:
        if not self._any_target:
            super().compile(module, **options)
        return self._kind(module)


class Refusing(EvaluatorCompiler):
    """A backend without a sine."""

    def compile(self, module: hlo.HloModule, **options: Any) -> Executable:
        if any(i.opcode is hlo.Opcode.SIN for i in module.instructions()):
            raise hlo.UnsupportedError("no sine here")
        return super().compile(module, **options)


class Failing(EvaluatorCompiler):
    """A backend that dies of a cosine."""

    def compile(self, module: hlo.HloModule, **options: Any) -> Executable:
        assert all(i.opcode is not hlo.Opcode.COS for i in module.instructions()), "cosine"
        return super().compile(module, **options)


@pytest.fixture
def checked() -> Iterator[Callable[..., Report]]:
    def check(factory: Callable[[], EvaluatorCompiler], **options: Any) -> Report:
        register_backend("broken", factory)
        return check_backend("broken", **options)

    yield check
    unregister_backend("broken")


@pytest.mark.parametrize(
    ("kind", "any_target", "found_by"),
    [
        (Wrong, False, "results_have_the_declared_types"),
        (Sharing, False, "results_share_no_memory"),
        (Writing, False, "donated_arguments"),
        (Lenient, False, "wrong_arguments_are_refused"),
        (EvaluatorExecutable, True, "targets"),
        (Forgetful, False, "calls_from_several_threads"),
        (Pickled, False, "descriptions"),
    ],
)
def test_a_defect_of_the_interface_is_found(
    checked: Callable[..., Report], kind: Any, any_target: bool, found_by: str
) -> None:
    report = checked(lambda: Broken(kind, any_target), parts=["protocol"])
    assert found_by in [outcome.name for outcome in report.of("failed")], str(report)
    assert not report.is_good


def test_wrong_results_are_found(checked: Callable[..., Report]) -> None:
    report = checked(lambda: Broken(Wrong), only=lambda name: name.startswith(("add-f32", "scalars", "add-s32")))
    failed = [outcome.name for outcome in report.of("failed")]
    assert "scalars" in failed and any(name.startswith("add-f32") for name in failed)
    assert any(outcome.name.startswith("add-s32") for outcome in report.of("passed"))


def test_what_is_written_to_is_found(checked: Callable[..., Report]) -> None:
    report = checked(lambda: Broken(Writing), parts=["ops"], only=lambda name: name.startswith("add-f32x23"))
    assert "the program wrote to an argument" in report.of("failed")[0].text


def test_what_is_refused_is_no_failure(checked: Callable[..., Report]) -> None:
    report = checked(Refusing, parts=["ops"], only=lambda name: name.startswith(("sine", "cosine-f32")))
    assert report.is_good and len(report.of("refused")) == 20 and report.of("passed")
    assert str(report).splitlines()[-1].startswith("  20x sine-") and "no sine here" in str(report)


def test_a_crash_names_its_case(checked: Callable[..., Report]) -> None:
    report = checked(Failing, parts=["ops"], only=lambda name: name.startswith(("sine-f32", "cosine-f32")))
    assert {outcome.name.split("-")[0] for outcome in report.of("failed")} == {"cosine"}
    assert {outcome.name.split("-")[0] for outcome in report.of("passed")} == {"sine"}


def test_unknown_parts() -> None:
    with pytest.raises(ValueError, match="no part all; there are protocol, programs, ops"):
        check_backend("evaluator", parts=["all"])


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["backend_check", *words])
    return main()


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "evaluator", "--every", "500") == 0
    assert "ops " in capsys.readouterr().out
    register_backend("broken", lambda: Broken(Wrong))
    try:
        assert run(monkeypatch, "broken", "--part", "programs", "-k", "scalars") == 1
        captured = capsys.readouterr()
        assert "failed: programs scalars" in captured.err and "AssertionError: result 0 differs by" in captured.out
    finally:
        unregister_backend("broken")
    for words, said in ((["tyo"], "no backend named 'tyo'"), (["toy", "--every", "0"], "--every is at least 1")):
        with pytest.raises(SystemExit, match="2"):
            run(monkeypatch, *words)
        assert said in capsys.readouterr().err
