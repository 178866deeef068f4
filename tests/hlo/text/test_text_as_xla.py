"""Our text is XLA's: its parser reads what we print, and what it then prints reads back to the same module."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo import HloModule, Opcode, TpuTarget, evaluate, optimize, parse, verify

from hloom.backend_check.op_table import CASES, build_module
from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with
from support.random_modules import random_module

pytest.importorskip("jax")

from jaxlib import _hlo


def print_options(**settings: bool) -> _hlo.HloPrintOptions:
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def assert_xla_agrees(module: HloModule) -> None:
    """XLA keeps all but the order of instructions, where any will do."""
    ours = module.to_text()
    theirs = _hlo.hlo_module_from_text(ours).to_string(print_options())
    assert _sorted(parse(theirs).to_text()) == _sorted(ours)


def _sorted(text: str) -> list[list[str]]:
    """The computations, each with its lines sorted."""
    return [sorted(part.splitlines()) for part in text.split("\n\n")]


def _xla_cannot_say(instruction: str) -> bool:
    """XLA's parser refuses `padding=`, which its printer writes for a scalar. It does not know rng_bernoulli either."""
    return instruction.endswith(("padding=", "distribution=rng_bernoulli"))


@pytest.mark.parametrize("instruction", [i for i in INSTRUCTIONS if not _xla_cannot_say(i)])
def test_each_form(instruction: str) -> None:
    assert_xla_agrees(parse(module_with(instruction)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_hlo(path: Path) -> None:
    assert_xla_agrees(parse(path.read_text()))


def test_op_cases() -> None:
    """Asynchronous pairs aside: XLA prints them as sugar, and wants a start, not a parameter, before each done."""
    asynchronous = (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)
    cases = [case for case in CASES if case.opcode not in asynchronous]
    for case in cases[:: max(1, len(cases) // 400)]:
        module = build_module(case)
        if not any(_xla_cannot_say(line) for line in module.to_text().splitlines()):
            assert_xla_agrees(module)


@pytest.mark.parametrize(
    "settings",
    [
        {"print_operand_shape": True},
        {"print_operand_shape": True, "include_layout_in_shapes": False},
        {"print_percent": False},
        {"print_percent": False, "print_program_shape": False},
        {"canonicalize_instruction_names": True, "print_percent": False, "print_program_shape": False},
        {"canonicalize_computations": True},
        {"print_metadata": False, "print_backend_config": False, "print_control_dependencies": False},
    ],
    ids=lambda settings: "+".join(settings),
)
def test_every_way_in_which_xla_prints(settings: dict[str, bool]) -> None:
    """Each gives the same program: it computes the same, and XLA prints it in the same fingerprint."""
    for path in RECORDED[::3]:
        xla = _hlo.hlo_module_from_text(path.read_text())
        module = parse(xla.to_string(print_options(**settings)))
        verify(module)
        again = _hlo.hlo_module_from_text(module.to_text())
        if settings.get("include_layout_in_shapes", True):
            assert _without_metadata(again) == _without_metadata(xla), path.stem


def _without_metadata(module: _hlo.HloModule) -> list[list[str]]:
    """The computations as XLA's canonical form prints them, sorted: names and their order are a printer's choice."""
    options = _hlo.HloPrintOptions.canonical()
    options.print_large_constants = True
    options.print_backend_config = False
    text = re.sub(r"tmp_\d+", "tmp", module.to_string(options))
    return sorted(sorted(part.splitlines()[1:]) for part in text.split("\n\n")[1:])


@pytest.mark.parametrize("form", ["canonical", "short_parsable"])
def test_short_forms(form: str) -> None:
    """Computations in place, operands with types, names without `%`."""
    text = module_with("f32[2]{0} reduce(%x, %f), dimensions={1}, to_apply=%sum")
    options = getattr(_hlo.HloPrintOptions, form)()
    module = parse(_hlo.hlo_module_from_text(text).to_string(options))
    verify(module)
    assert module.entry.root.opcode is Opcode.REDUCE and str(module.entry.root.shape) == "f32[2]"


def test_sugar_and_short_cuts() -> None:
    """XLA reads these as we do: omitted types, instructions in operands, tuples of constants, asynchronous sugar."""
    text = """HloModule m
    ENTRY e {
      x = f32[4,2] parameter(0)
      d = (f32[], s32[2]) constant((1, {2, 3}))
      s = ((f32[4,2]), f32[4,2], u32[]) negate-start(x)
      u = f32[4,2] negate-done(s)
      i = s32[2] get-tuple-element(d), index=1
      ROOT q = (f32[4,2], s32[2]) tuple(maximum(u, x), i)
    }"""
    _hlo.hlo_module_from_text(text)
    module = parse(text)
    verify(module)
    theirs = parse(_hlo.hlo_module_from_text(module.to_text()).to_string(print_options()))
    verify(theirs)
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for found in (evaluate(module, x), evaluate(theirs, x)):
        np.testing.assert_array_equal(found[0], x)
        np.testing.assert_array_equal(found[1], [2, 3])


@pytest.mark.parametrize("seed", range(20))
def test_random_modules(seed: int) -> None:
    module = random_module(random.Random(seed))
    if not any(_xla_cannot_say(line) for line in module.to_text().splitlines()):
        assert_xla_agrees(module)


@pytest.mark.parametrize("seed", [*range(4), *range(5, 14), *range(15, 22)])
def test_random_modules_for_the_tpu(seed: int) -> None:
    """With tiles and memory spaces. Not with packed predicates: XLA's parser forgets how constants are packed. (The
    programs of seeds 4 and 14 are constants alone, which lie as the caller wants them.)"""
    module, _ = optimize(random_module(random.Random(seed)), TpuTarget(vmem_bytes=16384))
    text = module.to_text()
    if not any(_xla_cannot_say(line) for line in text.splitlines()):
        assert_xla_agrees(module)
        assert ":T(" in text


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
