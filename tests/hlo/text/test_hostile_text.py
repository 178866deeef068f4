"""A file is data: no name, attribute, metadata or target in it changes the generated code. Text of any length, depth or
size is read or refused in time linear in its length."""

from __future__ import annotations

import random
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hloom.hlo import (
    HloComputation,
    HloInstruction,
    HloModule,
    HloParseError,
    Metadata,
    UnsupportedError,
    evaluate,
    parse,
    verify,
)
from hloom.hlo.custom_calls import register_custom_call, unregister_custom_call
from hloom.hlo.text.dot_graph import to_dot
from hloom.hlo.text.escape import escape
from hloom.numba_backend.compiler import NumbaCompiler
from hypothesis import given, settings
from hypothesis import strategies as st

from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with

HOSTILE = (
    '"""\nimport os\nos._exit(3)\n"""',
    "'); raise SystemExit  # ",
    "{0}{x!r}%s%(y)d${z}",
    "x\n    return\n",
    "\\\r\x00\u2028\x1b[2J",
    "lo hi x0 out0 n0",
    "def f(lo, hi): pass",
    "long " * 20_000,
)

_PROGRAM = """HloModule NAME, frontend_attributes={k="STRING"}

add.NAME {
  a.NAME = f32[] parameter(0)
  b.NAME = f32[] parameter(1)
  ROOT c.NAME = f32[] add(a.NAME, b.NAME), metadata={op_name="STRING" source_file="STRING" source_line=1}
}

below.NAME {
  p.NAME = f32[] parameter(0)
  q.NAME = f32[] parameter(1)
  ROOT r.NAME = pred[] compare(p.NAME, q.NAME), direction=LT
}

step.NAME {
  s.NAME = (f32[4,6], s32[]) parameter(0)
  i.NAME = s32[] get-tuple-element(s.NAME), index=1, metadata={op_name="STRING"}
  one.NAME = s32[] constant(1)
  n.NAME = s32[] add(i.NAME, one.NAME), sharding={replicated metadata={op_name="STRING"}}
  v.NAME = f32[4,6] get-tuple-element(s.NAME), index=0
  t.NAME = f32[4,6] tanh(v.NAME), metadata={op_name="STRING" op_type="STRING" scheduling_name="STRING"}
  ROOT o.NAME = (f32[4,6], s32[]) tuple(t.NAME, n.NAME)
}

more.NAME {
  s2.NAME = (f32[4,6], s32[]) parameter(0)
  i2.NAME = s32[] get-tuple-element(s2.NAME), index=1
  five.NAME = s32[] constant(5)
  ROOT l.NAME = pred[] compare(i2.NAME, five.NAME), direction=LT
}

ENTRY main.NAME {
  x.NAME = f32[4,6] parameter(0), metadata={op_name="STRING"}, origin={{"STRING"}}
  w.NAME = f32[6,6] parameter(1), frontend_attributes={k="STRING"}
  zero.NAME = f32[] constant(0)
  nought.NAME = s32[] constant(0)
  mark.NAME = f32[4,6] custom-call(x.NAME), custom_call_target="Sharding", backend_config="STRING"
  d.NAME = f32[4,6] dot(mark.NAME, w.NAME), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e.NAME = f32[4,6] exponential(d.NAME), metadata={op_name="STRING"}, backend_config="STRING"
  init.NAME = (f32[4,6], s32[]) tuple(e.NAME, nought.NAME)
  loop.NAME = (f32[4,6], s32[]) while(init.NAME), condition=more.NAME, body=step.NAME, backend_config={"a":"STRING"}
  y.NAME = f32[4,6] get-tuple-element(loop.NAME), index=0
  sum.NAME = f32[4] reduce(y.NAME, zero.NAME), dimensions={1}, to_apply=add.NAME, metadata={op_name="STRING"}
  sorted.NAME = f32[4,6] sort(y.NAME), dimensions={1}, to_apply=below.NAME, frontend_attributes={k="STRING"}
  ROOT result.NAME = (f32[4], f32[4,6]) tuple(sum.NAME, sorted.NAME)
}
"""


def program(name: str, string: str) -> HloModule:
    return parse(_PROGRAM.replace("NAME", name).replace("STRING", escape(string)))


def kernel_sources(module: HloModule) -> list[str]:
    """The text that is compiled, in the order of the program."""
    return [use.source for use in NumbaCompiler().compile(module)._details._lowered.kernels]


@pytest.fixture(scope="module")
def plain() -> list[str]:
    sources = kernel_sources(program("n", "plain"))
    assert len(sources) >= 3
    return sources


@pytest.mark.parametrize("name", ["lo", "x0", "__import__", "os.system-1", "def", "nan", "n" * 10_000])
def test_names_in_text_do_not_reach_the_code(plain: list[str], name: str) -> None:
    assert kernel_sources(program(name, "plain")) == plain


@pytest.mark.parametrize("string", HOSTILE, ids=lambda s: repr(s[:12]))
def test_strings_in_text_do_not_reach_the_code(plain: list[str], string: str) -> None:
    """Metadata, frontend attributes, shardings, origins, configurations."""
    module = program("n", string)
    verify(parse(module.to_text()))
    assert kernel_sources(module) == plain


@pytest.mark.parametrize("string", HOSTILE, ids=lambda s: repr(s[:12]))
def test_names_that_text_cannot_have_do_not_reach_the_code(plain: list[str], string: str) -> None:
    """Modules that are built, not read, may have any names."""
    module = renamed(program("n", "plain"), string)
    assert kernel_sources(module) == plain
    assert all(source in shown for source, shown in zip(plain, NumbaCompiler().compile(module).kernels().values()))
    verify(parse(module.to_text()))
    assert to_dot(module).count("\n") == to_dot(program("n", "plain")).count("\n")


def test_a_kernel_that_is_shown_is_one_piece_of_code() -> None:
    """The names of the instructions stand above it in comments: a line of a name is not a line of code."""
    module = renamed(program("n", "plain"), "x\nimport os")
    for shown in NumbaCompiler().compile(module).kernels().values():
        head = shown[: shown.index("def ")]
        assert all(line.startswith("#") for line in head.splitlines())


def renamed(module: HloModule, name: str) -> HloModule:
    """The module with `name` in the name of each computation and instruction, and in all metadata."""
    computations: dict[HloComputation, HloComputation] = {}
    for number, computation in enumerate(module.computations):
        instructions: dict[HloInstruction, HloInstruction] = {}
        for place, old in enumerate(computation.instructions):
            instructions[old] = replace(
                old,
                operands=tuple(instructions[o] for o in old.operands),
                attributes=old.attributes.map_computations(lambda c: computations[c]),
                name=f"{name}{number}.{place}",
                metadata=Metadata(name, name, 1),
            )
        computations[computation] = HloComputation(
            f"{name}{number}", tuple(instructions.values()), instructions[computation.root]
        )
    return replace(module, name=name, entry=computations[module.entry])


@pytest.mark.parametrize("target", HOSTILE, ids=lambda s: repr(s[:12]))
def test_targets_of_custom_calls_do_not_reach_the_code(target: str) -> None:
    def module(name: str) -> HloModule:
        call = f'custom-call(n), custom_call_target="{escape(name)}", backend_config="{escape(name)}"'
        lines = ["x = f32[64] parameter(0)", "n = negate(x)", f"c = f32[64] {call}", "ROOT r = exponential(c)"]
        return parse("HloModule m\nENTRY e {\n" + "\n".join(lines) + "}")

    names = ("target of a test", target)
    try:
        for name in names:
            register_custom_call(name, lambda x, backend_config: x + 1)
        plain, hostile = (NumbaCompiler().compile(module(name)) for name in names)
        ours, tame = (program._details._lowered.kernels for program in (hostile, plain))
        assert [k.source for k in ours] == [k.source for k in tame]
        x = np.linspace(0, 1, 64, dtype=np.float32)
        np.testing.assert_allclose(hostile.execute([x])[0], np.exp(1 - x), rtol=1e-6)
    finally:
        for name in names:
            unregister_custom_call(name)
    with pytest.raises(UnsupportedError, match="is not known"):
        NumbaCompiler().compile(module(target))


# Cut off, garbled, long, deep, large

_TEXTS = [module_with(line) for line in INSTRUCTIONS[:: max(1, len(INSTRUCTIONS) // 8)]] + [
    _PROGRAM.replace("NAME", "n").replace("STRING", "s")
]


def parse_or_refuse(text: str) -> bool:
    """True for a module, which is a valid one; False for an error that has a place and a label."""
    try:
        module = parse(text, "cut.hlo")
    except HloParseError as error:
        assert str(error).startswith(f"cut.hlo:{error.line}:{error.column}: ") and error.label
        assert 1 <= error.line <= text.count("\n") + 1 and error.column >= 1
        return False
    verify(module)
    return True


@pytest.mark.parametrize("number", range(len(_TEXTS)))
def test_text_that_is_cut_off_is_refused_wherever_it_ends(number: int) -> None:
    text = _TEXTS[number]
    for end in range(text.rindex("}")):
        ends_with_a_computation = text[:end].rstrip().endswith("\n}")
        assert not parse_or_refuse(text[:end]) or ends_with_a_computation, text[:end][-60:]


@settings(max_examples=150)
@given(st.sampled_from([p for p in RECORDED if p.stat().st_size < 20_000]), st.integers(0, 2**32))
def test_bytes_that_are_garbled(path: object, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(path.read_bytes())  # type: ignore[attr-defined]
    for _ in range(rng.choice([1, 2, 5, 50])):
        data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), *b'{}()[],="%\\#'])
    parse_or_refuse(data.decode("utf-8", "surrogateescape"))


_MEGABYTES = 4_000_000
_IN_A_COMPUTATION = "HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] negate(x)"


@pytest.mark.parametrize(
    "text",
    [
        "x" * _MEGABYTES,
        "(" * _MEGABYTES,
        "HloModule " + "m" * _MEGABYTES,
        "HloModule m" + ", a" * (_MEGABYTES // 3),
        "HloModule m\n" + "\n" * _MEGABYTES,
        "HloModule m /*" + "*" * _MEGABYTES,
        "HloModule m\nENTRY e { x = " + "(" * _MEGABYTES,
        "HloModule m\nENTRY e { x = f32[" + "1," * (_MEGABYTES // 2),
        "HloModule m\nENTRY e { x = f32[" + "1" * _MEGABYTES,
        "HloModule m\nENTRY e { x = f32[2] negate(" + "negate(" * (_MEGABYTES // 7),
        "HloModule m\nENTRY e { x = f32[2] call(), to_apply=" + "{x=call(),to_apply=" * (_MEGABYTES // 20),
        "HloModule m\nENTRY e { x = f32[2] constant({" + "1," * (_MEGABYTES // 2),
        "HloModule m\nENTRY e { x = f32[2] constant(" + "{" * _MEGABYTES,
        _IN_A_COMPUTATION + ', metadata={op_name="' + "\\" * _MEGABYTES,
        _IN_A_COMPUTATION + ", sharding=" + "{" * _MEGABYTES,
        _IN_A_COMPUTATION + ", sharding={" + '"' * _MEGABYTES,
        _IN_A_COMPUTATION + ", frontend_attributes={" + 'a="b",' * (_MEGABYTES // 6),
        _IN_A_COMPUTATION + "#0" * (_MEGABYTES // 2),
        _IN_A_COMPUTATION + ", control-predecessors={" + "x," * (_MEGABYTES // 20),
    ],
)
def test_megabytes_of_garbage_are_refused_in_time(text: str) -> None:
    started = time.perf_counter()
    assert not parse_or_refuse(text)
    assert time.perf_counter() - started < 25


@pytest.mark.parametrize(
    "line",
    [
        "x = f32[9999999999] constant({...})",
        "x = f32[9999999999] constant({1, 2})",
        "x = f32[0,9999999999] constant({1})",
        "x = f32[99999,99999] constant({{1}, {2}})",
        "x = (f32[9999999999], f32[]) constant(({1}, 2))",
        "p = f32[2] parameter(0)\n x = f32[2] all-reduce(p), replica_groups=[1048577,1048577]<=[1099513724929], "
        "to_apply={ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = add(a, b) }",
        "p = f32[2] parameter(0)\n x = f32[2] reduce-window(p, p), window={size=" + "1x" * 5000 + "1}",
        "x = f32[2] parameter(99999999999)",
    ],
)
def test_numbers_that_are_large_take_no_memory(line: str) -> None:
    tracemalloc.start()
    assert not parse_or_refuse(f"HloModule m\nENTRY e {{\n {line}\n}}")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_large_shapes_are_types_like_others() -> None:
    module = parse("HloModule m\nENTRY e { ROOT x = s32[1099511627776] iota(), iota_dimension=0 }")
    verify(module)
    assert parse(module.to_text()).to_text() == module.to_text()


@pytest.mark.parametrize(
    "line",
    [
        "convolution(x, x), window={size=3 stride=0}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3x}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3 pad=1}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3 pad=1_1x1_1}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3 size=3}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={side=3}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=99999999999999999999}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3 lhs_dilate=-1}, dim_labels=b0f_0io->b0f",
        "convolution(x, x), window={size=3}, dim_labels=bb0_0io->b0f",
        "convolution(x, x), window={size=3}, dim_labels=b0f_0io->b1f",
        "convolution(x, x), window={size=3}, dim_labels=b0f_0io",
        "convolution(x, x), window={size=3}, dim_labels=b00f_00io->b00f",
        "convolution(x, x), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=0",
        "all-reduce(x), replica_groups={{0,0}}, to_apply=f",
        "all-reduce(x), replica_groups={{0},{}}, to_apply=f",
        "all-reduce(x), replica_groups={{-1}}, to_apply=f",
        "all-reduce(x), replica_groups={0}, to_apply=f",
        "all-reduce(x), replica_groups=[2,2]<=[5], to_apply=f",
        "all-reduce(x), replica_groups=[2,2]<=[4]T(1), to_apply=f",
        "all-reduce(x), replica_groups=[-2,-2]<=[4], to_apply=f",
        "all-reduce(x), replica_groups=[2,2]<=, to_apply=f",
        "collective-permute(x), source_target_pairs={{0,1,2}}",
        "pad(x, x), padding=99999999999999999999_0",
        "pad(x, x), padding=0_0_-1",
        "slice(x), slice={[0:9223372036854775807:0]}",
        "slice(x), slice={[-1:2]}",
        "slice(x), slice={[2:1]}",
        "transpose(x), dimensions={0,0}",
        "transpose(x), dimensions={9223372036854775807}",
        "broadcast(x), dimensions={-1}",
        "get-tuple-element(x), index=-1",
        'call(x), to_apply=f, metadata={op_name="a" op_name="b"}',
    ],
)
def test_attributes_that_make_no_sense(line: str) -> None:
    text = (
        "HloModule m\nf { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{\n x = f32[2,3,4] parameter(0)\n ROOT y = f32[2,3,4] {line} }}"
    )
    assert not parse_or_refuse(text)


def test_programs_with_hostile_strings_compute_the_same() -> None:
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    w = np.linspace(0, 1, 36, dtype=np.float32).reshape(6, 6)
    expected = evaluate(program("n", "plain"), x, w)
    found = NumbaCompiler().compile(program("lo", HOSTILE[0])).execute([x, w])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
