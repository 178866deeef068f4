"""Cases of HLO text: modules of the corpus, mutated. Such text is refused with a place, or it is a program.

The corpus is from the tests: texts recorded from JAX and XLA, golden files, the table of op cases. Mutations that
keep the types of a program (another element type or size everywhere, another operation of the same kind) make most
programs; mutations of single tokens and lines make most refusals.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import numpy as np
from hloom.hlo.comparing import random_array
from hloom.hlo.errors import HloParseError
from hloom.hlo.ir import HloModule
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify

from hloom.backend_check.op_case import OpCase
from hloom.backend_check.op_table import CASES, build_module
from interop.archive import read as read_interop
from support.hlo_texts import INSTRUCTIONS, module_with

from . import data, module_runs
from .case import Case, NDArray, Outcome, Stage, Verdict, found
from .minimise import Shows, fewer_options, without_parts
from .sameness import first_difference

NAME = "fuzz.hlo"
"""In refusals."""
_TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
LONGEST = 12_000
"""Characters of a text of the corpus."""
MOST_PIECES = 3000
"""Of a text that is taken apart."""


Item = TypeVar("Item")


@cache
def corpus() -> tuple[tuple[int, str], ...]:
    """Texts of modules, with a number for each. Shorter ones are drawn as often as longer ones."""
    files = sorted(path for folder in ("data", "golden") for path in (_TESTS / folder).rglob("*.hlo"))
    texts = [path.read_text() for path in files]
    texts += [recorded.text for _, recorded in sorted(read_interop().items())]
    texts += [module_with(line) for line in INSTRUCTIONS]
    return tuple((crc32(text.encode()), text) for text in texts if len(text) <= LONGEST)


@cache
def _cases() -> tuple[tuple[int, OpCase], ...]:
    return tuple((crc32(case.id.encode()), case) for case in CASES)


def _drawn(items: Sequence[tuple[int, Item]], rng: random.Random) -> Item:
    """One of them; where there is one more, hardly any seed draws another than before."""
    number = rng.getrandbits(32)
    return min(items, key=lambda item: (((item[0] ^ number) * 0x9E3779B1) & 0xFFFFFFFF, item[0]))[1]


def base_text(rng: random.Random) -> str:
    """A text to mutate."""
    if rng.random() < 0.3:
        return build_module(_drawn(_cases(), rng)).to_text()
    return _drawn(corpus(), rng)


# ---- mutations: each gives the text back if there is nothing for it to change

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|[A-Za-z_%][\w.\-]*|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|->|[^\w\s]|\s+|[\s\S]')
_NUMBER = re.compile(r"(?<![\w.\-])-?\d+(?:\.\d+)?(?![\w.])")
_DIMENSIONS = re.compile(r"\b(?:pred|[sufc]\d+|bf16|f8e\w+)\[([\d,]+)\]")
_ELEMENT = re.compile(r"\b(pred|[su](?:2|4|8|16|32|64)|f16|bf16|f32|f64|c64|c128|f8e\w+|f4\w+)(?=\[)")
_SHAPE = re.compile(r"(?<=\w)\[([\d,]*)\](?:\{[^{}=]*\})?(?=[\s,)])")
_IN_CONSTANT = re.compile(r"(?<=constant\()-?\d+(?:\.\d+)?(?=\))|(?<=[{ ])-?\d+(?:\.\d+)?(?=, -?\d)")
_IN_ATTRIBUTE = re.compile(r"(?<=[=_x:])-?\d+(?![\w.])|(?<==\{)\d+")
_ATTRIBUTE = re.compile(r", ([a-z_]+)=(\{[^{}]*\}|[^\s,{}()]+)")
ELEMENTS = (
    "pred", "s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64",
    "c64", "c128", "f8e4m3fn", "f8e5m2", "f8e8m0fnu", "f4e2m1fn", "token", "opaque",
)  # fmt: skip
NUMBERS = ("0", "1", "2", "-1", "3", "7", "255", "2147483647", "-2147483648", "4294967296", "9223372036854775807",
           "-9223372036854775808", "18446744073709551616", "1e38", "-0.0", "nan", "inf", "0.5", "99999999999999999999",
           "127", "128", "1024", "65536")  # fmt: skip
SIZES = ("0", "1", "2", "3", "4", "5", "7", "8", "16", "33")
KINDS: tuple[tuple[str, ...], ...] = (
    ("negate", "abs", "sign", "exponential", "log", "sqrt", "rsqrt", "tanh", "logistic", "cosine", "sine", "floor",
     "ceil", "not", "popcnt", "copy", "cbrt", "erf", "is-finite", "real", "imag", "log-plus-one"),
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "and", "or", "xor", "atan2",
     "shift-left", "shift-right-logical", "shift-right-arithmetic", "complex", "mulhi"),
    ("slice", "reverse", "transpose", "reshape", "broadcast", "bitcast", "bitcast-convert", "convert",
     "reduce-precision"),
    ("reduce", "reduce-window", "map", "sort", "scatter"),
)  # fmt: skip
"""Operations that take the same operands."""
_OPCODE = re.compile(rf"(?<=[\s\])}}])({'|'.join(sorted((o for kind in KINDS for o in kind), key=len)[::-1])})(?=\()")
TILES = ("", "", "", ":T(8,128)", ":T(2,2)", ":T(256)", ":T(2,4)(2,1)", ":S(1)", ":T(1)", ":E(4)", ":T(*,3)", ":T(3)")


def other_element_everywhere(text: str, rng: random.Random) -> str:
    found_types = sorted(set(_ELEMENT.findall(text)))
    if not found_types:
        return text
    old, new = rng.choice(found_types), rng.choice(ELEMENTS)
    return re.sub(rf"\b{old}(?=\[)", new, text)


def other_size_everywhere(text: str, rng: random.Random) -> str:
    sizes = sorted({size for dims in _DIMENSIONS.findall(text) for size in dims.split(",")})
    if not sizes:
        return text
    old, new = rng.choice(sizes), rng.choice(SIZES)
    return re.sub(rf"(?<![\w.\-]){old}(?![\w.])", new, text)


def other_opcode(text: str, rng: random.Random) -> str:
    """Mostly of the same kind."""

    def other(match: re.Match[str]) -> str:
        chosen = next(kind for kind in KINDS if match.group(1) in kind)
        return rng.choice(chosen if rng.random() < 0.95 else rng.choice(KINDS))

    return _at_one(text, _OPCODE, rng, other)


def other_constant(text: str, rng: random.Random) -> str:
    """Another number in a constant, or in an attribute."""
    return _at_one(text, _IN_ATTRIBUTE if rng.random() < 0.5 else _IN_CONSTANT, rng, lambda m: _near(m.group(0), rng))


def _near(old: str, rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(SIZES)
    if kind < 0.8 and "." not in old:
        return str(int(old) + rng.choice((-1, 1, 2)))
    return rng.choice(NUMBERS)


def other_number(text: str, rng: random.Random) -> str:
    return _at_one(text, _NUMBER, rng, lambda match: _near(match.group(0), rng))


def attribute_gone(text: str, rng: random.Random) -> str:
    return _at_one(text, _ATTRIBUTE, rng, lambda match: "")


def attribute_of_another(text: str, rng: random.Random) -> str:
    taken = list(_ATTRIBUTE.finditer(base_text(rng)))
    if not taken:
        return text
    return _at_one(text, re.compile(r"(?<=\))(?=[,\n])"), rng, lambda match: rng.choice(taken).group(0))


def attribute_values_swapped(text: str, rng: random.Random) -> str:
    matches = list(_ATTRIBUTE.finditer(text))
    if len(matches) < 2:
        return text
    first, second = sorted(rng.sample(matches, 2), key=lambda m: m.start())
    return (
        text[: first.start(2)] + second.group(2) + text[first.end(2) : second.start(2)] + first.group(2)
        + text[second.end(2) :]
    )  # fmt: skip


def operand_of_another(text: str, rng: random.Random) -> str:
    names = re.findall(r"^\s*(?:ROOT )?(%?[\w.\-]+) =", text, re.MULTILINE)
    if not names:
        return text
    return _at_one(text, re.compile(r"(?<=[(\s])%?[\w.\-]+(?=[,)])"), rng, lambda match: rng.choice(names))


def tokens_changed(text: str, rng: random.Random) -> str:
    """One is left out, doubled, exchanged with another, or replaced by one of another text."""
    tokens = _TOKEN.findall(text)
    k = rng.randrange(len(tokens))
    match rng.randrange(4):
        case 0:
            del tokens[k]
        case 1:
            tokens.insert(k, tokens[k])
        case 2:
            other = min(len(tokens) - 1, k + rng.choice((1, 2, 3)))
            tokens[k], tokens[other] = tokens[other], tokens[k]
        case 3:
            tokens[k] = rng.choice(_TOKEN.findall(base_text(rng)))
    return "".join(tokens)


def lines_changed(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    k = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[k]
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[k])
        case 2:
            other = rng.randrange(len(lines))
            lines[k], lines[other] = lines[other], lines[k]
        case 3:
            lines[k] = rng.choice(base_text(rng).splitlines(keepends=True))
    return "".join(lines)


def root_elsewhere(text: str, rng: random.Random) -> str:
    """Another instruction is the root, with the type that it has."""
    return _at_one(text.replace("ROOT ", ""), re.compile(r"(?<=\n  )(?=%?[\w.\-]+ =)"), rng, lambda match: "ROOT ")


def bytes_changed(text: str, rng: random.Random) -> str:
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(rng.choice((1, 1, 3))):
        data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), *b'{}()[],="%\\#-'])
    return data.decode("utf-8", "surrogateescape")


def layout_elsewhere(text: str, rng: random.Random) -> str:
    """Another layout of a shape, mostly one that fits."""

    def other(match: re.Match[str]) -> str:
        rank = len([size for size in match.group(1).split(",") if size])
        order = list(range(rank if rng.random() < 0.95 else rank + 1))
        rng.shuffle(order)
        return f"[{match.group(1)}]{{{','.join(map(str, order))}{rng.choice(TILES)}}}"

    return _at_one(text, _SHAPE, rng, other)


MUTATIONS: tuple[tuple[Callable[[str, random.Random], str], int], ...] = (
    (other_element_everywhere, 6), (other_size_everywhere, 6), (other_opcode, 8), (other_constant, 6),
    (other_number, 1), (attribute_gone, 1), (attribute_of_another, 1), (attribute_values_swapped, 1),
    (operand_of_another, 4), (tokens_changed, 1), (lines_changed, 1), (root_elsewhere, 2), (bytes_changed, 1),
    (layout_elsewhere, 4),
)  # fmt: skip


def _at_one(text: str, pattern: re.Pattern[str], rng: random.Random, other: Callable[[re.Match[str]], str]) -> str:
    """One match of the pattern replaced."""
    matches = list(pattern.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + other(match) + text[match.end() :]


# ---- the kind


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(seed)
    text = base_text(rng)
    mutations, weights = zip(*MUTATIONS, strict=True)
    for mutate in rng.choices(mutations, weights, k=rng.choice((1, 1, 1, 2, 2, 4))):
        text = mutate(text, rng) or text
    return Case("text", seed, text, options=module_runs.random_options(rng))


def check(case: Case, stage: Stage) -> Outcome:
    """Refused with a place and a label, or a valid module that runs, and that prints a text with the same module."""
    stage("parser")
    try:
        module = read(case.program)
    except HloParseError as error:
        lines = case.program.count("\n") + 1
        good = 1 <= error.line <= lines and error.column >= 1 and error.label
        if not good or not str(error).startswith(f"{NAME}:{error.line}:{error.column}: "):
            return found("a refusal without a place or a label", str(error))
        return Outcome(Verdict.REFUSED, error.label)
    stage("printer")
    difference = not_printed_as_read(module)
    if difference:
        return found("text: not read as it was printed", difference)
    return module_runs.run(module, _inputs(case, module), case.options, stage, seed=case.seed)


@lru_cache(maxsize=1)
def read(text: str) -> HloModule:
    """The module: once for all sets of data. HloParseError if the text is no module."""
    module = parse(text, NAME)
    verify(module)
    return module


def with_data(case: Case, number: int) -> Case:
    """The case with another set of data, which is drawn when the program is known."""
    options = module_runs.other_run(case.options, frozenset(), number)
    return case.but(data=number, options=options)


@lru_cache(maxsize=1)
def not_printed_as_read(module: HloModule) -> str:
    """The difference between a module and its printed text, read again, or ""."""
    text = module.to_text()
    again = parse(text)
    if again.to_text() != text:
        return f"printed again, it is\n{again.to_text()}"
    return first_difference(module, again)


def _inputs(case: Case, module: HloModule) -> Sequence[NDArray]:
    """Drawn for the program as it is: a smaller one may have other parameters."""
    generator = np.random.default_rng(case.seed)
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    if sum(leaf.num_elements for leaf in leaves if not leaf.is_token) > module_runs.LARGEST:
        return []
    special = 0.2 if case.seed % 3 == 0 else 0.0
    inputs = [random_array(leaf, generator, special) for leaf in leaves if not leaf.is_token]
    return data.another(inputs, case.seed, case.data)[1] if case.data else inputs


def minimised(case: Case, shows: Shows) -> Case:
    """The case with fewer options, then fewer lines, tokens, and characters."""
    case = fewer_options(case, shows)
    for pattern in (r"[^\n]*\n|[^\n]+", _TOKEN.pattern, r"(?s)."):
        case = _without_pieces(case, re.findall(pattern, case.program), shows)
    return case


def _without_pieces(case: Case, pieces: list[str], shows: Shows) -> Case:
    if len(pieces) > MOST_PIECES:
        return case
    assert "".join(pieces) == case.program, "the pieces are not the text"
    kept = without_parts(pieces, lambda fewer: shows(case.but(program="".join(fewer))))
    return case.but(program="".join(kept))
