"""MLIR text of any kind is read, or refused with its place, in time that is linear in its length."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hloom.hlo import HloError, HloParseError, UnsupportedError
from hloom.hlo.mlir.scanner import MAX_DEPTH
from hloom.hlo.stablehlo import parse
from hloom.hlo.stablehlo.text import read, write

from support.mlir_texts import LINES, module_with

PROGRAM = (Path(__file__).parents[2] / "data" / "mlir" / "program.mlir").read_text()
TEXTS = [PROGRAM, *(module_with(text) for text in LINES.values())]
WORDS = """
-> :: <{ }> ({ %0 %0#1 @f #map !pair loc( dense< dense<1> tensor< tensor<2xf32> tensor<?xf32> array<i64:1> x 0x 1e400
tensor<9999999999x99999999999xf32> -1 99999999999999999999999 "stablehlo.add" stablehlo.add func.func return module
attributes f32 complex<f32> ^bb0: // {-# #-} \u00e9 \x00 1.0 0xFFFFFFFFF applies true unit
"""
PIECES = [*"{}()[]<>,:=%@#!^?-\"\n\\", *WORDS.split()]
_TOKEN = re.compile(r"\s+|[\w.]+|.", re.DOTALL)


def mutated(text: str, random_: random.Random) -> str:
    """The text with a few tokens left out, doubled, exchanged, or replaced."""
    tokens = _TOKEN.findall(text)
    for _ in range(random_.choice((1, 1, 2, 3))):
        at = random_.randrange(len(tokens))
        kind = random_.randrange(5)
        if kind == 0:
            del tokens[at : at + random_.randint(1, 3)]
        elif kind == 1:
            tokens[at:at] = tokens[at : at + random_.randint(1, 6)]
        elif kind == 2:
            other = random_.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = random_.choice(PIECES)
        else:
            tokens.insert(at, random_.choice(PIECES))
        tokens = tokens or [" "]
    return "".join(tokens)


def check(text: str) -> bool:
    """True if the text is read; then what is written is read as the same."""
    try:
        tree = read(text)
    except HloParseError as error:
        assert 1 <= error.line <= text.count("\n") + 1 and error.file == "<mlir>"
        return False
    except UnsupportedError as error:
        assert re.match(r"<mlir>:\d+:\d+: ", str(error))
        return False
    written = write(tree)
    assert write(read(written)) == written
    return True


def test_the_program_is_read() -> None:
    assert check(PROGRAM)


@pytest.mark.parametrize("number", range(4))
def test_mutated_text_is_read_or_refused(number: int) -> None:
    read_, refused = 0, 0
    for seed in range(number * 250, number * 250 + 250):
        random_ = random.Random(seed)
        text = mutated(random_.choice(TEXTS) if seed % 3 else PROGRAM, random_)
        if check(text):
            read_ += 1
        else:
            refused += 1
    assert read_ >= 5 and refused > 100


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_much_mutated_text_is_read_or_refused(number: int) -> None:
    for seed in range(10**6 + number * 1000, 10**6 + number * 1000 + 1000):
        random_ = random.Random(seed)
        check(mutated(random_.choice(TEXTS), random_))


def test_a_mutated_program_becomes_hlo_or_is_refused() -> None:
    """The meaning of a program that is well-formed, but makes no sense, is refused by an error of this library."""
    for seed in range(400):
        random_ = random.Random(seed)
        with suppress(HloError):
            parse(mutated(random_.choice(TEXTS), random_))


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('"a.b"() ({', "}) : () -> ()"),
        ("module {", "}"),
        ('"a.b"() {k = [', "]} : () -> ()"),
        ('"a.b"() {k = {k = ', "}} : () -> ()"),
        ('"a.b"() {k = tuple<', ">} : () -> ()"),
        ('"a.b"() {k = () -> ', "} : () -> ()"),
        ('"a.b"() {k = #x.y<', ">} : () -> ()"),
        ('"a.b"() {k = !x.y<', ">} : () -> ()"),
        ('"a.b"() : () -> () loc(fused[', "])"),
        ('"a.b"() {k = tensor<2xf32, #x.y<', ">>} : () -> ()"),
    ],
)
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    """The innermost pieces are repeated: a parser that calls itself for each has to stop."""
    inner = opening[opening.rindex(" ") + 1 :] if "k = " in opening or "loc" in opening else opening
    inner_end = closing[0] if "k = " in opening or "loc" in opening else closing
    for count in (2, MAX_DEPTH * 2, 100_000):
        text = opening + inner * count + inner_end * count + closing
        try:
            tree = read(text)
        except HloParseError:
            assert count > 2 or "loc" in opening or "k = {k" in opening or "() -> " in opening
        else:
            assert write(tree)
            assert count == 2 or "." in inner


@pytest.mark.parametrize(
    "text",
    [
        '"' * 200_000,
        '\\"' * 200_000,
        "tensor<" * 100_000,
        "dense<" * 100_000,
        "tensor<2x" * 100_000,
        "dense<[" + "[" * 200_000,
        "#a = " * 100_000,
        "loc(" * 100_000,
        "%0 = " * 100_000,
        "{-# " * 100_000,
        "// \n" * 200_000,
        "@" + '"' * 100_001,
        '"a"() : ' + "(" * 200_000,
        '"a"() {x = #x.y<' + "(->" * 100_000,
        '"a"() {x = tensor<2x3xf32, #x.y<' + "->" * 100_000,
        'func.func @f(%x: tensor<f32>) {\n' + "%x = stablehlo.add %x, %x : tensor<f32>\n" * 10_000,
        '"a"() {x = "' + "\\22" * 200_000 + '"} : () -> ()',
        '"a"() {x = dense<"0x' + "00" * 500_000 + '"> : tensor<500000xi8>} : () -> ()',
        '"a"() {x = dense<' + "1" * 500_000 + '> : tensor<500000xi8>} : () -> ()',
        '"a"() {x = ' + "1" * 500_000 + ": i64} : () -> ()",
        '"a"() {x = 1.0e' + "9" * 500_000 + ": f64} : () -> ()",
        "%a:" + "9" * 100_000 + ' = "a"() : () -> ()',
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_long_text_takes_linear_time(text: str) -> None:
    started = time.process_time()
    with suppress(HloParseError, UnsupportedError):
        read(text)
    assert time.process_time() - started < 3


def test_a_literal_that_no_memory_holds_is_no_error_of_python() -> None:
    huge = "tensor<1000000000x1000000000xf32>"
    assert read(f'"a"() {{x = dense<1.0> : {huge}}} : () -> ()')
    for literal in ("dense<>", 'dense<"0x00">', "dense<[1.0]>"):
        with pytest.raises(HloParseError):
            read(f'"a"() {{x = {literal} : {huge}}} : () -> ()')
    with pytest.raises(HloParseError, match=r"too large|in memory"):
        read('"a"() {x = dense<1.0> : tensor<9000000000000000000x9000000000000000000xf32>} : () -> ()')


def test_an_alias_of_itself_is_refused() -> None:
    with pytest.raises(HloParseError, match="not defined"):
        read('#a = [#b]\n#b = [#a]\n"x"() {k = #a} : () -> ()')


_NUMBER = re.compile(r"(?<![\w%#.])-?\d+(?![\w.])|(?<=[<x])\d+(?=x)")
_WORD = re.compile(r"\b(?:f32|i32|i64|i1|ui32|complex<f32>|true|false|[A-Z_]{2,})\b")
_NUMBERS = ("0", "1", "2", "3", "-1", "7", "-9223372036854775808", "9223372036854775807", "100000000000")
_WORDS = ("f32", "i32", "i64", "i1", "ui32", "complex<f32>", "true", "false", "DEFAULT", "LT", "f8E4M3FN", "i4")


def with_another_number(text: str, random_: random.Random) -> str:
    """The text with one number, type or word of an attribute replaced: mostly well-formed, and mostly without sense."""
    places, choices = random_.choice(((_NUMBER, _NUMBERS), (_NUMBER, _NUMBERS), (_WORD, _WORDS)))
    found = random_.choice(list(places.finditer(text)) or [re.match("", text)])
    assert found is not None
    return text[: found.start()] + random_.choice(choices) + text[found.end() :]


def converted(seed: int) -> bool:
    """True if a program with another number becomes HLO; it may be refused, with a place, and with nothing else."""
    random_ = random.Random(seed)
    try:
        parse(with_another_number(random_.choice(TEXTS), random_))
    except HloParseError as error:
        assert error.file == "<stablehlo>"
        return False
    except UnsupportedError as error:
        assert re.match(r"<stablehlo>:\d+:\d+: ", str(error))
        return False
    return True


def test_programs_without_sense_are_refused() -> None:
    outcomes = [converted(seed) for seed in range(600)]
    assert 10 < sum(outcomes) < 400


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_many_programs_without_sense_are_refused(number: int) -> None:
    for seed in range(1000 + number * 1000, 2000 + number * 1000):
        converted(seed)
