"""Our text is XLA's: its parser takes what we print, and what it prints of that reads back to the same module."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hloom.hlo import HloModule, parse

from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with
from support.op_table import CASES, build_module
from support.random_modules import random_module

pytest.importorskip("jax")

from jaxlib import _hlo


def assert_xla_agrees(module: HloModule) -> None:
    """XLA keeps all but the order of instructions, where any will do."""
    ours = module.to_text()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    theirs = _hlo.hlo_module_from_text(ours).to_string(options)
    assert _sorted(parse(theirs).to_text()) == _sorted(ours)


def _sorted(text: str) -> list[list[str]]:
    """The computations, each with its lines sorted."""
    return [sorted(part.splitlines()) for part in text.split("\n\n")]


def _xla_cannot_say(instruction: str) -> bool:
    """The padding of a scalar: XLA's printer writes `padding=`, which its parser refuses."""
    return instruction.endswith("padding=")


@pytest.mark.parametrize("instruction", [i for i in INSTRUCTIONS if not _xla_cannot_say(i)])
def test_each_form(instruction: str) -> None:
    assert_xla_agrees(parse(module_with(instruction)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_hlo(path: Path) -> None:
    assert_xla_agrees(parse(path.read_text()))


def test_op_cases() -> None:
    for case in CASES[:: max(1, len(CASES) // 200)]:
        assert_xla_agrees(build_module(case))


@pytest.mark.parametrize("seed", range(20))
def test_random_modules(seed: int) -> None:
    module = random_module(random.Random(seed))
    if not any(_xla_cannot_say(line) for line in module.to_text().splitlines()):
        assert_xla_agrees(module)


@pytest.mark.parametrize(
    "text",
    [
        'HloModule m, frontend_attributes={a="b\\n\\"}",c={d = 1}}\nENTRY e { ROOT x = f32[] parameter(0) }',
        "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\nENTRY e { ROOT x = f32[] parameter(0) }",
        "HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}\n"
        "ENTRY e { ROOT x = f32[2,3] parameter(0) }",
        "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[2]{0:T(128)S(1)} parameter(0) }",
        "HloModule m\nENTRY e { ROOT x = f32[4] constant({nan(0x1), -nan, 0.1, 1e-45}) }",
    ],
)
def test_headers_layouts_and_odd_values(text: str) -> None:
    assert_xla_agrees(parse(text))
