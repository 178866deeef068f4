"""Modules in text: printed text reads back to the same module, and text by XLA and JAX is read."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo import (
    ElementType,
    ExecutionError,
    HloComputation,
    HloInstruction,
    HloModule,
    HloParseError,
    InputOutputAlias,
    Layout,
    Metadata,
    Opcode,
    Shape,
    evaluate,
    make_computation,
    make_constant,
    make_instruction,
    make_module,
    make_parameter,
    parse,
    verify,
)
from hloom.hlo.ir import NO_ATTRIBUTES, BufferDonor
from hloom.hlo.ops import SPECS
from hloom.hlo.ops.control_flow import CallAttributes, Composite
from hloom.hlo.ops.normalization import BatchNormAttributes
from hloom.hlo.text.attributes import form_of
from hloom.numba_backend.compiler import NumbaCompiler

from hloom.backend_check.op_table import CASES, build_module
from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with
from support.random_modules import random_arguments, random_module


def round_trip(module: HloModule) -> HloModule:
    """The module after printing and parsing; asserts that it is valid and prints the same text."""
    text = module.to_text()
    again = parse(text)
    verify(again)
    assert again.to_text() == text
    return again


def only(module: HloModule, opcode: Opcode) -> HloInstruction:
    (found,) = [i for i in module.entry.instructions if i.opcode is opcode]
    return found


F32_2 = Shape.array(ElementType.F32, (2,))


# Every op, every form


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_each_form_prints_as_it_reads(instruction: str) -> None:
    text = module_with(instruction)
    module = parse(text)
    verify(module)
    layouts = [leaf.layout for leaf in module.entry.root.shape.leaves() if not leaf.array_layout.is_row_major]
    assert list(module.entry_result_layouts) == layouts
    assert module.to_text() == text


def test_each_opcode_has_a_form() -> None:
    used = {instruction.opcode for text in INSTRUCTIONS for instruction in parse(module_with(text)).instructions()}
    assert used == set(Opcode)


def test_each_attribute_class_has_a_form() -> None:
    for spec in SPECS.values():
        assert set(form_of(spec.attributes).required) <= set(form_of(spec.attributes).codecs)


def test_op_cases_survive() -> None:
    assert CASES
    for case in CASES[:: max(1, len(CASES) // 300)]:
        round_trip(build_module(case))


@pytest.mark.parametrize("seed", range(30))
def test_random_modules_survive(seed: int) -> None:
    module = random_module(random.Random(seed))
    again = round_trip(module)
    assert [i.opcode for i in again.instructions()] == [i.opcode for i in module.instructions()]


def test_a_ragged_dot_keeps_its_algorithm() -> None:
    text = module_with(
        "f32[2,4]{1,0} ragged-dot(%x, %h, %l), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "algorithm=dot_f32_f32_f32, lhs_ragged_dims={0}, rhs_group_dims={0}"
    )
    assert only(round_trip(parse(text)), Opcode.RAGGED_DOT).attributes.dot.algorithm == "dot_f32_f32_f32"


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [(1e-5, "1e-05"), (0.1234567890123456, "0.1234567890123456"), (float(np.float32(0.1)), "0.10000000149011612")],
)
def test_an_epsilon_keeps_its_digits(epsilon: float, text: str) -> None:
    x, s = make_parameter(0, Shape.array(ElementType.F64, (2, 3)), "x"), Shape.array(ElementType.F64, (3,))
    vectors = [make_parameter(k, s, f"v{k}") for k in (1, 2)]
    norm = make_instruction(Opcode.BATCH_NORM_TRAINING, [x, *vectors], BatchNormAttributes(epsilon, 1))
    module = round_trip(make_module("m", make_computation("main", norm, [x, *vectors])))
    assert f"epsilon={text}," in module.to_text()
    assert only(module, Opcode.BATCH_NORM_TRAINING).attributes.epsilon == epsilon


# Text from JAX and XLA

NEWER: list[tuple[str, str]] = [
    ("pred[2,3] compare(%x, %y), direction=LT, order=TOTAL", "compare(%x, %y), direction=LT, type=TOTALORDER"),
    ("pred[2,3] compare(%x, %y), direction=LT, order=PARTIAL", "compare(%x, %y), direction=LT"),
    ("pred[2,3] compare(%n, %n), direction=GE, order=TOTAL", "compare(%n, %n), direction=GE"),
    ("pred[2,3] compare(%n, %n), direction=GE, type=TOTALORDER", "compare(%n, %n), direction=GE"),
    ("pred[] compare(%p, %p), direction=GE, order=TOTAL", "compare(%p, %p), direction=GE"),
    ("(f32[2,1], s32[2,1]) topk(%x), k=1, largest=true, is_stable=true", "topk(%x), k=1, largest=true"),
    ("(f32[2,1], s32[2,1]) topk(%x), k=1, is_stable=false", "topk(%x), k=1, largest=true, is_stable=false"),
    (
        "f32[2,3] collective-broadcast(%x), channel_id=1, replica_groups={{1,0}}, has_dynamic_root=false",
        "collective-broadcast(%x), channel_id=1, replica_groups={{1,0}}",
    ),
    (
        "%to = s32[1] constant({0})\nf32[2,3] collective-broadcast(%x, %to), replica_groups={}, has_dynamic_root=true",
        "collective-broadcast(%x, %to), replica_groups={}, has_dynamic_root=true",
    ),
]
"""Text from the XLA of JAX 0.12, and our text, which the XLA of JAX 0.10 reads too."""


@pytest.mark.parametrize(("newer", "printed"), NEWER, ids=[text for text, _ in NEWER])
def test_text_of_newer_versions(newer: str, printed: str) -> None:
    module = parse(module_with(newer))
    verify(module)
    (line,) = [line for line in module.to_text().splitlines() if "ROOT %result" in line]
    assert line.endswith(printed)
    assert round_trip(module).to_text() == module.to_text()


def test_one_attribute_is_not_said_twice() -> None:
    with pytest.raises(HloParseError, match="compare takes either type or order"):
        parse(module_with("pred[2,3] compare(%x, %y), direction=LT, type=TOTALORDER, order=TOTAL"))


def test_attributes_of_the_module_that_newer_versions_print() -> None:
    given = {"backend_config": '{"a":[1,{}]}', "debug_attributes": '{b="c"}'}
    attributes = "".join(f", {key}={value}" for key, value in given.items())
    module = round_trip(parse(f"HloModule m{attributes}\nENTRY e {{ ROOT x = f32[] parameter(0) }}"))
    assert dict(module.annotations) == given


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_hlo_is_read(path: Path) -> None:
    module = parse(path.read_text(), path.name)
    verify(module)
    round_trip(module)


def test_there_is_recorded_hlo() -> None:
    assert len(RECORDED) > 50
    assert sum(p.stem.endswith(".optimized") for p in RECORDED) > 20


@pytest.mark.parametrize("path", [p for p in RECORDED if ".optimized" in p.name], ids=lambda p: p.stem)
def test_recorded_hlo_means_the_same_before_and_after_xla_optimised_it(path: Path) -> None:
    """Two texts of one program, one with fusions and layouts: read right, both give the same values."""
    before = parse(path.with_name(path.name.replace(".optimized", "")).read_text())
    after = parse(path.read_text())
    arguments = random_arguments(before, 0, special=False)
    for want, got in zip(evaluate(before, *arguments), evaluate(after, *arguments), strict=True):
        assert want.dtype == got.dtype
        assert np.allclose(want.astype(complex), got.astype(complex), 1e-3, 1e-4, equal_nan=True)


def test_a_stack_frame_gives_the_source_line() -> None:
    text = next(p for p in RECORDED if p.stem == "sine_sum.optimized").read_text()
    lines = {i.metadata.source_file: i.metadata.source_line for i in parse(text).instructions() if i.metadata}
    assert lines["/models/record.py"] > 0


def test_short_forms_comments_and_any_order() -> None:
    module = parse(
        """HloModule m // the name
        ENTRY main {
          x = f32[2] parameter(0), sharding={devices=[2]0,1}
          c=f32[] constant(2)
          b = f32[2]{0} broadcast(f32[] c) /* dimensions={} is the default */
          ROOT r = (f32[2]{0}, /*index=1*/f32[2]) call(f32[2]{0} x, %b), to_apply=pair
        }, execution_thread="main"
        unused { ROOT x = s32[] parameter(0) }
        pair (a: f32[2], b: f32[2]) -> (f32[2], f32[2]) {
          b = f32[2] parameter(1)
          a = f32[2] parameter(0), parameter_replication={false}
          sum = f32[2] add(a, b), backend_config={"known":{"n":"}"}}, control-predecessors={a}
          t = (f32[2], f32[2]) tuple(a, sum), origin={{"x"}}, statistics={visualizing_index=1,s=0.5}
        }
        """
    )
    verify(module)
    assert [c.name for c in module.computations] == ["pair", "main"]
    assert module.computations[0].root.opcode is Opcode.TUPLE
    assert [p.name for p in module.computations[0].parameters] == ["a", "b"]
    assert [i.name for i in module.entry.instructions] == ["x", "c", "b.1", "r"], "unique over the module"
    round_trip(module)


def test_without_entry_the_last_computation_is_it() -> None:
    assert parse("HloModule m\n a { x = f32[] parameter(0) }\n b { y = s32[] parameter(0) }").entry.name == "b"


def test_keywords_as_names() -> None:
    module = parse(
        """HloModule m
        %ENTRY {
          ROOT = f32[] parameter(0)
          %true = f32[] negate(ROOT)
          ROOT %add = f32[] add(%true, true)
        }"""
    )
    assert [i.name for i in module.entry.instructions] == ["ROOT", "true", "add"]
    round_trip(module)


# Parts that XLA's text may omit, or define in place


def test_types_that_are_left_out_are_inferred() -> None:
    module = parse(
        "ENTRY e { x = f32[2,3] parameter(0)\n y = negate(x)\n t = transpose(y), dimensions={1,0}\n"
        "ROOT d = dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    assert str(module.entry.root.shape) == "f32[2,2]" and module.name == "module_e"


def test_operands_may_be_instructions_and_elements_of_tuples() -> None:
    module = parse(
        """HloModule m
        ENTRY e {
          t = (f32[2], (f32[2], f32[])) parameter(0)
          ROOT r = add(f32[2] negate(t#0), multiply(t#1#0, t#0))
        }"""
    )
    verify(module)
    root = module.entry.root
    assert [o.opcode for o in root.operands] == [Opcode.NEGATE, Opcode.MULTIPLY]
    assert root.operands[0].operands[0] is root.operands[1].operands[1], "one instruction for both uses of t#0"
    (result,) = evaluate(module, np.float32([1, 2]), np.float32([3, 4]), np.float32(9))
    np.testing.assert_array_equal(result, [2, 6])


def test_constants_of_tuple_type() -> None:
    module = parse(
        "HloModule m\nENTRY e { ROOT c = (f32[], (s32[2], pred[]), c64[1], ()) "
        "constant(( 1.5, ({2, 3}, true), {(1, -inf)}, () )) }"
    )
    verify(round_trip(module))
    values = evaluate(module)
    assert [v.tolist() for v in values] == [1.5, [2, 3], True, [complex(1, -np.inf)]]


def test_computations_may_stand_in_place_of_their_names() -> None:
    module = parse(
        """HloModule m
        ENTRY e {
          x = f32[3] parameter(0)
          zero = f32[] constant(0)
          n = s32[] parameter(1)
          s = f32[] reduce(x, zero), dimensions={0}, to_apply={
            tmp_0 = f32[] parameter(0)
            tmp_1 = f32[] parameter(1)
            ROOT tmp_2 = f32[] add(tmp_0, tmp_1)
          }
          ROOT c = f32[] conditional(n, s, s), branch_computations={
            { tmp_0 = f32[] parameter(0)
              ROOT tmp_1 = f32[] negate(tmp_0) },
            { ROOT tmp_0 = f32[] parameter(0) } }
        }"""
    )
    verify(round_trip(module))
    assert evaluate(module, np.float32([1, 2, 3]), np.int32(0)) == [np.float32(-6)]
    assert evaluate(module, np.float32([1, 2, 3]), np.int32(1)) == [np.float32(6)]


def test_asynchronous_sugar() -> None:
    """`slice-start` is async-start of a computation that holds the slice; attributes of both may stand there."""
    module = parse(
        """HloModule m
        ENTRY e {
          x = f32[4] parameter(0)
          s = ((f32[4]), f32[2], u32[]) slice-start(x), slice={[1:3]}, async_execution_thread="other"
          u = ((f32[4]), f32[2], u32[]) slice-update(s)
          ROOT d = f32[2] slice-done(u)
        }"""
    )
    verify(round_trip(module))
    start = only(module, Opcode.ASYNC_START)
    assert start.attributes.async_execution_thread == "other"
    assert start.attributes.calls.root.opcode is Opcode.SLICE
    assert evaluate(module, np.float32([1, 2, 3, 4]))[0].tolist() == [2, 3]


def test_aliases_of_asynchronous_sugar_are_the_starts() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[4] parameter(0)
      s = ((f32[4]), f32[4], u32[]) custom-call-start(x), custom_call_target="f",
        output_to_operand_aliasing={{1}: (0, {})}
      ROOT d = f32[4] custom-call-done(s)
    }"""
    start = only(round_trip(parse(text)), Opcode.ASYNC_START)
    assert start.annotations == (("output_to_operand_aliasing", "{{1}: (0, {})}"),)
    assert start.attributes.calls.root.attributes.output_to_operand_aliasing == ()


# Attributes that mean nothing on one CPU


def test_control_predecessors_are_checked_and_read_over() -> None:
    module = parse(
        "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = negate(x)\n ROOT z = abs(x), control-predecessors={%y} }"
    )
    assert "control" not in module.to_text()


def test_annotations_are_on_one_line_without_comments() -> None:
    text = """HloModule m
    ENTRY e { ROOT x = f32[2,2] parameter(0), sharding={devices=[2,1]<=[2] /* two
      of them */ metadata={op_name="a  b"}}, backend_config="a\\"b" }"""
    root = parse(text).entry.root
    assert root.annotations == (
        ("sharding", '{devices=[2,1]<=[2] metadata={op_name="a  b"}}'),
        ("backend_config", '"a\\"b"'),
    )


def test_metadata_that_is_not_used_is_kept() -> None:
    text = module_with(
        'f32[2,3]{1,0} negate(%x), metadata={op_type="t" op_name="n" source_line=3 source_column=4 new_field={1} '
        'profile_type={1,2} metadata_payload="p\\n"}'
    )
    metadata = parse(text).entry.root.metadata
    assert metadata is not None and (metadata.op_name, metadata.source_line) == ("n", 3)
    assert metadata.others == (
        ("op_type", '"t"'), ("source_column", "4"), ("profile_type", "{1,2}"), ("metadata_payload", '"p\\n"'),
    )  # fmt: skip
    round_trip(parse(text))


def test_tuples_at_the_entry_may_have_layouts() -> None:
    header = "HloModule m, entry_computation_layout={((f32[2,3]{0,1}, s32[]))->f32[2,3]{0,1}}"
    module = parse(
        f"{header}\nENTRY e {{ t = (f32[2,3], s32[]) parameter(0)\n ROOT g = get-tuple-element(t), index=0 }}"
    )
    assert module.entry_parameter_layouts == (Layout((0, 1)), None)
    assert header in module.to_text()
    verify(round_trip(module))


# Headers


def test_header_attributes_survive() -> None:
    x, y = (make_parameter(n, Shape.array(ElementType.F32, (2, 3)), f"p{n}") for n in range(2))
    root = make_instruction(Opcode.TUPLE, [y, x])
    module = replace(
        make_module("m", make_computation("main", root, [x, y])),
        input_output_aliases=(InputOutputAlias((1,), 0), InputOutputAlias((0,), 1, (), True)),
        is_scheduled=True,
        entry_parameter_layouts=(None, Layout((0, 1))),
        entry_result_layouts=(Layout((0, 1)), None),
        frontend_attributes=(("a", 'b"}'), ("dict", "{c = 1}"), ("not an identifier", "{")),
    )
    verify(module)
    again = round_trip(module)
    for name in (
        "input_output_aliases",
        "is_scheduled",
        "entry_parameter_layouts",
        "entry_result_layouts",
        "frontend_attributes",
    ):
        assert getattr(again, name) == getattr(module, name), name


def test_without_entry_layout_the_instructions_have_it() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[2,3]{0,1} parameter(0)\n ROOT y = f32[2,3] copy(x) }")
    assert module.entry_parameter_layouts == (Layout((0, 1)),) and module.entry_result_layouts == ()


def test_entry_layout_overrides_those_of_the_instructions() -> None:
    header = "HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{0,1}}"
    module = parse(header + "\nENTRY e { x = f32[2,3]{0,1} parameter(0) }")
    assert module.entry_parameter_layouts == (Layout((1, 0)),)
    assert module.entry_result_layouts == (Layout((0, 1)),)
    assert "entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{0,1}}" in module.to_text()
    assert module.entry.root.shape.layout == Layout((0, 1))
    round_trip(module)


def test_header_attributes_without_a_meaning_here_are_kept() -> None:
    header = (
        "HloModule m, buffer_donor={ (0, {}), (1, {1}) }, "
        "entry_computation_layout={(f32[], (s32[], f32[]))->f32[]}, replica_count=2, num_partitions=4, "
        "alias_passthrough_params=true, allow_spmd_sharding_propagation_to_output={true,false}"
    )
    module = parse(f"{header}\nENTRY e {{ ROOT x = f32[] parameter(0)\n y = (s32[], f32[]) parameter(1) }}")
    assert (module.replica_count, module.num_partitions) == (2, 4)
    assert module.buffer_donors == (BufferDonor(0), BufferDonor(1, (1,)))
    assert module.to_text().startswith(header + "\n")
    verify(round_trip(module))


def test_programs_for_several_devices_are_not_run_on_one() -> None:
    module = parse("HloModule m, replica_count=2\nENTRY e { x = f32[] parameter(0) }")
    with pytest.raises(ExecutionError, match="2 replicas and 1 partitions"):
        evaluate(module, np.float32(1))
    with pytest.raises(ExecutionError, match="2 replicas and 1 partitions"):
        NumbaCompiler().compile(module).execute([np.float32(1)])


def test_replica_groups_of_a_mesh() -> None:
    """XLA's third form. XLA prints it so, too."""
    expected = {
        "mesh['a'=2,'b'=4] {'a'}": ((0, 4), (1, 5), (2, 6), (3, 7)),
        "mesh['a'=2,'b'=4] {'b','a'}": ((0, 4, 1, 5, 2, 6, 3, 7),),
        "mesh['a'=2,'b'=4] {'b':(1)2}": ((0, 2), (1, 3), (4, 6), (5, 7)),
        "mesh['a'=2,'b'=4] {'b':(2)2}": ((0, 1), (2, 3), (4, 5), (6, 7)),
        "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}": ((0, 1), (2, 3), (4, 5), (6, 7)),
        "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}": ((7, 3), (6, 2), (5, 1), (4, 0)),
    }
    for text, groups in expected.items():
        body = f"p = f32[8] parameter(0)\nROOT r = f32[8] collective-broadcast(p), replica_groups={text}"
        module = parse(f"HloModule m, replica_count=8\nENTRY e {{ {body} }}")
        assert module.entry.root.attributes.replica_groups.groups == groups
        assert text in round_trip(module).to_text()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mesh['a'=2,'a'=4] {'a'}", "name of its own"),
        ("mesh['a'=0] {'a'}", "size from 1"),
        ("mesh['a'=2] {'b'}", "no axis 'b'"),
        ("mesh['a'=4] {'a':(1)3}", "no part"),
        ("mesh['a'=4] {'a':(0)2}", "no part"),
        ("mesh['a'=4] {'a','a'}", "listed twice"),
        ("mesh['a'=4], device_ids=(0,1) {'a'}", "has 2 device_ids"),
        ("mesh['a'=4], device_ids=([4]T(1)) {'a'}", "do not fit"),
        ("mesh['a'=1048576,'b'=1048576] {'a'}", "at most 1048576 devices"),
        ("mesh['a'=2 {'a'}", "expected ',' or"),
    ],
)
def test_replica_groups_of_no_mesh(text: str, why: str) -> None:
    body = f"p = f32[8] parameter(0)\nROOT r = f32[8] collective-broadcast(p), replica_groups={text}"
    with pytest.raises(HloParseError, match=why):
        parse(f"HloModule m, replica_count=8\nENTRY e {{ {body} }}")


# Names and strings are data


@pytest.mark.parametrize("name", ["", "a b", "%x", "f32", "é", '}\n"', "1", "-", "ROOT x = f32[] parameter(0)"])
def test_any_name_can_be_printed(name: str) -> None:
    x = make_parameter(0, F32_2, name)
    y = make_instruction(Opcode.NEGATE, [x], name=name)
    module = HloModule(name, make_computation(name, y, [x]))
    again = parse(module.to_text())
    verify(again)
    assert [i.opcode for i in again.entry.instructions] == [Opcode.PARAMETER, Opcode.NEGATE]


def test_any_string_can_be_printed() -> None:
    nasty = '"}, to_apply=%x\\ \n\t\x00é\U0001f600\udcff{'
    x = make_parameter(0, F32_2, "x")
    attributes = (("plain", nasty), ("dict", "{" + nasty + "}"), ("braces", "{a = {}}"), (nasty, "key"))
    y = make_instruction(
        Opcode.NEGATE, [x], metadata=Metadata(nasty, nasty, 7), frontend_attributes=attributes, name="y"
    )
    again = round_trip(make_module("m", make_computation("main", y, [x]))).entry.root
    assert again.metadata == Metadata(nasty, nasty, 7)
    assert again.frontend_attributes == attributes


def test_composites_survive() -> None:
    x = make_parameter(0, F32_2, "x")
    body = make_computation("body", make_instruction(Opcode.NEGATE, [x]), [x])
    parameters = (
        ("length", "10"),
        ("scale", "1.500000e+00 : f64"),
        ("text", 'a "b} = c,'),
        ("odd key", "{x}"),
        ("", ""),
    )
    composite = Composite("my scan", parameters, rule=object(), version=2)
    y = make_parameter(0, F32_2, "y")
    call = make_instruction(Opcode.CALL, [y], CallAttributes(body, composite), frontend_attributes=(("a", "b"),))
    again = only(round_trip(make_module("m", make_computation("main", call, [y]))), Opcode.CALL)
    assert again.attributes.composite == replace(composite, rule=None)
    assert again.frontend_attributes == (("a", "b"),)


def test_a_call_that_is_no_composite_keeps_its_frontend_attributes() -> None:
    text = module_with('f32[2,3]{1,0} call(%x), to_apply=%twice, frontend_attributes={composite.name="a"}')
    call = only(parse(text), Opcode.CALL)
    assert call.attributes.composite is None and call.frontend_attributes == (("composite.name", "a"),)
    assert parse(text).to_text() == text


# Printing for people


def test_large_constants_are_left_out_on_request() -> None:
    constant = make_constant(np.arange(100, dtype=np.int32))
    module = make_module("m", make_computation("main", constant))
    assert "{...}" in module.to_text(elide_over=99) and "{...}" not in module.to_text(elide_over=100)
    with pytest.raises(HloParseError, match="left out"):
        parse(module.to_text(elide_over=99))


def test_a_broken_module_can_be_printed() -> None:
    """A dump after a pass that went wrong must show the module as it is."""
    x = make_parameter(0, F32_2, "x")
    y = make_instruction(Opcode.NEGATE, [x], name="y")
    module = HloModule("m", HloComputation("main", (y,), y))
    with pytest.raises(HloParseError, match="there is no x"):
        parse(module.to_text())


def test_plain_attributes_are_one_object() -> None:
    assert parse("HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] negate(x) }").entry.root.attributes is (
        NO_ATTRIBUTES
    )
