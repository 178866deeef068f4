"""Text that is not HLO is refused with line, column and the expected text; nothing hangs or raises another error."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hloom.hlo import HloError, HloParseError, ShapeError, parse, verify
from hloom.hlo.text.instruction_parser import MAX_NESTING
from hloom.hlo.text.resolver import MAX_CALL_DEPTH
from hypothesis import given, settings
from hypothesis import strategies as st

from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with
from support.steps import steps_of

_BEFORE = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[2,3] parameter(0)
  i = s32[] parameter(1)
"""
_LINE = _BEFORE.count("\n") + 1


@pytest.mark.parametrize(
    ("line", "at", "message"),
    [
        # syntax
        ("r = f32[2,3] negate(x", "}", "expected ',' or ')' after an operand, found '}'"),
        ("r = f32[2,3] negate(x) negate", "\n", "expected '=' after negate"),
        ("r f32[2,3] negate(x)", "f32", "expected '=' after r, found 'f32'"),
        ("= f32[2,3] negate(x)", "=", "expected an instruction or '}', found '='"),
        ("r = iota(), iota_dimension=0", "iota", "the result's shape must stand before iota"),
        ("r = f33[2,3] negate(x)", "f33", "expected a shape, but no element type is 'f33'"),
        ("r = ?", "?", "expected a shape or an opcode, found '?'"),
        ("r = f32[2,3] (x)", "(", "expected an opcode, found '('"),
        ("r = f32[2,3] negate x", "x", "expected '(' after negate, found 'x'"),
        ("r = f32[2,3] negate(x), ", "}", "expected the key of an attribute"),
        ("r = f32[2,3] negate(x), metadata", "}", "expected '=' after metadata"),
        ("r = f32[2,3] negate(x), metadata={op_name=a}", "a}", "expected a string, found 'a'"),
        ('r = f32[2,3] negate(x), metadata={op_name="a}', '"a', "expected '\"' at the end of this string"),
        ('r = f32[2,3] negate(x), metadata={op_name="\\q"}', '"\\q', "is not an escape sequence"),
        ("r = f32[2,3] negate(x), sharding={{{replicated}", "{{{", "expected '}' for this '{'"),
        ("r = f32[2,3] negate(%negate(x))", "(x", "expected ',' or ')' after an operand, found '('"),
        ("r = f32[2,3] negate(negat(x))", "negat(x", "'negat' is no HLO op: expected an opcode, perhaps 'negate'"),
        ("r = f32[2,3] negate(slice(x), slice={[0:2], [0:3]})", "slice(x", "slice needs slice="),
        (f"r = {'negate(' * 66}x{')' * 66}", "negate(x", f"instructions are nested deeper than {MAX_NESTING}"),
        ("r = f32[] add(x#0, x#0)", "x#0, x", "the operand must be a tuple [get-tuple-element_c1]"),
        ("r = f32[] call(x, x), to_apply={}", "{}\n", "computation in this place is empty"),
        # opcodes
        ("r = f32[2,3] negat(x)", "negat", "'negat' is no HLO op: expected an opcode, perhaps 'negate'"),
        ("r = f32[2,3] custom-call(x)", "custom", "custom-call r needs custom_call_target="),
        ("r = f32[2,3] negat-start(x)", "negat-", "'negat-start' is no HLO op"),
        ("r = f32[2,3] negate-start(x)", "negate-", "the shape of negate-start must be ((operands), result, ...)"),
        ("r = f32[2,3] negate-done(x)", "negate-", "negate-done needs what negate-start gave [async-done_c1]"),
        # attributes
        (
            "r = f32[2,3] negate(x), dimensions={0}",
            "dim",
            "unknown attribute 'dimensions' of negate: expected metadata or frontend_attributes",
        ),
        ("r = f32[3,2] transpose(x)", "transpose", "transpose r needs dimensions="),
        ("r = f32[3,2] transpose(x), dimensions={1,0}, dimensions={1,0}", "dimensions={1,0}\n", "is given twice"),
        ("r = f32[3,2] transpose(x), dimensions={1,}", "}\n", "expected a number, found '}'"),
        ("r = f32[3,2] transpose(x), dimensions=1", "1\n", "expected '{' to open a list of numbers, found '1'"),
        ("r = pred[2,3] compare(x, x), direction=XX", "XX", "expected one of EQ, NE, GE, GT, LE, LT, found 'XX'"),
        ("r = f32[1,3] slice(x), slice={[0:1] [0:3]}", "[0:3]", "expected ',' or '}' after a range"),
        ("r = f32[1,3] slice(x), slice={[0]}", "]}", "expected ':', found ']'"),
        ("r = f32[2,3] pad(x, f), padding=0_0x", "\n", "expected padding as low_high or low_high_interior"),
        ("r = f32[2,3] pad(x, f), padding=a", "a\n", "expected padding as low_high or low_high_interior"),
        ("r = f32[2,3] dot(x, x), operand_precision={best,high}", "best", "expected one of default, high, highest"),
        ("r = f32[2,3] negate(x), algorithm=dot_f32_f32_f32", "algo", "unknown attribute 'algorithm' of negate"),
        ("r = f32[2,3] concatenate(x), dimensions={0,1}", "{0,1}", "expected one dimension, found 2"),
        ("r = f32[2] iota(), iota_dimension=99999999999999999999", "9999", "does not fit in 64 bits"),
        ("r = f32[] conditional(i, x, x), true_computation=add", "cond", "needs either branch_computations, or"),
        ("r = f32[] call(x, x), to_apply=add, is_composite=yes", "yes", "expected true or false, found 'yes'"),
        (
            "r = f32[] call(x, x), to_apply=add, is_composite=true",
            "call",
            "needs the frontend attribute composite.name",
        ),
        (
            'r = f32[] call(x), to_apply=add, is_composite=true, frontend_attributes={composite.name="a",'
            'composite.version="one"}',
            "call",
            "composite.version must be a number, not 'one'",
        ),
        (
            'r = f32[] call(x), to_apply=add, is_composite=true, frontend_attributes={composite.name="a",'
            'composite.attributes="{="}',
            "call",
            "composite.attributes: expected a dictionary in braces",
        ),
        ('r = f32[2,3] negate(x), frontend_attributes={a="b",a="c"}', 'a="c', "frontend attribute 'a' is given twice"),
        # names
        ("r = f32[2,3] negate(y)", "y)", "expected the name of an earlier instruction, but there is no y"),
        ("r = f32[2,3] negate(r)", "r)", "expected the name of an earlier instruction, but there is no r"),
        ("x = f32[2,3] negate(x)", "negate", "two instructions of e are called x"),
        ("r = f32[2,3] negate(f32[3] x)", "f32[3]", "x is f32[2,3], not f32[3]"),
        ("r = f32[] call(x), to_apply=sub", "sub", "expected the name of a computation, but there is no sub"),
        ("r = f32[] call(x, i), to_apply=e", "e\n", "computation e calls itself, directly or through others"),
        (
            "ROOT r = f32[2,3] negate(x)\n  ROOT s = f32[2,3] negate(x)",
            "negate(x)\n}",
            "computation e has a second ROOT",
        ),
        ("p = f32[] parameter(3)", "", "the parameters of e are numbered [0, 1, 3]: expected 0 to 2"),
        ("p = f32[] parameter(1)", "", "the parameters of e are numbered [0, 1, 1]: expected 0 to 2"),
        # shape rules, with their labels
        ("r = f32[2,3] add(x, i)", "add", "operands must have one element type [add_c2]"),
        ("r = f32[3,2] negate(x)", "negate", "gives f32[2,3], not f32[3,2] [negate_result]"),
        ("r = f32[2,3] add(x)", "add", "add takes 2 operands, not 1 [add_arity]"),
        ("r = f32[6] reshape(i)", "reshape", "[reshape_c"),
        ("r = f32[2] reduce(x, x), dimensions={1}, to_apply=add", "reduce", "[reduce_c3]"),
        ("r = f32[2,3] get-tuple-element(x), index=0", "get", "the operand must be a tuple [get-tuple-element_c1]"),
        ("r = token[] negate(x)", "negate", "negate of (f32[2,3]) gives f32[2,3], not token[] [negate_result]"),
        ("r = f32[2,3] negate(x), control-predecessors={y}", "y}", "there is no y [computation_c2]"),
        ("r = opaque[] negate(x)", "opaque", "shapes of opaque values are not supported"),
        ("r = b(f32[2,3]) negate(x)", "b(", "shapes of buffers, b(...), are not supported"),
        ("r = f32[<=2,3] negate(x)", "<=", "dimensions whose size is known only when the program runs"),
        ("r = f32[2,3]{1,0:D(D,C)} negate(x)", "(D,C", "sparse layouts are not supported"),
        ("r = f32[2,3]{1,0:D(D)} negate(x)", "(D)", "the layout of 2 dimensions says of 1 that they are dense"),
        ("r = f32[2,3]{1,0:#(u8)} negate(x)", "#", "a type for the indices of a sparse array are not supported"),
        ("r = f32[2,3]{1,0:P(f32[2])} negate(x)", "P(", "layouts with a physical shape are not supported"),
        # sizes
        ("r = f32[9999999999,9999999999] broadcast(i)", "f32", "does not fit in 64-bit memory"),
        ("r = f32[2] constant({1})", "1})", "expected 2 elements in this row of the constant, found 1"),
        ("r = f32[2] constant({...})", "{...", "left out when this text was printed"),
        ("r = (f32[2], s32[]) constant({...})", "{...", "left out when this text was printed"),
        ("r = (f32[2], s32[]) constant(({1, 2}))", "))", "expected ',' after element 0 of 2 of the tuple"),
        ("r = (f32[2], s32[]) constant(({1, 2}, 3, 4))", ", 4", "expected ')' after the 2 elements of the tuple"),
        ("r = f32[9999999999] constant({...})", "{...", "left out when this text was printed"),
        ("r = f32[9999999999] constant({1, 2})", "1, 2})", "expected 9999999999 elements in this row of the constant"),
        ("r = f32[9999999999,9999] constant({{1}})", "1}}", "expected 9999 elements in this row of the constant"),
        (f"r = {'(' * 64}(f32[2])", "(f32[2])", "tuples are nested deeper than 64"),
    ],
)
def test_errors_in_a_line(line: str, at: str, message: str) -> None:
    """`at` begins where the error must point, in the line and what follows; "" stands for the computation's name."""
    text = f"{_BEFORE}  {line}\n}}\n"
    with pytest.raises(HloParseError) as caught:
        parse(text, "test.hlo")
    error = caught.value
    assert message in error.message
    assert str(error).startswith(f"test.hlo:{error.line}:{error.column}: ")
    where = sum(len(part) + 1 for part in text.split("\n")[: error.line - 1]) + error.column - 1
    if at == "":
        assert text[where:].startswith("e {")
    elif at == "\n":
        assert text[where:].startswith("}")
    else:
        assert where == text.index(at, len(_BEFORE)), f"points at {text[where:]!r}"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected 'HloModule', found the end of the text"),
        ("module @m {}", 1, 1, "expected 'HloModule', found 'module'"),
        ("HloModule", 1, 10, "expected the name of the module"),
        ("HloModule m", 1, 12, "expected a computation"),
        ("HloModule m, foo=1", 1, 14, "unknown attribute 'foo' of the module"),
        ("HloModule m, is_scheduled=1", 1, 27, "expected true or false"),
        ("HloModule m\n\nENTRY e {", 3, 10, "expected an instruction or '}', found the end of the text"),
        ("HloModule m\nENTRY e { }", 2, 7, "computation e is empty"),
        ("HloModule m\nENTRY e { x = f32[] parameter(0) } }", 2, 36, "expected a computation, found '}'"),
        (
            "HloModule m\na { x = f32[] parameter(0) }\na { x = f32[] parameter(0) }",
            3,
            1,
            "two computations are called a",
        ),
        ("HloModule m\nENTRY a { x = f32[] constant(1) }\nENTRY b {", 3, 10, "expected an instruction"),
        (
            "HloModule m\nENTRY a { x = f32[] parameter(0) }\nENTRY b { x = f32[] parameter(0) }",
            3,
            7,
            "both a and b are ENTRY",
        ),
        ("HloModule m\na (x: f32[2]) -> f32[] { x = f32[] parameter(0) }", 2, 1, "says that it takes (f32[2])"),
        ("HloModule m\na (x: f32[]) -> f32[2] { x = f32[] parameter(0) }", 2, 1, "says that it returns f32[2]"),
        ("HloModule m\na (x) -> f32[2] { x = f32[] parameter(0) }", 2, 5, "expected ':' before the parameter's shape"),
        ("HloModule m\na { x = f32[] parameter(-1) }", 2, 15, "number -1 must not be negative [parameter_c2]"),
        (
            "HloModule m, entry_computation_layout={()->f32[]}\na { x = f32[] parameter(0) }",
            1,
            14,
            "expected one of (f32[])->f32[]",
        ),
        (
            "HloModule m, input_output_alias={ {0}: (0, {}) }\na { x = f32[] parameter(0) }",
            1,
            14,
            "an alias of output [0] needs a parameter of its size",
        ),
        (
            "HloModule m, input_output_alias={ {}: (0, {}), {}: (0, {}) }\na { x = f32[] parameter(0) }",
            1,
            14,
            "aliased twice",
        ),
        ("HloModule m, input_output_alias={ {}: (0, {}, no) }", 1, 47, "expected may-alias or must-alias"),
        ("HloModule m, replica_count=0\na { x = f32[] parameter(0) }", 1, 28, "there must be 1 to"),
        ("HloModule m, num_partitions=-1\na { x = f32[] parameter(0) }", 1, 29, "there must be 1 to"),
        (
            "HloModule m, buffer_donor={ (0, {0}) }\na { x = f32[] parameter(0) }",
            1,
            14,
            "buffer donor (0, [0]) is no leaf of a parameter [module_c6]",
        ),
        (
            "HloModule m, buffer_donor={ (0, {}), (0, {}) }\na { x = f32[] parameter(0) }",
            1,
            14,
            "a buffer donor is named twice [module_c6]",
        ),
        ("a(b) { x = f32[] parameter(0) }", 1, 1, "expected 'HloModule', found 'a'"),
        ("HloModule m\nFileNames\n1 2", 3, 3, "expected a name in quotes"),
        ("HloModule m\nFileLocations\n1 {a=b}", 3, 6, "expected a number"),
        ("HloModule m\na { x = f32[] parameter(0) }, foo=1", 2, 31, "unknown attribute 'foo' of a computation"),
    ],
)
def test_errors_in_a_module(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_rule_that_fails_is_the_cause() -> None:
    with pytest.raises(HloParseError) as caught:
        parse(f"{_BEFORE} r = f32[2,3] add(x, i) }}")
    assert isinstance(caught.value.__cause__, ShapeError) and caught.value.__cause__.label == "add_c2"
    assert caught.value.label == "add_c2" and caught.value.message.endswith("[add_c2]")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("a { x = f32[] parameter(0)", "syntax"),
        ("a { x = f32[] negat(y) }", "syntax"),
        ("a { x = f32[] parameter(0) }\na { x = f32[] parameter(0) }", "module_c1"),
        ("a { x = f32[] parameter(0)\n x = f32[] parameter(1) }", "module_c2"),
        ("a { x = f32[] parameter(0)\n y = f32[] call(x), to_apply=a }", "module_c3"),
        ("a { y = f32[] negate(x)\n x = f32[] parameter(0) }", "computation_c2"),
        ("a { x = f32[] negate(x) }", "computation_c2"),
        ("a { x = f32[] parameter(7) }", "computation_c3"),
        ("HloModule m, input_output_alias={ {}: (1, {}) }\na { x = f32[] parameter(0) }", "module_c4"),
        ("HloModule m, entry_computation_layout={()->f32[]}\na { x = f32[] parameter(0) }", "module_c5"),
        ("a { x = f32[-2] parameter(0) }", "shape_c1"),
        ("a { x = f32[9999999999,9999999999] parameter(0) }", "shape_c2"),
        ("a { x = f32[0,9223372036854775807] parameter(0) }", "shape_c2"),
        (  # the product's type is inferred
            "a { x = f32[1099511627776,0] parameter(0)\n y = f32[0,1099511627776] parameter(1)\n"
            "z = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
            "shape_c2",
        ),
        ("a { x = f32[2,2]{1,1} parameter(0) }", "layout_c2"),
    ],
)
def test_every_error_has_a_label(text: str, label: str) -> None:
    """The label of the broken rule; the message ends with it, except for errors of the grammar."""
    with pytest.raises(HloParseError) as caught:
        parse(text)
    assert caught.value.label == label
    assert label == "syntax" or caught.value.message.endswith(f"[{label}]")


# Depth and size


def _chain(length: int) -> list[str]:
    """Computations; each one calls the previous one."""
    calls = (f"c{n} {{ x = s8[] parameter(0)\n ROOT r = s8[] call(x), to_apply=c{n - 1} }}" for n in range(1, length))
    return ["c0 { ROOT x = s8[] parameter(0) }", *calls]


@pytest.mark.parametrize("backwards", [False, True])
def test_deep_calls(backwards: bool) -> None:
    def text(length: int) -> str:
        *others, last = _chain(length)
        computations = [*others, f"ENTRY {last}"]
        return "\n".join(["HloModule m", *(computations[::-1] if backwards else computations)])

    verify(parse(text(MAX_CALL_DEPTH)))
    for length in (MAX_CALL_DEPTH + 1, 5000):
        with pytest.raises(HloParseError, match="nested deeper"):
            parse(text(length))


def test_recursion_through_others() -> None:
    text = """HloModule m
    a { x = f32[] parameter(0)
      ROOT r = f32[] call(x), to_apply=b }
    b { x = f32[] parameter(0)
      ROOT r = f32[] call(x), to_apply=c }
    c { x = f32[] parameter(0)
      ROOT r = f32[] call(x), to_apply=b }
    """
    with pytest.raises(HloParseError, match="computation b calls itself"):
        parse(text)


def test_long_chains_of_instructions() -> None:
    lines = [f" n{i + 1} = f32[] negate(n{i})" for i in range(5_000)]
    module = parse("HloModule m\nENTRY e {\n n0 = f32[] parameter(0)\n" + "\n".join(lines) + "}")
    assert len(module.entry.instructions) == 5_001
    assert module.to_text().count("negate(") == 5_000


_LONG: dict[str, Callable[[int], str]] = {
    "instructions": lambda i: f'a{i} = f32[2,3]{{1,0}} add(x, x), metadata={{op_name="a{i}"}}',
    "nested instructions": lambda i: f"a{i} = add(negate(x), abs(x))",
    "elements of tuples": lambda i: f"t{i} = (f32[], f32[]) constant((1, 2))\na{i} = add(t{i}#0, t{i}#1)",
    "computations in place": lambda i: f"a{i} = call(x), to_apply={{ p = f32[2,3] parameter(0)\n q = abs(p) }}",
    "sugar": lambda i: f"s{i} = ((f32[2,3]), f32[2,3], u32[]) abs-start(x)\na{i} = f32[2,3] abs-done(s{i})",
}


@pytest.mark.parametrize("kind", _LONG)
def test_steps_are_linear_in_the_number_of(kind: str) -> None:
    def steps(count: int) -> int:
        body = "\n".join(map(_LONG[kind], range(count)))
        text = f"HloModule m\nENTRY e {{\n  x = f32[2,3]{{1,0}} parameter(0)\n{body}\n}}"
        return steps_of(lambda: parse(text))

    steps(100)
    assert steps(1000) < 9 * steps(125)


def test_steps_are_linear_in_the_length_of_a_tuple_of_constants() -> None:
    def steps(count: int) -> int:
        text = f"ENTRY e {{ c = ({'f32[2], ' * count}f32[]) constant(({'{1, 2}, ' * count}3)) }}"
        return steps_of(lambda: parse(text))

    steps(100)
    assert steps(1000) < 9 * steps(125)


# Anything at all

_TEXTS = [module_with(line) for line in INSTRUCTIONS] + [p.read_text() for p in RECORDED if p.stat().st_size < 6000]
_PIECES = re.compile(r"\s+|[A-Za-z0-9_.\-]+|.", re.DOTALL)
_ODD = ["{", "}", "(", ")", "[", "]", ",", "=", '"', "\\", "/*", "*/", "//", "%", "<=", "?", "->", ":", "ROOT", "ENTRY"]
_ODD += [
    "99999999999999999999",
    "-1",
    "0",
    "9223372036854775807",
    "nan",
    "{...}",
    "f8e4m3",
    "f32[]",
    "(f32[])",
    "é",
    "\x00",
]


@settings(max_examples=400)
@given(st.integers(0, 2**32))
def test_mutated_text_gives_a_module_or_an_error(seed: int) -> None:
    """A few tokens of a valid text removed, doubled, swapped or replaced, or the text cut off."""
    rng = random.Random(seed)
    pieces = _PIECES.findall(rng.choice(_TEXTS))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        i, j = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        match rng.randrange(6):
            case 0:
                pieces[i] = rng.choice(_ODD)
            case 1:
                pieces[i] = pieces[j]
            case 2:
                pieces[i] = ""
            case 3:
                pieces.insert(i, rng.choice(_ODD))
            case 4:
                pieces[i], pieces[j] = pieces[j], pieces[i]
            case 5 if rng.random() < 0.3:
                pieces = pieces[: i + 1]
    _parse_or_refuse("".join(pieces))


@given(st.text() | st.lists(st.sampled_from([*_ODD, " ", "HloModule m\n", "a {", "x = f32[2] add(x, x)"])).map("".join))
def test_any_text_gives_a_module_or_an_error(text: str) -> None:
    _parse_or_refuse(text)
    _parse_or_refuse("HloModule m\nENTRY e { x = f32[2] parameter(0)\n" + text)


def _parse_or_refuse(text: str) -> None:
    try:
        module = parse(text)
    except HloParseError as error:
        assert 1 <= error.line <= text.count("\n") + 1 and error.column >= 1
        assert error.message
        return
    verify(module)
    printed = module.to_text()
    assert parse(printed).to_text() == printed


def test_only_hlo_errors_derive_from_one_class() -> None:
    assert issubclass(HloParseError, HloError) and issubclass(HloParseError, ValueError)
