"""WebAssembly: the linker, what stands for a C library, programs in Node.js, and the page with a browser."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import subprocess
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.ahead.compiling import standalone
from hloom.numba_backend.ahead.targets import TargetMachine
from hloom.numba_backend.ahead.wasm_linker import link, sleb, uleb
from hloom.numba_backend.ahead.wasm_object import LinkError, Reader, read_object
from hloom.numba_backend.ahead.wasm_program import EXPORTS, program_module, program_object_for_module
from hloom.numba_backend.runtime.library import CALLED, INLINED

import browser_digits
import hloom
import hloom.aot
import hloom.numpy as jnp
from hloom import hlo
from hloom.aot import IdentifierError, TargetError
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from tests.aot.test_aot import FUNCTIONS, PARAMS, X, net
from tests.support.browser import Stroke, browser, needs_browser
from tests.support.node import call, needs_node, run_modules

WASM = "wasm32-unknown-unknown"
HEADER = f'target triple = "{WASM}"\ntarget datalayout = "{TargetMachine(WASM).resolved().llvm().target_data}"\n'
FEW, MANY = 331, 41
"""Of the table of operations, every so many cases."""


def compiled(text: str) -> bytes:
    """The object file of LLVM IR."""
    with llvm.create_context() as context:
        module = llvm.parse_assembly(HEADER + text, context)
        code: bytes = TargetMachine(WASM).resolved().llvm().emit_object(module)
        module.close()
    return code


# ---- the linker


@pytest.mark.parametrize("number", [0, 1, 63, 64, 127, 128, 300, 2**31 - 1])
def test_numbers_are_read_as_they_are_written(number: int) -> None:
    assert Reader(uleb(number)).unsigned() == number
    for value in (number, -number):
        assert Reader(sleb(value)).signed() == value


POINTERS = """
@table = global [2 x ptr] [ptr @twice, ptr @next]
@number = global i32 5
@late = internal global [3 x i32] zeroinitializer
@to_number = global ptr getelementptr (i8, ptr @number, i32 0)
@unused = global [100000 x i8] c"x{zeros}"

define internal i32 @twice(i32 %x) {{ %y = mul i32 %x, 2 ret i32 %y }}
define internal i32 @next(i32 %x) {{ %y = add i32 %x, 1 ret i32 %y }}
define i32 @unreached(i32 %x) {{ %y = call i32 @elsewhere(i32 %x) ret i32 %y }}
declare i32 @elsewhere(i32)

; table[which](*to_number + late[2]), and late[2] += 7
define i32 @f(i32 %which) {{
  %place = getelementptr [2 x ptr], ptr @table, i32 0, i32 %which
  %function = load volatile ptr, ptr %place
  %pointer = load volatile ptr, ptr @to_number
  %a = load i32, ptr %pointer
  %third = getelementptr i32, ptr @late, i32 2
  %b = load volatile i32, ptr %third
  %c = add i32 %a, %b
  %more = add i32 %b, 7
  store volatile i32 %more, ptr %third
  %stack = alloca [5000 x i32]
  %deep = getelementptr i32, ptr %stack, i32 %which
  store volatile i32 %c, ptr %deep
  %d = load volatile i32, ptr %deep
  %result = call i32 %function(i32 %d)
  ret i32 %result
}}
""".format(zeros="\\00" * 99_999)


@needs_node
def test_pointers_to_functions_and_data_are_linked() -> None:
    module = link(compiled(POINTERS), ["f"])
    assert call(module, "f", [[0], [1], [0]]) == [10, 13, 38]
    assert len(module) < 400, "what nothing reaches is left out"


def test_a_stack_that_is_too_small_is_below_all_data() -> None:
    objects = read_object(compiled(POINTERS))
    assert [symbol.name for symbol in objects.symbols if not symbol.is_defined] == [
        "elsewhere", "__stack_pointer", "__indirect_function_table",
    ]  # fmt: skip
    small, large = (link(compiled(POINTERS), ["f", "number"], size) for size in (1 << 12, 1 << 20))
    assert sleb(1 << 12) in small
    assert sleb(1 << 20) in large
    if shutil.which("node"):
        with pytest.raises(AssertionError, match="memory access out of bounds"):
            call(small, "f", [[0]])
        assert call(large, "f", [[0]]) == [10]


BAD_OBJECTS = [
    ("nothing", lambda: b"", "begins otherwise"),
    ("x86", lambda: b"\x7fELF" + bytes(60), "begins otherwise"),
    ("cut off", lambda: compiled(POINTERS)[:300], "ends after 300 bytes"),
    ("a module", lambda: link(compiled(POINTERS), ["f"]), "it is a module, and no object file"),
    ("no such function", lambda: compiled("define i32 @g() { ret i32 1 }"), "defines no 'f'"),
    ("of C's library", lambda: compiled("declare i32 @sin(i32)\ndefine i32 @f() { %x = call i32 @sin(i32 1)\n"
                                        " ret i32 %x }"), "calls sin, of C's library"),
    ("data from elsewhere", lambda: compiled("@there = external global i32\ndefine ptr @f() { ret ptr @there }"),
     "the data 'there' from elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "make", "said"), BAD_OBJECTS, ids=[b[0] for b in BAD_OBJECTS])
def test_what_cannot_be_linked_is_said(what: str, make: Any, said: str) -> None:
    with pytest.raises(LinkError, match=said):
        link(make(), ["f"])


@needs_node
@pytest.mark.skipif(shutil.which("wasm-ld") is None, reason="needs wasm-ld")
@pytest.mark.parametrize("features", ["", "+simd128"])
def test_the_linker_agrees_with_lld(features: str, tmp_path: Path) -> None:
    program = standalone(hloom.aot.compile(net, (PARAMS, X)).module)
    machine = TargetMachine(WASM, "", features).resolved()
    (tmp_path / "program.o").write_bytes(program_object_for_module(program, "program", machine))
    exports = [f"--export={name}" for name in EXPORTS]
    command = ["wasm-ld", "-O2", "--no-entry", "--stack-first", *exports, "program.o", "-o", "lld.wasm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    theirs, mine = (tmp_path / "lld.wasm").read_bytes(), program_module(program, "program", machine)
    assert len(mine) <= len(theirs)
    given = [*hloom.tree.leaves(PARAMS), X]
    sizes = [shape.byte_size for shape in program.results]
    first, second = run_modules([(code, given, sizes) for code in (mine, theirs)])
    assert first == second


# ---- what stands for instructions and for C's library

WRAPPERS = """
define double @fma64(double %a, double %b, double %c) {
  %r = call double @hloom.fma.f64(double %a, double %b, double %c)
  ret double %r
}
define float @fma32(float %a, float %b, float %c) {
  %r = call float @hloom.fma.f32(float %a, float %b, float %c)
  ret float %r
}
define double @round64(double %a) { %r = call double @hloom.round.f64(double %a)  ret double %r }
define float @round32(float %a) { %r = call float @hloom.round.f32(float %a)  ret float %r }
define float @from_half(i32 %a) { %h = trunc i32 %a to i16  %b = bitcast i16 %h to half
  %r = call float @hloom.extend.f16(half %b)  ret float %r }
define i32 @half32(float %a) { %h = call half @hloom.truncate.f32(float %a)  %b = bitcast half %h to i16
  %r = zext i16 %b to i32  ret i32 %r }
define i32 @half64(double %a) { %h = call half @hloom.truncate.f64(double %a)  %b = bitcast half %h to i16
  %r = zext i16 %b to i32  ret i32 %r }
"""


@pytest.fixture(scope="module")
def library() -> bytes:
    """A module with the functions."""
    names = ["fma64", "fma32", "round64", "round32", "from_half", "half32", "half64"]
    return link(compiled(INLINED + CALLED + WRAPPERS), names)


def hard_numbers(draw: random.Random, bits: int, powers: tuple[int, int]) -> float:
    """A number with few or many bits set, of any size, at times special."""
    if draw.random() < 0.06:
        return draw.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 2.0 ** powers[0], -(2.0 ** (powers[1] - 1))])
    kept = draw.choice([1, 2, bits // 2, bits, bits])
    integer = draw.getrandbits(kept) | 1
    return draw.choice([-1, 1]) * math.ldexp(integer, draw.randint(*powers) - kept)


def exactly(a: float, b: float, c: float, dtype: Any) -> float:
    """a b + c, rounded once."""
    if not all(map(math.isfinite, (a, b, c))) or (a * b == 0 and not (a and b)):
        with np.errstate(all="ignore"):
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        sign = math.copysign(1, a) * math.copysign(1, b)
        return math.copysign(0.0, sign) if c == 0 and sign == math.copysign(1, c) and not (a and b) else 0.0
    return _rounded(exact, dtype)


def _rounded(exact: Fraction, dtype: Any) -> float:
    """To the nearest number of a type, halves to even."""
    info = np.finfo(dtype)
    size = abs(exact)
    power = max(_floor_log2(size), int(info.minexp)) - int(info.nmant)
    scaled = size / Fraction(2) ** power
    value = Fraction(round(scaled)) * Fraction(2) ** power
    sign = 1.0 if exact > 0 else -1.0
    return math.copysign(math.inf if value > Fraction(float(info.max)) else float(value), sign)


def _floor_log2(x: Fraction) -> int:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    return power if Fraction(2) ** power <= x else power - 1


@needs_node
@pytest.mark.parametrize(("name", "bits", "powers"), [("fma64", 53, (-1074, 1024)), ("fma32", 24, (-149, 128))])
def test_fused_multiply_add_rounds_once(name: str, bits: int, powers: tuple[int, int], library: bytes) -> None:
    draw = random.Random(3)
    dtype = np.float64 if bits == 53 else np.float32
    rows = [[hard_numbers(draw, bits, powers) for _ in range(3)] for _ in range(1000)]
    near = (-10, 10)
    for _ in range(1000):  # the sum cancels, or nearly so
        a, b = hard_numbers(draw, bits, near), hard_numbers(draw, bits, near)
        rows.append([a, b, float(dtype(-a * b)) * draw.choice([1, 1, 2.0**-bits, 2.0**bits])])
    low = (powers[0] // 2 - 3, powers[0] // 2 + 30)
    rows += [[hard_numbers(draw, bits, low), hard_numbers(draw, bits, low), hard_numbers(draw, bits, (powers[0] + 1,
              powers[0] + 60))] for _ in range(1000)]  # around the smallest normal number  # fmt: skip
    rows = [[float(dtype(x)) for x in row] for row in rows]
    for row, found in zip(rows, call(library, name, rows), strict=True):
        expected = exactly(*row, dtype)
        assert repr(found) == repr(expected), row


@needs_node
@pytest.mark.parametrize("name", ["round64", "round32"])
def test_halves_are_rounded_away_from_zero(name: str, library: bytes) -> None:
    large = 2.0 ** (52 if name == "round64" else 23)
    below = float(np.nextafter(0.5, 0) if name == "round64" else np.nextafter(np.float32(0.5), np.float32(0)))
    given = [0.0, 0.5, below, 1.5, 2.5, 2.4, large - 0.5, large, large + 1, 1e30, math.inf]
    expected = [0.0, 1.0, 0.0, 2.0, 3.0, 2.0, large, large, large + 1, float(np.float32(1e30)), math.inf]
    if name == "round64":
        expected[9] = 1e30
    found = call(library, name, [[s * x] for s in (1, -1) for x in given])
    assert [repr(x) for x in found] == [repr(s * x) for s in (1, -1) for x in expected]


@needs_node
def test_half_precision_is_converted_as_numpy_does(library: bytes) -> None:
    every = np.arange(2**16, dtype=np.uint16)
    wide = every.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(np.array(call(library, "from_half", [[int(x)] for x in every]), np.float32), wide)
    rng = np.random.default_rng(0)
    finite = wide[np.isfinite(wide)]
    for name, dtype in (("half32", np.float32), ("half64", np.float64)):
        ties = (np.sort(finite)[1:].astype(dtype) + np.sort(finite)[:-1].astype(dtype)) / 2
        near = np.nextafter(ties, rng.choice([-np.inf, np.inf], ties.shape).astype(dtype))
        special = np.array([np.inf, -np.inf, 65519.99, 65520, 1e30, -0.0, 1e-30], dtype)
        values = np.concatenate([rng.choice(ties, 3000), rng.choice(near, 3000), rng.choice(finite, 1000), special])
        with np.errstate(over="ignore"):
            expected = values.astype(dtype).astype(np.float16).view(np.uint16)
        found = np.array(call(library, name, [[float(x)] for x in values]), np.uint16)
        np.testing.assert_array_equal(found, expected)
        (nan,) = call(library, name, [[math.nan]])
        assert np.isnan(np.array([nan]).astype(np.uint16).view(np.float16)).all()


# ---- programs


def check_cases(cases: list[OpCase], features: str) -> None:
    """Operations as modules, in one process of Node.js, beside the evaluator."""
    machine = TargetMachine(WASM, "", features).resolved()
    made = []
    for case in cases:
        module = build_module(case)
        try:
            program = standalone(module)
        except UnsupportedError as error:
            assert "Python" in str(error) or "process" in str(error)
            continue
        made.append((case, module, make_inputs(case), program))
    sizes = [[shape.byte_size for shape in program.results] for *_, program in made]
    codes = [program_module(program, "op", machine) for *_, program in made]
    answers = run_modules([(c, m[2], s) for c, m, s in zip(codes, made, sizes, strict=True)])
    for (case, module, inputs, program), answer in zip(made, answers, strict=True):
        results = [
            np.frombuffer(data, shape.element.dtype).reshape(shape.dimensions)
            for data, shape in zip(answer, program.results, strict=True)
        ]
        check_results(case, results, hlo.evaluate(module, *inputs))


@needs_node
@pytest.mark.parametrize("features", ["", "+simd128"])
def test_operations_agree_with_the_evaluator(features: str) -> None:
    check_cases(CASES[1::FEW], features)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("features", ["", "+simd128"])
def test_many_operations_agree_with_the_evaluator(features: str) -> None:
    check_cases(CASES[::MANY], features)


def node_test(number: int, features: str, folder: Path) -> None:
    _, function, args = FUNCTIONS[number]
    program = hloom.aot.compile(
        function, args, name="program", cpp_class="a::b::Program", target=WASM, features=features
    )
    program.write(folder)
    run = subprocess.run(["node", "program_test.mjs"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("Success\nprogram: ")


NAMES = [f[0] for f in FUNCTIONS]


@needs_node
@pytest.mark.parametrize("name", ["network", "branches", "integers"])
def test_generated_tests_pass_in_node(name: str, tmp_path: Path) -> None:
    node_test(NAMES.index(name), "+simd128", tmp_path)


def test_the_files_of_a_program(tmp_path: Path) -> None:
    program = hloom.aot.compile(net, (PARAMS, X), name="Net", cpp_class="nets::Net", target=WASM)
    names = {path.name for path in program.write(tmp_path)}
    assert {"Net.wasm", "Net.js", "Net_test.mjs", "package.json", "Net.o", "Net.h"} <= names
    assert json.loads((tmp_path / "package.json").read_text())["name"] == "net"
    text = (tmp_path / "Net.js").read_text()
    assert "export class Net {" in text
    assert '{"name": "params.w", "type": "f32", "dimensions": [7, 5]}' in text
    assert "this.result1 = new Float32Array(memory.buffer, place(results, 1), 15);" in text


BAD = [
    ("class", lambda: hloom.aot.compile(net, (PARAMS, X), cpp_class="a::URL", target=WASM), IdentifierError,
     "URL has a meaning in JavaScript"),
    ("name", lambda: hloom.aot.compile(net, (PARAMS, X), name="await", target=WASM), IdentifierError, "await has"),
    ("other target", lambda: hloom.aot.compile(net, (PARAMS, X)).wasm, TargetError, "has no modules of WebAssembly"),
    ("memory", lambda: hloom.aot.compile(lambda x: x + 1, (hloom.ShapeDtypeStruct((1 << 29,), np.float32),),
                                         target=WASM).wasm, UnsupportedError, "addresses have 32 bits"),
    ("cpu", lambda: hloom.aot.compile(jnp.sin, (X,), target=WASM, cpu="cortex-a72"), TargetError, "no CPU"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "make", "error", "said"), BAD, ids=[b[0] for b in BAD])
def test_what_is_wrong_is_said(what: str, make: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_names_do_not_reach_javascript() -> None:
    module = hlo.parse("HloModule m\nENTRY e {\n  a = f32[3] parameter(0)\n  ROOT r = f32[3] add(a, a)\n}\n")
    object.__setattr__(module.entry.parameters[0], "name", '*/ alert("x") //`')
    program = hloom.aot.compile(module, target=WASM)
    for file in ("computation.js", "computation_test.mjs"):
        assert b"alert(" not in program.files()[file], file


# ---- the page


def arc(x: int, y: int, width: int, height: int, first: int, last: int) -> Stroke:
    """Points on an ellipse, between two angles in degrees."""
    angles = [math.radians(first + (last - first) * k / 20) for k in range(21)]
    return [(round(x + width * math.cos(a)), round(y + height * math.sin(a))) for a in angles]


DRAWINGS: dict[int, list[Stroke]] = {
    0: [arc(168, 168, 65, 95, -90, 270)],
    1: [[(130, 120), (175, 70), (175, 270)]],
    2: [[*arc(168, 125, 60, 52, -170, 40), (110, 265), (240, 265)]],
    3: [[*arc(160, 118, 55, 48, -150, 90), *arc(160, 216, 62, 50, -90, 150)]],
    4: [[(190, 65), (100, 200), (245, 200)], [(195, 130), (195, 275)]],
    5: [[(225, 70), (130, 70), (122, 155), *arc(165, 205, 62, 60, -130, 140)]],
    7: [[(105, 75), (235, 75), (150, 275)]],
}
"""How a hand might draw digits, in pixels of the page's paper."""


def test_a_drawing_is_prepared_as_mnist() -> None:
    drawing = np.zeros((112, 112), np.float32)
    drawing[30:70, 81:89] = 0.6
    seen = np.asarray(hloom.jit(browser_digits.prepare)(drawing))
    assert seen.shape == (28, 28)
    rows, columns = np.nonzero(seen > 0.5)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (4, 23, 12, 15)
    assert seen.max() == 1
    np.testing.assert_array_equal(browser_digits.prepare(jnp.zeros((112, 112))), np.zeros((28, 28)))


@needs_browser
@pytest.mark.slow
def test_a_digit_is_drawn_in_a_browser_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["browser_digits.py", "--digits", "--epochs", "5", "--no-serve", "--folder", str(tmp_path)]
    monkeypatch.setattr("sys.argv", command)
    browser_digits.main()
    with browser_digits.server(tmp_path, 0) as web, browser() as window:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        window.open(f"http://localhost:{web.server_port}/")
        window.wait("return document.body.dataset.ready === 'yes'")
        left, top = window.ask(
            "const box = document.getElementById('paper').getBoundingClientRect();"
            "return [box.left, box.top].map(Math.round)"
        )
        assert window.ask("return document.getElementById('status').textContent") == "With the mouse or a finger"
        read = {}
        for digit, strokes in DRAWINGS.items():
            window.ask("document.getElementById('clear').click()")
            window.draw(strokes, left, top)
            read[digit] = window.ask("return document.body.dataset.digit")
            shares = window.ask("return [...document.querySelectorAll('output')].map((o) => parseFloat(o.textContent))")
            assert len(shares) == 10
            assert sum(shares) == pytest.approx(100, abs=0.6)
            assert str(np.argmax(shares)) == read[digit]
        web.shutdown()
    right = sum(str(digit) == found for digit, found in read.items())
    assert right >= len(DRAWINGS) - 1, read


@needs_browser
@pytest.mark.slow
def test_the_page_of_the_tutorial_answers(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (root / "docs" / "tutorials" / "shipping_to_the_browser.md").read_text()
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)), {})
    with browser_digits.server(tmp_path / "build", 0) as web, browser() as window:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        window.open(f"http://localhost:{web.server_port}/")
        window.wait("return document.getElementById('y').textContent !== ''")
        shown = "0.9866,0.9051,-0.7616; the largest is number 0"
        assert window.ask("return document.getElementById('y').textContent") == shown
        window.ask(
            "const field = document.getElementById('x'); field.value = '-1, 0';"
            "field.dispatchEvent(new Event('input')); return null"
        )
        assert window.ask("return document.getElementById('y').textContent").endswith("the largest is number 1")
        assert window.errors() == []
        web.shutdown()
