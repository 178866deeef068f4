"""TpuTarget: the layout for every element type and rank, and where each row of the table was observed."""

from __future__ import annotations

import pytest
from hloom.hlo.targets import TARGETS

from hloom import hlo

DOCS = "XLA's page 'Tiled layout', examples of tiling formats"
PROPAGATION = "XLA's memory_space_propagation_test"
UNROLLER = "XLA's while_loop_unroller_test"
BOOK = "JAX's scaling book, profiling"
OUT_OF_MEMORY = "an error message of a program that ran out of memory"
PRINTED = "modules printed on a TPU"
RULE = "the same rule at another width"

TABLE = (
    ("f32[16,256]", "{1,0:T(8,128)}", DOCS),
    ("f32[1,128]", "{1,0:T(2,128)}", DOCS),
    ("s32[2,8192]", "{1,0:T(2,128)}", PRINTED),
    ("f32[3,6]", "{1,0:T(4,128)}", "XLA's hlo_isolation_test"),
    ("f32[4,4]", "{1,0:T(4,128)}", DOCS),
    ("f32[5,4]", "{1,0:T(8,128)}", DOCS),
    ("f32[0,4]", "{1,0:T(2,128)}", RULE),
    ("f32[1,2,8,128]", "{3,2,1,0:T(8,128)}", DOCS),
    ("bf16[8,1,1280,16384]", "{3,2,1,0:T(8,128)(2,1)}", DOCS),
    ("bf16[1,6144]", "{1,0:T(2,128)(2,1)}", PRINTED),
    ("bf16[2,8192]", "{1,0:T(2,128)(2,1)}", "XLA's tests of async collective fusion"),
    ("bf16[512,512,4,64]", "{3,2,1,0:T(4,128)(2,1)}", OUT_OF_MEMORY),
    ("f16[100,100]", "{1,0:T(8,128)(2,1)}", DOCS),
    ("s16[3,3]", "{1,0:T(4,128)(2,1)}", RULE),
    ("u8[327680,327680]", "{1,0:T(8,128)(4,1)}", OUT_OF_MEMORY),
    ("s8[1,32,2048]", "{2,1,0:T(8,128)(4,1)}", UNROLLER),
    ("s8[1,100]", "{1,0:T(4,128)(4,1)}", PRINTED),
    ("f8e4m3fn[8,8]", "{1,0:T(8,128)(4,1)}", RULE),
    ("pred[32,6144]", "{1,0:T(8,128)(4,1)}", PRINTED),
    ("pred[1,1]", "{1,0:T(4,128)(4,1)}", PRINTED),
    ("s4[8,256,32768]", "{2,1,0:T(8,128)(8,1)E(4)}", PROPAGATION),
    ("u4[1,8]", "{1,0:T(8,128)(8,1)E(4)}", RULE),
    ("f4e2m1fn[64,128]", "{1,0:T(8,128)(8,1)E(4)}", RULE),
    ("s2[64,128]", "{1,0:T(16,128)(16,1)E(2)}", RULE),
    ("u1[64,128]", "{1,0:T(32,128)(32,1)E(1)}", RULE),
    ("f64[16,16]", "{1,0:T(8,128)}", "XLA splits it into two arrays of 32 bits with these tiles"),
    ("s64[2,16]", "{1,0:T(2,128)}", "XLA splits it into two arrays of 32 bits with these tiles"),
    ("c64[16,16]", "{1,0:T(8,128)}", "XLA splits it into two arrays of 32 bits with these tiles"),
    ("c128[16,16]", "{1,0:T(8,128)}", RULE),
    ("f32[2048]", "{0:T(1024)}", PRINTED),
    ("f32[1024]", "{0:T(1024)}", PRINTED),
    ("f32[513]", "{0:T(1024)}", RULE),
    ("f32[384]", "{0:T(512)}", "XLA's layout_assignment_test"),
    ("u32[256]", "{0:T(256)}", UNROLLER),
    ("s32[5]", "{0:T(128)}", PROPAGATION),
    ("f32[0]", "{0:T(128)}", RULE),
    ("s64[5]", "{0:T(128)}", RULE),
    ("bf16[8192]", "{0:T(1024)(128)(2,1)}", BOOK),
    ("bf16[128]", "{0:T(256)(128)(2,1)}", PRINTED),
    ("bf16[300]", "{0:T(512)(128)(2,1)}", RULE),
    ("pred[1]", "{0:T(512)(128)(4,1)}", PRINTED),
    ("s8[4096]", "{0:T(1024)(128)(4,1)}", RULE),
    ("s4[10]", "{0:T(1024)(128)(8,1)E(4)}", RULE),
    ("u2[10]", "{0:T(2048)(128)(16,1)E(2)}", RULE),
    ("s1[10]", "{0:T(4096)(128)(32,1)E(1)}", RULE),
    ("s32[]", "{:T(128)}", PROPAGATION),
    ("f64[]", "{:T(128)}", RULE),
    ("bf16[]", "{:T(256)}", PRINTED),
    ("pred[]", "{:T(512)}", PROPAGATION),
    ("s8[]", "{:T(512)}", UNROLLER),
    ("s4[]", "{:T(512)}", "scalars are not packed"),
)


@pytest.mark.parametrize(("shape", "layout", "source"), TABLE, ids=[row[0] for row in TABLE])
def test_layouts(shape: str, layout: str, source: str) -> None:
    assert str(hlo.TpuTarget().buffer_layout(hlo.Shape.parse(shape))) == layout, source


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ("pred[64,128]", "{1,0:T(32,128)(32,1)E(1)}"),  # the page "Tiled layout"
        ("pred[1,1]", "{1,0:T(32,128)(32,1)E(1)}"),
        ("pred[3]", "{0:T(4096)(128)(32,1)E(1)}"),
        ("pred[]", "{:T(512)}"),
        ("s8[64,128]", "{1,0:T(8,128)(4,1)}"),
    ],
)
def test_predicates_of_one_bit(shape: str, layout: str) -> None:
    assert str(hlo.TpuTarget(pred_bits=1).buffer_layout(hlo.Shape.parse(shape))) == layout


def test_every_tile_is_whole_registers_or_a_power_of_two_of_their_rows() -> None:
    for element in hlo.ElementType:
        for dimensions in [(1, 1), (2, 3), (3, 200), (9, 129), (2, 5, 7), (1,), (129,), (5000,), ()]:
            shape = hlo.Shape.array(element, dimensions)
            shape = shape.with_layout(hlo.TpuTarget().buffer_layout(shape))
            assert shape.byte_size % 512 == 0, shape.to_text()  # rows of 128 words of 32 bits
            assert shape.byte_size >= -(-shape.num_elements * shape.bits_per_element // 8)


def test_element_zero_of_a_scalar_comes_first() -> None:
    for element in hlo.ElementType:
        shape = hlo.Shape.array(element)
        layout = hlo.TpuTarget(pred_bits=1).buffer_layout(shape)
        assert layout.element_size_in_bits == 0
        assert shape.with_layout(layout).physical_form.linear_index(()) == 0


def test_layouts_do_not_depend_on_the_layout_of_the_shape() -> None:
    column_major = hlo.Shape.parse("f32[16,256]{0,1:T(2,2)S(1)}")
    assert str(hlo.TpuTarget().buffer_layout(column_major)) == "{1,0:T(8,128)}"


def test_targets_by_name() -> None:
    assert hlo.target_named("cpu").name == "cpu" and hlo.target_named("cpu").fast_memory is None
    tpu = hlo.TpuTarget(vmem_bytes=1024)
    assert hlo.target_named("tpu") == hlo.TpuTarget()
    assert hlo.target_named(tpu) is tpu
    assert str(tpu.fast_memory) == "VMEM S(1)" and tpu.fast_memory.size == 1024
    for name in TARGETS:
        assert hlo.target_named(name).name == name


def test_unknown_targets_and_options_are_refused() -> None:
    with pytest.raises(hlo.UnsupportedError, match=r"no target 'gpu'; there are 'cpu' and 'tpu'"):
        hlo.target_named("gpu")
    with pytest.raises(hlo.TargetOptionError, match="pred_bits is 2: a PRED element takes 8 bits or 1"):
        hlo.TpuTarget(pred_bits=2)
    with pytest.raises(hlo.TargetOptionError, match="vmem_bytes is -1"):
        hlo.TpuTarget(vmem_bytes=-1)
