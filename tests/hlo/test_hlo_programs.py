"""Small HLO texts of the kinds that XLA and its users write: compiled code gives the evaluator's results.

Each is the smallest form of a program that once gave an error, or that no traced program contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hloom.hlo import HloModule
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable

import hloom

Array = np.ndarray[Any, Any]

F32 = np.array([[1.5, -2.0, np.nan], [0.0, -0.0, np.inf]], np.float32)
S32 = np.array([[3, -1, 2], [0, -(2**31), 2**31 - 1]], np.int32)

PROGRAMS: dict[str, tuple[str, Sequence[Array]]] = {
    "bitcast-to-another-type": (
        """ENTRY e {
          x = f32[2,3] parameter(0)
          y = s32[2,3] parameter(1)
          bits = s32[3,2] bitcast(x)
          sum = s32[3,2] add(bits, s32[3,2] bitcast(y))
          ROOT r = f32[6] bitcast(sum)
        }""",
        (F32, S32),
    ),
    "unused-parameter-in-another-layout": (
        """ENTRY e {
          x = s32[2,3]{0,1} parameter(0)
          y = f32[2,3]{0,1} parameter(1)
          ROOT r = f32[2,3] negate(y)
        }""",
        (S32, F32),
    ),
    "tiled-layouts-of-an-accelerator": (
        """ENTRY e {
          x = f32[2,3]{0,1:T(8,128)S(5)} parameter(0)
          y = s32[2,3]{1,0:T(8,128)} parameter(1)
          z = f32[2,3]{1,0:T(8,128)} convert(y)
          ROOT r = f32[2,3]{1,0:T(8,128)(2,1)} subtract(z, x)
        }""",
        (F32, S32),
    ),
    "attributes-for-other-devices": (
        """ENTRY e {
          x = s32[2,3] parameter(0)
          y = s32[3,2] transpose(x), dimensions={1,0}
          d = s32[2,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={HIGH,Default}
          ROOT r = s32[2,2] convolution(d, d), dim_labels=bf_io->bf, convolution_kind=fprop
        }""",
        (S32,),
    ),
    "a-loop-without-end-that-nobody-uses": (
        """forever { s = s32[2,3] parameter(0) ROOT t = pred[] constant(true) }
        again { s = s32[2,3] parameter(0) ROOT t = s32[2,3] add(s, s) }
        ENTRY e {
          x = s32[2,3] parameter(0)
          w = s32[2,3] while(x), condition=forever, body=again
          ROOT r = s32[2,3] negate(x)
        }""",
        (S32,),
    ),
    "copies-of-tuples": (
        """ENTRY e {
          x = f32[2,3] parameter(0)
          y = s32[2,3] parameter(1)
          t = (f32[2,3], s32[2,3]) tuple(x, y)
          c = (f32[2,3]{0,1}, s32[2,3]{1,0}) copy(t)
          n = f32[2,3] negate(x)
          d = (f32[2,3], s32[2,3]) copy(c)
          ROOT r = (f32[2,3], (f32[2,3], s32[2,3])) tuple(n, d)
        }""",
        (F32, S32),
    ),
    "shard-barriers": (
        """ENTRY e {
          x = f32[2,3] parameter(0)
          y = f32[2,3] custom-call(x), custom_call_target="ShardBarrierFrom", custom_call_has_side_effect=true
          z = f32[2,3] negate(y)
          ROOT r = f32[2,3] custom-call(z), custom_call_target="ShardBarrierTo", custom_call_has_side_effect=true
        }""",
        (F32,),
    ),
    "bitcast-in-a-comparator": (
        """less {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          i = s32[] bitcast(a)
          j = s32[] bitcast(b)
          ROOT r = pred[] compare(i, j), direction=LT
        }
        ENTRY e {
          x = f32[2,3] parameter(0)
          ROOT r = f32[2,3] sort(x), dimensions={1}, to_apply=less
        }""",
        (F32,),
    ),
}


@pytest.mark.parametrize(("text", "inputs"), PROGRAMS.values(), ids=PROGRAMS)
def test_compiled_gives_what_is_evaluated(text: str, inputs: Sequence[Array]) -> None:
    text = f"HloModule m\n{text}"
    wanted = hloom.run_hlo(text, *inputs, backend="evaluator")
    for a, b in zip(hloom.run_hlo(text, *inputs, backend="numba"), wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_a_reducer_with_a_matrix_product_inside_is_refused_by_name() -> None:
    text = """multiplied {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      m = f32[2,2] dot(f32[2,2] broadcast(a), f32[2,2] broadcast(b)), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      s = f32[1,1] slice(m), slice={[0:1], [0:1]}
      ROOT r = f32[] reshape(s)
    }
    ENTRY e {
      x = f32[3] parameter(0)
      ROOT r = f32[] reduce(x, f32[] constant(1)), dimensions={0}, to_apply=multiplied
    }"""
    values = np.array([3.0, 5.0, 7.0], np.float32)
    with pytest.raises(hloom.errors.UnsupportedError, match=r"applied to scalars inside of a kernel, .* its dot"):
        hloom.run_hlo(text, values)
    assert hloom.run_hlo(text, values, backend="evaluator")[0] == 8 * 105


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_expm1_of_a_large_real_number_stays_real(backend: str) -> None:
    text = "ENTRY e { x = c64[2] parameter(0) ROOT r = c64[2] exponential-minus-one(x) }"
    (found,) = hloom.run_hlo(text, np.array([1000 + 0j, 1000 - 0j], np.complex64), backend=backend)
    np.testing.assert_array_equal(found.real, np.inf)
    np.testing.assert_array_equal(found.imag, 0)


def test_a_program_is_compiled_once_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    original = NumbaCompiler.compile

    def compile_and_count(self: NumbaCompiler, module: HloModule, **options: Any) -> NumbaExecutable:
        compiled.append(module.name)
        return original(self, module, **options)

    monkeypatch.setattr(NumbaCompiler, "compile", compile_and_count)
    text = """HloModule counted_compilations
    ENTRY e { x = f32[3] parameter(0) ROOT r = f32[3] custom-call(x), custom_call_target="counted" }"""
    x = np.ones(3, np.float32)
    hloom.register_custom_call("counted", lambda x: x + 1)
    try:
        for _ in range(3):
            np.testing.assert_array_equal(hloom.run_hlo(text, x)[0], 2)
        assert len(compiled) == 1
        hloom.register_custom_call("counted", lambda x: x + 2, replace=True)
        np.testing.assert_array_equal(hloom.run_hlo(text, x)[0], 3)
        assert len(compiled) == 2
        hloom.clear_caches()
        hloom.run_hlo(text, x)
        assert len(compiled) == 3
    finally:
        hloom.unregister_custom_call("counted")
    with pytest.raises(hloom.errors.UnsupportedError, match="'counted' is not known"):
        hloom.run_hlo(text, x)
