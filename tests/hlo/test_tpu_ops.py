"""The op cases, compiled for targets with tiles, packing and padding in their buffers, against the evaluator.

There are also random layouts besides the TPU's, inside programs and for parameters and results. Kernels run on guarded
memory: an access outside a buffer ends the process. All bits of the buffers are ones before the program runs (as
floats, NaN), so that padding that gets into a result is seen.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.target import CpuTarget, Target
from hloom.hlo.text.parser import parse
from hloom.hlo.tpu_target import TpuTarget
from hloom.numba_backend.compiler import NumbaCompiler

from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from tests.support.case_forms import element_types, form, one_of_each_form
from tests.support.comparing import assert_same_arrays
from tests.support.guarded import GuardedProgram, small_pieces
from tests.support.nest_modules import assert_close, nest_module, whole_arguments
from tests.support.parts import assert_each
from tests.support.random_modules import random_arguments, random_module
from tests.support.random_targets import RandomTarget, with_random_entry

ALL_ONES = 0xFF
OPCODES = sorted({case.opcode.value for case in CASES})
SAMPLE = 256
"""In each mode one of so many cases is tested by default, each time others; the slow tests have all forms of them."""


@dataclass(frozen=True)
class Mode:
    """Where layouts come from. `entry`: parameters and results have random layouts too: "dense" or "any"."""

    name: str
    target: Target
    entry: str = ""

    def of(self, module: HloModule, seed: int = 0) -> HloModule:
        return with_random_entry(module, seed, tiled=self.entry == "any") if self.entry else module


MODES = (
    Mode("tpu", TpuTarget()),
    Mode("tpu-pred-bits", TpuTarget(pred_bits=1)),
    Mode("random-0", RandomTarget(0)),
    Mode("random-1", RandomTarget(1)),
    Mode("random-2-any-entry", RandomTarget(2), "any"),
    Mode("tpu-any-entry", TpuTarget(), "any"),
    Mode("cpu-dense-entry", CpuTarget(), "dense"),
    Mode("cpu-any-entry", CpuTarget(), "any"),
)
"""Two of each kind: a TPU's tiles inside, random layouts inside, the same at the borders too, at the borders only."""
INSIDE, BORDERS = MODES[:4], MODES[4:]


def sampled(mode: Mode) -> list[OpCase]:
    number = MODES.index(mode)
    return [case for case in CASES if zlib.crc32(case.id.encode()) % SAMPLE == number]


@functools.cache
def _chosen() -> dict[str, list[tuple[Mode, OpCase]]]:
    """By opcode, the cases and their modes. Cases of one form differ in element types only. The first of them is in a
    mode with layouts inside and in one with layouts at the borders; of the others, one of each packing, and one of
    each element type that the operation does not have yet, are in any mode. The rest have types of the same widths,
    which a layout does not tell apart; `test_ops.py` has them without layouts."""
    found: dict[str, list[tuple[Mode, OpCase]]] = {opcode: [] for opcode in OPCODES}
    firsts = {case.id for case in one_of_each_form(CASES)}
    hashes = {case.id: zlib.crc32(case.id.encode()) for case in CASES}
    seen: set[Hashable] = set()
    for case in sorted(CASES, key=lambda case: (case.id not in firsts, hashes[case.id])):
        number, own = divmod(hashes[case.id], len(MODES))
        opcode = case.opcode.value
        new = {form(case, packing=True), *((opcode, element) for element in element_types(case))} - seen
        if case.id in firsts:
            found[opcode] += [(INSIDE[number % 4], case), (BORDERS[number // 4 % 2 * 2 + number % 2], case)]
        elif new:
            found[opcode].append((MODES[own], case))
        seen |= new
    return found


def all_of(mode: Mode, opcode: str) -> list[OpCase]:
    return [case for own, case in _chosen()[opcode] if own is mode]


def check(mode: Mode, case: OpCase) -> None:
    seed = zlib.crc32(case.id.encode())
    inputs = make_inputs(case)
    module = mode.of(build_module(case), seed)
    with small_pieces():
        program = GuardedProgram(module, target=mode.target, at_end=seed % 2 == 0, pattern=ALL_ONES)
    check_results(case, program.run(inputs), evaluate(module, *inputs))


@pytest.mark.parametrize(
    "mode, case", [pytest.param(mode, case, id=f"{mode.name}-{case.id}") for mode in MODES for case in sampled(mode)]
)
def test_op_agrees_with_evaluator(mode: Mode, case: OpCase) -> None:
    check(mode, case)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("opcode", OPCODES)
def test_all_cases_of_an_op_agree_with_evaluator(mode: Mode, opcode: str) -> None:
    """One test for each opcode, so that a run without them does not collect all cases."""
    assert_each(all_of(mode, opcode), functools.partial(check, mode), lambda case: case.id)


def test_every_form_is_tested_inside_and_at_the_borders_and_every_packing_and_type() -> None:
    tested = {mode: [case for opcode in OPCODES for case in all_of(mode, opcode)] for mode in MODES}
    for modes in (INSIDE, BORDERS):
        assert {form(case) for mode in modes for case in tested[mode]} == {form(case) for case in CASES}
    every = [case for cases in tested.values() for case in cases]
    assert {form(case, packing=True) for case in every} == {form(case, packing=True) for case in CASES}
    for cases in tested.values():
        assert len(cases) > 400 and len({case.opcode for case in cases}) > 0.7 * len(OPCODES)
    types = [{(case.opcode, element) for case in cases for element in element_types(case)} for cases in (every, CASES)]
    assert types[0] == types[1]


def drawn(count: int, by_default: int) -> list[object]:
    """Random programs by their seeds, each in one of the modes with layouts inside only, and in one with layouts of
    parameters and results; each mode has as many programs."""
    return [
        pytest.param(mode, seed, id=f"{mode.name}-{seed}", marks=() if seed < by_default else (pytest.mark.slow,))
        for seed in range(count)
        for mode in (INSIDE[seed % 4], BORDERS[(seed + seed // 4) % 4])
    ]


@pytest.mark.parametrize(("mode", "seed"), drawn(40, by_default=8))
def test_random_programs_agree_with_evaluator(mode: Mode, seed: int) -> None:
    """Loops, branches, calls, every family of ops."""
    module = mode.of(random_module(random.Random(seed)), seed)
    arguments = random_arguments(module, seed, special=False)
    executable = NumbaCompiler().compile(module, target=mode.target)
    assert_same_arrays(evaluate(module, *arguments), executable.execute(arguments), 2e-4)


@pytest.mark.parametrize(("mode", "seed"), drawn(40, by_default=8))
def test_random_nests_agree_with_evaluator(mode: Mode, seed: int) -> None:
    """Much that fuses, updates in place, element types of every width."""
    module = mode.of(nest_module(random.Random(seed)), seed)
    arguments = whole_arguments(module, seed)
    with small_pieces():
        program = GuardedProgram(module, target=mode.target, at_end=seed % 2 == 0, pattern=ALL_ONES)
    assert_close(program.run(arguments), evaluate(module, *arguments))


def test_a_read_of_padding_is_noticed() -> None:
    """The pattern of the tests above is no number that comes through unseen."""
    assert np.isnan(np.full(4, ALL_ONES, np.uint8).view(np.float32)).all()


@pytest.mark.parametrize("layout", ["{1,0:T(4,4)(3,5)}", "{1,0:T(8,128)}", "{1,0:T(3)(2)}", "{0,1:T(4,4)(3,5)}"])
def test_a_value_that_waits_in_an_output_is_read_where_it_lies(layout: str) -> None:
    """Three loops over a row; the index of each is taken apart into tiles anew."""
    shape = f"f32[7,23]{layout}"
    module = parse(
        f"""HloModule m, entry_computation_layout={{({shape})->{shape}}}
        max {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }}
        sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
        ENTRY e {{ x = f32[7,23] parameter(0)  low = f32[] constant(-inf)  zero = f32[] constant(0)
          m = f32[7] reduce(x, low), dimensions={{1}}, to_apply=max
          n = f32[7,23] broadcast(m), dimensions={{0}}  d = f32[7,23] subtract(x, n)  y = f32[7,23] exponential(d)
          s = f32[7] reduce(y, zero), dimensions={{1}}, to_apply=sum
          t = f32[7,23] broadcast(s), dimensions={{0}}  ROOT r = f32[7,23] divide(y, t) }}"""
    )
    x = np.random.default_rng(0).standard_normal((7, 23)).astype(np.float32)
    for target in ("cpu", TpuTarget(), RandomTarget(0), RandomTarget(1)):
        assert_same_arrays(evaluate(module, x), NumbaCompiler().compile(module, target=target).execute([x]), 1e-5)
