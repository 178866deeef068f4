"""`hloom/errors.md` has a section for each public error, with a program that raises it; `hloom explain` prints it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import hloom
from hloom.command_line.explain import PAGE, sections

BASES = ("HloError", "JAXTypeError", "JAXIndexError")
"""Raised as one of their subclasses; in the table at the end of the page."""
WITHOUT_PROGRAM = ("CollectiveError", "EmptyQueueError", "VerificationError")
"""A program for them needs several devices, waits for a minute, or needs a pass that is wrong."""


def test_every_error_has_a_section() -> None:
    names = {name for name in hloom.errors.__all__ if isinstance(getattr(hloom.errors, name), type)}
    assert sections().keys() == names - {*BASES}
    table = PAGE.read_text().rpartition("## Base classes")[2]
    assert re.findall(r"^\| (\w+) \|", table, re.MULTILINE)[1:] == list(BASES)


@pytest.mark.parametrize("name", sections())
def test_the_program_of_a_section_raises_its_error(name: str) -> None:
    """The outputs are real (`test_readme.py`): this looks at the class."""
    shown = re.findall(r"```text\n(\w+): ", sections()[name])
    if name in WITHOUT_PROGRAM:
        assert not shown
        return
    (raised,) = shown
    assert issubclass(getattr(hloom.errors, raised), getattr(hloom.errors, name))


def test_errors_of_traced_values_name_their_section() -> None:
    with pytest.raises(hloom.errors.TracerBoolConversionError) as found:
        hloom.jit(lambda x: x if x > 0 else -x)(1.0)
    assert str(found.value).endswith("\n  `hloom explain TracerBoolConversionError` says more.")
    assert str(found.value).count("hloom explain") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ([], 0, "OperandError\n"),
        (["OperandError"], 0, "Operands have shapes or dtypes that do not go together."),
        (["hloom.errors.OperandError"], 0, "OperandError\n\n"),
        (["OperandEror"], 2, "there is no error OperandEror: perhaps OperandError"),
        (["x"], 2, "there is no error x\n"),
    ],
)
def test_explain(arguments: list[str], code: int, expected: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "hloom", "explain", *arguments], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == code and expected in ran.stdout + ran.stderr
