"""What objects look like in notebooks: well-formed HTML without scripts, with all text of users escaped."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hloom.hlo
import numpy as np
import pytest
from hloom.hlo.buffers.report import MemoryReport
from hloom.hlo.kernel_texts import KernelText, KernelTexts
from hloom.hlo.passes.record import PassRecord, PassRecords
from hloom.hlo.pictures.drawing import Drawing, to_svg
from hloom.hlo.pictures.grid import NO_BOX, Box, coloured, grid_text
from hloom.hlo.support.tables import Table

import hloom
import hloom.numpy as jnp
from hloom import P
from hloom.backend_check.op_table import CASES, OpCase, build_module
from hloom.notebooks.display import naming_cells
from hloom.notebooks.page import STYLE, details, facts, table, tag, title
from hloom.notebooks.syntax import code, spans
from support.html_checks import Checked

HOSTILE = "<script>alert('&\"')</script>"


def step(w: Any, x: Any) -> Any:
    y = jnp.tanh(x @ w)
    return jnp.sum(jnp.exp(y) @ w.T, axis=0)


LOWERED = hloom.jit(step).lower(jnp.ones((3, 4)), jnp.ones((5, 3)))
COMPILED = LOWERED.compile()
TRACED = hloom.jit(step).trace(jnp.ones((3, 4)), jnp.ones((5, 3)))
ABSTRACT = hloom.sharding.AbstractMesh((4, 2), ("x", HOSTILE))


def shape(text: str) -> hloom.hlo.Shape:
    return hloom.hlo.Shape.parse(text)


def hostile_module() -> Any:
    return hloom.hlo.parse(
        "HloModule m\n\nENTRY e {\n  ROOT x = f32[2] parameter(0), "
        f"frontend_attributes={{a=\"{HOSTILE.replace(chr(34), '')}\"}}\n}}\n"
    )


def hostile_function() -> Any:
    def f(x: Any) -> Any:
        return 2 * x

    f.__name__ = f.__qualname__ = HOSTILE
    return hloom.jit(f)


def symbolic() -> Any:
    return hloom.ShapeDtypeStruct(hloom.export.symbolic_shape("a, b"), jnp.float32)


def a_loop() -> Any:
    return hloom.jit(lambda x: hloom.lax.fori_loop(0, 5, lambda _, v: jnp.sin(v), x)).lower(jnp.ones(8)).compile()


VIEWS: dict[str, Callable[[], Any]] = {
    "compiled": lambda: COMPILED,
    "compiled loop": a_loop,
    "compiled without results": lambda: hloom.jit(lambda x: ()).lower(1.5).compile(),
    "compiled with a hostile name": lambda: hostile_function().lower(1.5).compile(),
    "lowered": lambda: LOWERED,
    "lowered without arguments": lambda: hloom.jit(lambda: 1.5).lower(),
    "lowered with symbolic sizes": lambda: hloom.jit(jnp.sin).lower(symbolic()),
    "traced": lambda: TRACED,
    "traced with a hostile name": lambda: hostile_function().trace(1.5),
    "jaxpr": lambda: TRACED.jaxpr,
    "open jaxpr": lambda: TRACED.jaxpr.jaxpr,
    "module": lambda: LOWERED.module,
    "hostile module": hostile_module,
    "kernels": COMPILED.kernels,
    "no kernels": KernelTexts,
    "hostile kernels": lambda: KernelTexts({HOSTILE: KernelText(HOSTILE, (HOSTILE, HOSTILE))}),
    "passes": COMPILED.passes,
    "no passes": PassRecords,
    "hostile passes": lambda: PassRecords([PassRecord(HOSTILE, 1.0, 1, 2, True, {HOSTILE: 1}, (HOSTILE,))]),
    "memory": COMPILED.memory_analysis,
    "memory of nothing": lambda: hloom.jit(lambda: ()).lower().compile().memory_analysis(),
    "memory of a TPU": lambda: (
        hloom.jit(step).lower(jnp.ones((30, 200)), jnp.ones((50, 30))).compile(target="tpu").memory_analysis()
    ),
    "costs": COMPILED.cost_analysis,
    "costs of instructions": lambda: COMPILED.cost_analysis().instructions,
    "communication": COMPILED.communication_analysis,
    "shape": lambda: shape("f32[3,5]{0,1:T(2,2)}"),
    "shape of a TPU": lambda: shape("bf16[20,300]{1,0:T(8,128)(2,1)}"),
    "shape of packed elements": lambda: shape("s4[3,5]{1,0:E(4)}"),
    "shape of four dimensions": lambda: shape("f32[2,3,4,5]{3,2,1,0}"),
    "scalar shape": lambda: shape("f32[]"),
    "empty shape": lambda: shape("f32[0,5]"),
    "tuple shape": lambda: shape("(f32[2], (), s32[])"),
    "empty tuple shape": lambda: shape("()"),
    "symbolic shape": lambda: hloom.jit(jnp.sin).lower(symbolic()).module.entry.parameters[0].shape,
    "tuple of symbolic shapes": lambda: hloom.jit(jnp.sin).lower(symbolic()).module.entry.root.shape,
    "token": lambda: shape("token[]"),
    "layout": lambda: shape("f32[3,5]{0,1:T(2,2)}").layout,
    "layout with tiles that combine": lambda: shape("f32[3,5,7]{2,1,0:T(*,2)}").layout,
    "layout of a scalar": lambda: shape("f32[]").layout,
    "layout in another memory": lambda: shape("s4[3,5]{1,0:T(8,128)E(4)S(1)}").layout,
    "layout of a user": lambda: hloom.experimental.layout.Layout((1, 0), ((8, 128),)),
    "format": lambda: jnp.ones((2, 3)).format,
    "empty format": lambda: hloom.experimental.layout.Format(),
    "mesh": lambda: hloom.make_mesh((1, 1), ("x", HOSTILE)),
    "abstract mesh": lambda: ABSTRACT,
    "empty mesh": lambda: hloom.sharding.AbstractMesh((), ()),
    "sharding": lambda: jnp.ones(3).sharding,
    "named sharding": lambda: hloom.NamedSharding(hloom.make_mesh((1,), (HOSTILE,)), P(None, HOSTILE)),
    "sharding over an abstract mesh": lambda: hloom.NamedSharding(ABSTRACT, P(HOSTILE)),
    "tree": lambda: hloom.tree.structure({"w": [1, (2, None)], HOSTILE: {}}),
    "leaf": lambda: hloom.tree.structure(1),
    "no leaf": lambda: hloom.tree.structure(None),
    "large tree": lambda: hloom.tree.structure([list(range(100))] * 30),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_well_formed_and_escaped(name: str) -> None:
    view = VIEWS[name]()
    checked = Checked(view._repr_html_())
    assert checked.tags.count("style") == 1 and "hloom" in checked.classes
    assert ("alert" in checked.text) == ("alert" in str(view) or name.endswith("with a hostile name"))
    if "alert" in checked.text and "name" not in name and "module" not in name:
        assert "<script>alert" in checked.text, "as text"


def test_control_characters_are_visible() -> None:
    def f(x: hloom.Array) -> hloom.Array:
        return x + 1

    f.__name__ = f.__qualname__ = "f\x1b[2J\0"
    lowered = hloom.jit(f).lower(jnp.ones(3))
    for shown in (lowered, lowered.compile(), lowered.compile().kernels()):
        text = shown._repr_html_()
        assert not [c for c in text if not c.isprintable() and c not in "\n\t"]
    assert tag("b", "\x1b[2J<", title="\x07") == '<b title="\\007">\\033[2J&lt;</b>'
    assert "a\\033" in to_svg(Drawing(1, 1, "a\x1b", "white"))


def test_arrays_print_as_text() -> None:
    """As in JAX and NumPy: what a reader wants to see of an array is its elements."""
    assert not hasattr(jnp.ones(3), "_repr_html_") and not hasattr(np.ones(3), "_repr_html_")


def test_every_class_of_the_style_sheet_is_used_and_the_others_have_no_style() -> None:
    styled = set(re.findall(r"\.([a-z]+)[ ,{]", STYLE.replace(":is(.hloom,#hloom)", "")))
    used = {"removed", "added"}.union(*[Checked(make()._repr_html_()).classes for make in VIEWS.values()])
    assert used - {"hloom"} == styled


# ---- what is shown


def test_the_view_of_a_compiled_program_says_what_its_texts_say() -> None:
    found = Checked(COMPILED._repr_html_()).text
    for computation in COMPILED.executable.module.to_text(metadata=False).split("\n\n")[1:]:
        for line in computation.splitlines()[:-1]:
            assert line in found
    for name, text in COMPILED.kernels().items():
        assert name in found and text.strip() in found
    scheduled = [t for t in COMPILED.kernels().values() if isinstance(t, KernelText) and t.algorithm is not None]
    assert scheduled
    for kernel in scheduled:
        assert len(kernel.schedule) > 1
        html = KernelTexts({"k": kernel})._repr_html_()
        for said in (kernel.algorithm, *kernel.schedule):
            assert str(said) in Checked(html).text
        assert html.index("computes") < html.index("<pre>"), "at the top"
    assert COMPILED.memory_analysis().text.strip() in found
    assert "arguments" in found and "float32[3,4], float32[5,3]" in found


def test_the_line_of_an_instruction_is_beside_the_mouse() -> None:
    html = LOWERED.module._repr_html_()
    lines = [i.metadata.source_line for i in LOWERED.module.instructions() if i.metadata and i.metadata.source_line]
    assert len(lines) > 4
    for line in lines:
        assert f'<span title="{__file__}:{line}">' in html


def test_passes_that_changed_something_are_shown_first() -> None:
    records = PassRecords([PassRecord("quiet", 1.0, 5, 5, False), PassRecord("loud", 1.0, 5, 3, True, {"a": 1})])
    shown = records._repr_html_()
    assert shown.index("loud") < shown.index("quiet") and "all 2 passes: 1 changed nothing" in shown


def test_large_programs_and_constants_do_not_fill_a_notebook() -> None:
    text = f"HloModule m\n\nENTRY e {{\n  ROOT c = f32[5000] constant({{{', '.join(['1'] * 5000)}}})\n}}\n"
    assert "{...}" in hloom.hlo.parse(text)._repr_html_()
    lines = "".join([f"  n{k + 1} = f32[2] negate(n{k})\n" for k in range(20_000)])
    text = f"HloModule m\n\nENTRY e {{\n  n0 = f32[2] parameter(0)\n{lines}  ROOT t = (f32[2]) tuple(n20000)\n}}\n"
    html = hloom.hlo.parse(text)._repr_html_()
    assert "... 18,002 more lines" in html and len(html) < 600_000
    structure = hloom.tree.structure([list(range(100))] * 30)
    assert "1,000 of 3,031 nodes are shown" in structure._repr_html_()


def test_memory_over_time() -> None:
    report = COMPILED.memory_analysis().report
    assert report is not None
    html = COMPILED.memory_analysis()._repr_html_()
    assert html.count("<title>") == len(report.rows) + 1
    for row in report.rows:
        assert f"steps {row.first} to {row.last}" in html and f"{row.physical_bytes:,} bytes" in html
    padded = VIEWS["memory of a TPU"]()
    assert padded.report is not None and any(r.logical_bytes < r.physical_bytes for r in padded.report.rows)
    assert "of them padding" in padded._repr_html_() and "of them padding" not in html
    assert MemoryReport("m", (), (), ()).rows == ()


# ---- coloured text


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        (
            "hlo", '  ROOT %add.1 = f32[2,3]{1,0:T(8,128)} add(%x, %y), kind=kLoop, m="add(" /*i=5*/',
            {
                "keyword": ["ROOT"], "type": ["f32[2,3]{1,0:T(8,128)}"], "operation": ["add"], "string": ['"add("'],
                "attribute": ["kind", "m"], "comment": ["/*i=5*/"],
            },
        ),
        (
            "hlo", "  %t = (f32[], token[]) custom-call(%a), dimensions={0}",
            {"type": ["f32[]", "token[]"], "operation": ["custom-call"], "attribute": ["dimensions"]},
        ),
        (
            "python", "for i in range(n):  # 'no'\n    x = 'in # it'",
            {"keyword": ["for", "in"], "operation": ["range"], "comment": ["# 'no'"], "string": ["'in # it'"]},
        ),
        (
            "jaxpr", "{ lambda ; a:f32[3]. let b:f32[3]{S(1)} = sum[axes=(0,) name='let'] a in (b,) }",
            {
                "keyword": ["lambda", "let", "in"], "type": ["f32[3]", "f32[3]{S(1)}"], "operation": ["sum"],
                "attribute": ["axes", "name"], "string": ["'let'"],
            },
        ),
        ("plain", "for ROOT lambda", {}),
    ],
)  # fmt: skip
def test_tokens(language: str, text: str, tokens: dict[str, list[str]]) -> None:
    html = spans(text, language)
    assert Checked(html).text == text
    found: dict[str, list[str]] = {}
    for part in html.split('<span class="')[1:]:
        kind, _, rest = part.partition('">')
        found.setdefault(kind, []).append(Checked(rest.partition("</span>")[0]).text)
    assert found == tokens


ONE_OF_EACH = list({case.opcode: case for case in CASES}.values())


def check_case(case: OpCase) -> None:
    """The view of a module says its text, with the opcode in its colour, and the types have views too."""
    module = build_module(case)
    shown, text = Checked(module._repr_html_()), module.to_text(metadata=False)
    assert [line for line in text.splitlines() if line not in ("}", "") and line not in shown.text] == []
    assert f'<span class="operation">{case.opcode.value}</span>' in spans(text, "hlo")
    for instruction in module.instructions():
        Checked(instruction.shape._repr_html_())


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda case: case.opcode.value)
def test_every_operation(case: OpCase) -> None:
    check_case(case)


@pytest.mark.slow
def test_more_cases_of_operations() -> None:
    for case in CASES[::8]:
        check_case(case)


def test_elements() -> None:
    assert tag("b", "<&>", tag("i", "x"), class_='"') == '<b class="&quot;">&lt;&amp;&gt;<i>x</i></b>'
    assert title("A", tag("code", "b")) == '<div class="title"><b>A</b> <code>b</code> <small></small></div>'
    assert facts(("a", ""), ("b", "")) == "" and facts(("a", "1"), ("b", "")).count("<tr>") == 1
    assert details("a", "b", is_open=True) == '<details open="open"><summary>a</summary>b</details>'
    assert code("a\nb\nc\n", most=2) == '<pre>a\nb<span class="faint">\n... 1 more lines: print it</span></pre>'


# ---- devices

SEVERAL = """
import json, hloom, hloom.numpy as jnp
from hloom import P
mesh, deep = hloom.make_mesh((2, 2), ("x", "y")), hloom.make_mesh((2, 1, 2), ("a", "b", "c"))
def put(spec, mesh=mesh):
    return hloom.NamedSharding(mesh, spec)
array = hloom.device_put(jnp.ones((4, 4)), put(P("x", "y")))
views = {
    "mesh": mesh, "deep mesh": deep, "both": put(P("x", "y")), "one": put(P(None, "y")), "together": put(P(("x", "y"))),
    "whole": put(P()), "three": put(P("x", None, "y")), "deep": put(P("a", "b", "c"), deep),
    "compiled": hloom.jit(lambda x: jnp.sin(x).sum(0)).lower(array).compile(), "array": array.sharding,
    "gspmd": hloom.jit(lambda x: x).lower(hloom.device_put(jnp.ones((4, 4)), put(P("x")))).compile().output_shardings,
}
print(json.dumps({name: view._repr_html_() for name, view in views.items()}))
"""


def ran(program: str, **variables: str) -> str:
    environment = {**os.environ, "HLOOM_NUM_DEVICES": "4", **variables}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=environment,
        cwd=Path(hloom.__file__).parents[1],
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_meshes_and_shardings_of_several_devices() -> None:
    views = {name: Checked(html) for name, html in json.loads(ran(SEVERAL)).items()}
    grid = ["CPU 0", "CPU 1", "CPU 2", "CPU 3"]
    for name, boxes in (
        ("mesh", grid), ("deep mesh", grid), ("both", grid), ("together", grid), ("three", grid), ("deep", grid),
        ("one", ["CPU 0,2", "CPU 1,3"]), ("whole", ["CPU 0,1,2,3"]), ("array", grid),
    ):  # fmt: skip
        assert views[name].tags.count("text") >= len(boxes), name
        for box in boxes:
            assert box in views[name].text, (name, box)
    assert "each of 4 devices has the whole array" in views["whole"].text
    assert "dimension 0 (x)" in views["both"].text and "dimension 1 (y)" in views["one"].text
    assert "dimension 0 (x, y)" in views["together"].text and "4 of 4" in views["together"].text
    assert "dimension 0 (x)" in views["three"].text and "dimension 2 (y)" in views["three"].text


def test_boxes_in_a_terminal() -> None:
    rows = [[Box("CPU 0", 0), NO_BOX], [Box("CPU 1", 1), Box("CPU 9", 9)]]
    text = grid_text(rows, 7, 1)
    assert text.splitlines()[1] == "│ CPU 0 │       │" and text.count("\n") == 4
    painted = grid_text(rows, 7, 1, coloured)
    assert painted.splitlines()[1] == "│\x1b[38;5;16;48;5;153m CPU 0 \x1b[0m│       │"
    assert painted.count("48;5;216m") == 2, "colours repeat after eight"


class Shell:
    """IPython's shell in a notebook."""

    kernel = object()


def test_visualize_sharding_shows_colours_where_it_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable, is_terminal, is_coloured in ((None, True, True), ("1", True, False), (None, False, False)):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        if variable is not None:
            monkeypatch.setenv("NO_COLOR", variable)
        monkeypatch.setattr(sys.stdout, "isatty", lambda is_terminal=is_terminal: is_terminal)
        hloom.debug.visualize_array_sharding(jnp.ones((4, 2)))
        hloom.debug.visualize_array_sharding(jnp.ones((4, 2)), use_color=False)
        first, second = capsys.readouterr().out.split("┌")[1:]
        assert ("\x1b" in first) == is_coloured and "\x1b" not in second and "CPU 0" in first


def test_visualize_sharding_shows_a_picture_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[tuple[dict[str, str], bool]] = []
    ipython: Any = type(sys)("IPython")
    display: Any = type(sys)("IPython.display")
    ipython.get_ipython, ipython.display = Shell, display
    display.display = lambda data, raw: shown.append((data, raw))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    hloom.debug.visualize_array_sharding(jnp.ones((4, 2)))
    ((data, raw),) = shown
    assert raw and capsys.readouterr().out == "" and "│  CPU 0  │" in data["text/plain"]
    assert "4 x 2, on each device 4 x 2" in Checked(data["text/html"]).text and "CPU 0" in data["text/html"]
    ipython.get_ipython = lambda: None  # imported, but no notebook
    hloom.debug.visualize_array_sharding(jnp.ones((4, 2)))
    assert len(shown) == 1 and "CPU 0" in capsys.readouterr().out


def test_cells_of_a_notebook_have_their_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "Jane Doe"))
    file = Path(tempfile.gettempdir(), "ipykernel_12", "345.py")

    class Compiler:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", "In[7]") if name == str(file) else None

    class WithCells(Shell):
        compile = Compiler()

    ipython: Any = type(sys)("IPython")
    ipython.get_ipython = WithCells
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    for text, named in (
        (f"{file}:3", "In[7], line 3"), ("ipykernel_12/345.py:3", "In[7], line 3"), ("ipykernel_12/9.py:3",) * 2,
        ("a/b.py:3",) * 2, (f"dot {file}:12 x", "dot In[7], line 12 x"),
        ("C:\\Users\\me\\ipykernel_12\\345.py:3", "In[7], line 3"), ("ipykernel_12\\345.py:3", "In[7], line 3"),
        ("C:\\Users\\me\\ipykernel_12\\9.py:3",) * 2,
    ):  # fmt: skip
        assert naming_cells(text) == named
    assert "<td>In[7], line 3</td>" in table(Table(("line",), [(f"{file}:3",)]))
    monkeypatch.delitem(sys.modules, "IPython")
    assert naming_cells(f"{file}:3") == f"{file}:3"


# ---- the cost for those who see no notebook


def test_nothing_is_imported_before_something_is_shown() -> None:
    program = """
import sys, hloom, hloom.numpy as jnp
compiled = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
print(compiled(jnp.ones(3)), str(compiled.passes())[:4])
late = ("hloom.notebooks", "hloom.hlo.pictures", "html", "IPython")
def loaded(): return sorted(n for n in sys.modules if n.startswith(late))
assert loaded() == [], loaded()
compiled._repr_html_()
assert "hloom.notebooks.views" in loaded() and "IPython" not in loaded()
"""
    ran(program)
