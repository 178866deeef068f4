"""The cursor over HLO text, and the strings and names in the text."""

from __future__ import annotations

import pytest
from hloom.hlo import HloParseError
from hloom.hlo.text.escape import escape, unescape, visible
from hloom.hlo.text.mlir_dictionary import read_dictionary, write_dictionary
from hloom.hlo.text.names import Namer, module_name
from hloom.hlo.text.scanner import Scanner
from hypothesis import given
from hypothesis import strategies as st


def test_tokens_between_comments_and_line_ends() -> None:
    scanner = Scanner(' // one\n %a.b-c_1 /* "two" \n*/ = -12 {\r\n"x" } tail')
    assert scanner.name("a name") == "a.b-c_1"
    scanner.expect("=")
    assert scanner.integer("a number") == -12
    assert scanner.accept("{") and not scanner.accept("(")
    assert scanner.string("a string") == "x"
    scanner.expect("}")
    assert scanner.peek_word() == "tail" and not scanner.accept_word("tai") and scanner.accept_word("tail")
    assert scanner.at_end() and scanner.peek_word() == ""


def test_an_error_points_at_the_token() -> None:
    scanner = Scanner("first\n\tsecond  third", "model.hlo")
    scanner.word("a word")
    scanner.word("a word")
    with pytest.raises(HloParseError) as caught:
        scanner.integer("a number")
    error = caught.value
    assert (error.file, error.line, error.column) == ("model.hlo", 2, 10)
    assert error.message == "expected a number, found 'third'"
    assert str(error).splitlines() == [
        "model.hlo:2:10: expected a number, found 'third'",
        "   second  third",
        "           ^",
    ]


def test_an_error_in_a_long_line_shows_its_surroundings() -> None:
    scanner = Scanner("x" * 100_000 + "!" + "y" * 100_000)
    scanner.word("a word")
    with pytest.raises(HloParseError) as caught:
        scanner.expect("{", "to open")
    _, line, caret = str(caught.value).splitlines()
    assert len(line) < 200 and line[caret.index("^")] == "!"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a thing, found the end of the text"),
        ("/* never closed", "expected a thing, found '/'"),
        ("é", "expected a thing, found 'é'"),
        ("{", "expected a thing, found '{'"),
    ],
)
def test_what_was_found_instead(text: str, message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        Scanner(text).name("a thing")
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "1" * 5000])
def test_integers_have_64_bits(text: str) -> None:
    with pytest.raises(HloParseError, match="does not fit in 64 bits"):
        Scanner(text).integer("a number")
    assert Scanner("-9223372036854775808").integer("a number") == -(2**63)


def test_braces_in_strings_do_not_count() -> None:
    assert Scanner('{a="}{" {b}} rest').braced("a value") == '{a="}{" {b}}'
    with pytest.raises(HloParseError, match=r"expected '\}' for this '\{'"):
        Scanner("{ { }").braced("a value")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (r"a\nb\tc\"d\\e\'", "a\nb\tc\"d\\e'"),
        (r"\303\251", "é"),
        (r"\xc3\xA9\u00e9\U0001F600", "éé\U0001f600"),
        (r"\0017", "\x017"),
        (r"\377", "\udcff"),
    ],
)
def test_escapes(body: str, value: str) -> None:
    assert unescape(body) == value
    assert Scanner(f'"{body}"').string("a string") == value


@pytest.mark.parametrize("body", [r"\q", r"\777", r"\U99999999", "\\"])
def test_escapes_that_are_none(body: str) -> None:
    with pytest.raises(ValueError, match="is not an escape sequence"):
        unescape(body)


@given(st.text())
def test_any_string_survives(text: str) -> None:
    assert Scanner(f'"{escape(text)}" tail').string("a string") == text


@given(st.lists(st.tuples(st.text(), st.one_of(st.text(), st.integers().map(str), st.just("2.5 : f32")))))
def test_any_mlir_dictionary_survives(pairs: list[tuple[str, str]]) -> None:
    assert read_dictionary(write_dictionary(pairs)) == tuple(pairs)


def test_mlir_dictionaries_as_jax_writes_them() -> None:
    scalars = r'a = 3 : i64, b = "s\22}q", c = 1.500000e+00 : f64, e = true'
    others = "g = dense<[1, 2]> : tensor<2xi64>, u, n = {x = []}"
    assert read_dictionary(f"{{{scalars}, {others}}}") == (
        ("a", "3 : i64"),
        ("b", 's"}q'),
        ("c", "1.500000e+00 : f64"),
        ("e", "true"),
        ("g", "dense<[1, 2]> : tensor<2xi64>"),
        ("u", "unit"),
        ("n", "{x = []}"),
    )


@pytest.mark.parametrize("text", ["", "{", "}", "{a = }}", "{,}", "{= 3}", "{a = [}", '{a = "}', "{a = 1,}", "{} {}"])
def test_mlir_dictionaries_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_dictionary(text)


def test_names_become_identifiers_that_occur_once() -> None:
    namer = Namer()
    given = ["add", "add", "a b", "a_b", "", "", "1x", "é", "f32", "add.1", "%p", "}\n evil", "tuple"]
    assert [namer.unique(name, "op") for name in given] == [
        *("add", "add.1", "a_b", "a_b.1", "op", "op.1", "_1x", "_", "f32_", "add.1.1", "_p", "___evil", "tuple"),
    ]


@pytest.mark.parametrize(
    ("name", "printed"),
    [("jit_f", "jit_f"), ("", "module"), ("true", "true_"), ("s32", "s32_"), ("<lambda>", "_lambda_")],
)
def test_module_names(name: str, printed: str) -> None:
    assert module_name(name) == printed


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain \\n\"", "plain \\n\""), ("a\tb\n", "a\tb\n"), ("\x1b[31m\0", "\\033[31m\\000"), ("é\x9b", "é\\302\\233")],
)
def test_visible_text_moves_no_cursor(text: str, shown: str) -> None:
    assert visible(text) == shown
