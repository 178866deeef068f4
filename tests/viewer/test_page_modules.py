"""The parts of the viewer's page that need no browser: provenance, differences, outlines, graphs, search, links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.node import PURE_MODULES, VIEWER_PAGE, needs_node, run_page_modules
from support.viewer_programs import viewer_program

OPCODES = [
    "parameter",
    "constant",
    "add",
    "exponential",
    "multiply",
    "fusion",
    "f32[8]",
    "f(x)/exp",
    "identity",
    "main",
]


def small() -> dict[str, Any]:
    """exp(p0 + 0) * p0: as traced, without the addition, and as one fusion.

    traced 0..4: p0, c, add, exp, mul; simplified: exp' 5, mul' 6; fused: fusion 7 with param 8, exp'' 9, mul'' 10.
    """
    rows = [
        # name, opcode, operands, called, line, origin
        ("p0", 0, [], [], -1, []),
        ("c", 1, [], [], -1, []),
        ("add", 2, [0, 1], [], 41, []),
        ("exp", 3, [2], [], 42, []),
        ("mul", 4, [3, 0], [], 43, []),
        ("exp", 3, [0], [], 42, [3]),
        ("mul", 4, [5, 0], [], 43, [4]),
        ("fusion", 5, [0], [2], 43, [5, 6]),
        ("param", 0, [], [], -1, []),
        ("exp", 3, [8], [], 42, [5]),
        ("mul", 4, [9, 8], [], 43, [6]),
    ]
    columns = {
        "name": [r[0] for r in rows],
        "opcode": [r[1] for r in rows],
        "shape": [6] * 11,
        "text": [""] * 11,
        "operands": [r[2] for r in rows],
        "called": [r[3] for r in rows],
        "source": [-1 if r[4] < 0 else 0 for r in rows],
        "line": [r[4] for r in rows],
        "column": [0] * 11,
        "op_name": [7] * 11,
        "bytes": [32] * 11,
        "flops": [8] * 11,
        "origin": [r[5] for r in rows],
    }
    computations = [
        {"name": "main", "instructions": [0, 1, 2, 3, 4], "root": 4, "parameters": [0]},
        {"name": "main", "instructions": [0, 5, 6], "root": 6, "parameters": [0]},
        {"name": "fused", "instructions": [8, 9, 10], "root": 10, "parameters": [8]},
        {"name": "main", "instructions": [0, 7], "root": 7, "parameters": [0]},
    ]
    rule = {"rule": 8, "computation": 9, "before": 2, "after": [0], "text": ""}
    stages = [
        {"name": "traced", "milliseconds": None, "entry": 0, "computations": [0], "fused": [], "rules": []},
        {"name": "simplifier", "milliseconds": 1, "entry": 1, "computations": [1], "fused": [], "rules": [rule]},
        {"name": "fusion", "milliseconds": 1, "entry": 3, "computations": [3, 2], "fused": [2], "rules": []},
    ]
    buffer = {"space": "HBM", "offset": 0, "size": 64, "logical": 32, "reason": ""}
    return {
        "version": 1, "title": "f", "facts": [], "strings": OPCODES, "instructions": columns,
        "sources": [{"path": "a/f.py", "first": 40, "lines": ["def f(x):", "  y = x + 0", "  z = exp(y)", "  z *= x"]}],
        "computations": computations, "stages": stages, "passes": [],
        "kernels": [{"name": "k", "text": "def k(): pass", "algorithm": None, "schedule": [], "instructions": [7]}],
        "rows": [{"label": "k", "kind": "kernel", "instruction": 7, "kernel": 0, "source": 0, "line": 43}],
        "buffers": [
            {"memory": "argument", **buffer, "first": 0, "last": 1, "values": [0]},
            {"memory": "result", **buffer, "first": 1, "last": 1, "values": [7, "result"]},
        ],
        "schedule": [0, 7], "arenas": [], "profile": None, "devices": None,
    }  # fmt: skip


def evaluate(folder: Path, body: str, given: Any = None) -> Any:
    """JavaScript over the small program `p`."""
    made = "const p = new model.Program(given.program);"
    return run_page_modules(folder, made + body, {"program": small(), "given": given})


RELATED = """
const list = (set) => [...set].sort();
return given.given.map((selection) => {
  const found = provenance.related(p, selection);
  return { instructions: [...found.instructions].sort((a, b) => a - b), lines: list(found.lines),
    kernels: list(found.kernels), rows: list(found.rows), buffers: list(found.buffers) };
});
"""


@needs_node
def test_what_a_selection_came_from_and_became(tmp_path: Path) -> None:
    kinds = [("instruction", 3), ("instruction", 9), ("instruction", 7), ("instruction", 2)]
    kinds += [("line", "0:42"), ("kernel", 0), ("row", 0), ("buffer", 1), ("buffer", 0)]
    found = evaluate(tmp_path, RELATED, [{"kind": kind, "id": number} for kind, number in kinds])
    traced, inner, whole, removed, by_line, by_kernel, by_row, result, argument = found
    tables = {"kernels": [0], "rows": [0], "buffers": [1]}
    # the exponential becomes a part of the fusion; the fusion's result is the buffer
    assert traced == {"instructions": [3, 5, 7, 9], "lines": ["0:42"], **tables}
    assert inner == {"instructions": [3, 5, 9], "lines": ["0:42"], **tables}
    assert whole["instructions"] == [3, 4, 5, 6, 7, 8, 9, 10] and whole["lines"] == ["0:42", "0:43"]
    # the addition became nothing: only its line is known
    assert removed == {"instructions": [2], "lines": ["0:41"], "kernels": [], "rows": [], "buffers": []}
    assert by_line["instructions"] == [3, 5, 7, 9] and by_line["lines"] == ["0:42"] and by_line["kernels"] == [0]
    assert by_kernel == by_row == {**whole, **tables} == result
    assert argument == {"instructions": [0], "lines": [], "kernels": [], "rows": [], "buffers": [0]}


@needs_node
def test_what_was_merged_into_another(tmp_path: Path) -> None:
    """The addition of zero has the value of the parameter: it became it, and what used it has not changed."""
    program = small()
    program["stages"][1]["merged"] = [[2, 0]]
    body = (
        "const p = new model.Program(given.program);"
        "const all = (id) => [...provenance.related(p, {kind: 'instruction', id}).instructions].sort((a, b) => a - b);"
        "const d = diff.difference(p, 0, 1); return [all(2), all(0), [...d.older], [...d.newer]];"
    )
    addition, parameter, older, newer = run_page_modules(tmp_path, body, {"program": program})
    assert addition == parameter == [0, 2]
    assert older == [[1, "removed"], [2, "removed"]] and newer == []


@needs_node
def test_marks_of_a_stage_and_lineage(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "const r = provenance.related(p, {kind: 'instruction', id: 3});"
        "const marks = [0, 1, 2].map((s) => [...provenance.marksOf(p, r, s)]);"
        "return [marks, provenance.lineage(p, 9), p.users(0, 0), p.users(1, 0)];",
    )
    marks, history, users, later_users = found
    assert marks == [[[3, "exact"]], [[5, "related"]], [[7, "related"], [9, "related"]]]
    assert history == [{"stage": 0, "ids": [3]}, {"stage": 1, "ids": [5]}, {"stage": 2, "ids": [9]}]
    assert users == [2, 4] and later_users == [5, 6]


@needs_node
def test_differences(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "const pairs = (m) => [...m].sort((a, b) => a[0] - b[0]);"
        "return [[0, 1], [1, 2], [0, 2]].map(([a, b]) => { const d = diff.difference(p, a, b);"
        "return [pairs(d.older), pairs(d.newer), diff.counted(d)]; });",
    )
    # the exponential has another operand; the multiplication uses what the exponential became, and is the same
    assert found[0] == [
        [[1, "removed"], [2, "removed"], [3, "changed"]],
        [[5, "changed"]],
        {"added": 0, "removed": 2, "changed": 1},
    ]
    # into a fusion: its body is the same, with parameters for what comes from outside
    assert found[1] == [[], [[7, "added"], [8, "added"]], {"added": 2, "removed": 0, "changed": 0}]
    assert [number for number, _ in found[2][0]] == [1, 2, 3]


@needs_node
def test_rows_are_aligned(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "const at = (list) => (k) => list[k];"
        "return [diff.aligned(3, 3, at([0, 1, 2])), diff.aligned(3, 2, at([0, 2])),"
        "diff.aligned(2, 4, at([0, -1, -1, 1])),"
        "diff.aligned(3, 3, at([1, 0, 2])), diff.aligned(2, 2, at([-1, -1]))];",
    )
    assert found[0] == [[0, 0], [1, 1], [2, 2]]
    assert found[1] == [[0, 0], [1, -1], [2, 1]]
    assert found[2] == [[0, 0], [-1, 1], [-1, 2], [1, 3]]
    # partners that cross: one of them is left apart
    assert [row for row in found[3] if -1 not in row] == [[0, 1], [2, 2]]
    assert found[4] == [[0, 0], [1, 1]]


@needs_node
def test_outlines_fold_computations_and_lines(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "const rows = (s, folded) => outline.outline(p, s, {folded: new Set(folded)})"
        ".map((r) => r.kind[0] + r.id + '@' + r.depth);"
        "const folded = outline.outline(p, 2, {folded: new Set(['c:fused'])});"
        "return [rows(0, []), rows(2, []), rows(2, ['c:fused']), rows(2, ['c:main']), outline.keysAbove(p, 2, 9),"
        "outline.positions(p, 2, folded)(9), outline.positions(p, 2, folded)(7), outline.positions(p, 2, folded)(3),"
        "outline.foldable(p, 2)];",
    )
    assert found[0] == ["c0@0", "i0@1", "i1@1", "i2@1", "i3@1", "i4@1"]
    assert found[1] == ["c3@0", "i0@1", "i7@1", "c2@2", "i8@3", "i9@3", "i10@3"]
    assert found[2] == ["c3@0", "i0@1", "i7@1", "c2@2"]
    assert found[3] == ["c3@0"]
    # an instruction that is hidden is at the row that hides it; one of another stage is nowhere
    assert found[4:] == [["c:fused", "c:main"], 3, 2, -1, ["c:fused"]]


@needs_node
@pytest.mark.parametrize("by", ["line", "call"])
def test_lines_and_calls_gather_neighbours(tmp_path: Path, by: str) -> None:
    program = viewer_program(40, 4)
    body = """
      const p = new model.Program(given.program);
      const rows = outline.outline(p, 0, { folded: new Set(), by: given.by });
      const groups = rows.filter((r) => r.kind === "group");
      const folded = outline.outline(p, 0, { folded: new Set(groups.map((r) => r.key)), by: given.by });
      const place = (id) => (given.by === "line" ? p.line(id).line : p.scope(id));
      return [groups.length, groups.every((g) => g.ids.every((id) => place(id) === place(g.id))),
        new Set(groups.map((g) => g.key)).size, rows.length - folded.length,
        groups.reduce((n, g) => n + g.ids.length, 0)];
    """
    count, same, keys, hidden, inside = run_page_modules(tmp_path, body, {"program": program, "by": by})
    # the loop's body is listed below its loop, and folded with it
    assert count > 2 and same and keys == count and hidden >= inside


GRAPH = """
const graph = (program, options) => {
  const given = { unfolded: new Set(), by: "instruction", ...options };
  const { nodes, edges, total } = graph_model.graphOf(program, program.last, given);
  return { keys: nodes.map((n) => n.key).sort(), edges: edges.map((e) => e.from + " " + e.to).sort(), total,
    more: nodes.reduce((sum, n) => sum + n.more, 0), parents: nodes.filter((n) => n.parent).map((n) => n.key).sort() };
};
"""


@needs_node
def test_graphs_unfold_gather_and_are_cut(tmp_path: Path) -> None:
    small_graph, unfolded = evaluate(tmp_path, GRAPH + "return [graph(p, {}), graph(p, {unfolded: new Set(['i7'])})];")
    assert small_graph["keys"] == ["i0", "i7"] and small_graph["edges"] == ["i0 i7"]
    # an edge into a fusion that is unfolded ends at its parameter
    assert unfolded["keys"] == ["i0", "i10", "i7", "i8", "i9"]
    assert unfolded["edges"] == ["i0 i8", "i8 i10", "i8 i9", "i9 i10"] and unfolded["parents"] == ["i10", "i8", "i9"]
    body = (
        "const p = new model.Program(given.program);" + GRAPH + "const all = graph(p, {cap: 1000});"
        "const part = graph(p, {cap: 10}); const more = graph(p, {cap: 10, wanted: new Set(all.keys.slice(0, 20))});"
        "return [all, part, more, graph(p, {by: 'line', cap: 1000}), graph(p, {by: 'scope', cap: 1000})];"
    )
    whole, part, more, lines, scopes = run_page_modules(tmp_path, body, {"program": viewer_program(120, 4)})
    assert len(whole["keys"]) == whole["total"] > 30 and whole["more"] == 0
    assert len(part["keys"]) == 10 and part["total"] == whole["total"] and part["more"] > 0
    assert len(more["keys"]) >= 20
    assert len(scopes["keys"]) < len(lines["keys"]) < len(whole["keys"])
    ends = {end for edge in part["edges"] for end in edge.split()}
    assert ends <= set(part["keys"])


@needs_node
def test_far_edges_are_left_out_of_the_layout(tmp_path: Path) -> None:
    body = """
      const keys = Array.from({ length: given.count }, (_, k) => ({ key: "n" + k }));
      const edges = keys.slice(1).map((_, k) => ({ from: "n" + k, to: "n" + (k + 1) }));
      keys.forEach((_, k) => { if (k > given.count / 2) edges.push({ from: "n0", to: "n" + k }); });
      const { near, far } = graph_model.nearAndFar({ nodes: keys, edges });
      return [near.length, far.length];
    """
    assert run_page_modules(tmp_path, body, {"count": 12}) == [16, 0]
    assert run_page_modules(tmp_path, body, {"count": 80}) == [79, 39]


@needs_node
def test_memory_over_time(tmp_path: Path) -> None:
    buffers = [(0, 10, 0, 2), (10, 10, 1, 3), (0, 6, 3, 4), (20, 4, 0, 4), (6, 4, 4, 4)]
    program = small()
    program["buffers"] += [
        {
            "memory": "arena",
            "space": "HBM",
            "offset": o,
            "size": s,
            "logical": s,
            "first": f,
            "last": n,
            "values": [],
            "reason": "",
        }
        for o, s, f, n in buffers
    ]
    program["arenas"] = [{"space": "HBM", "size": 24, "peak": 24, "limit": None}]
    body = (
        "const p = new model.Program(given.program); const found = memory_model.memories(p);"
        "const sizes = found.map((m) => [m.memory, m.size]);"
        "return [sizes, memory_model.liveness(found[0]), [...memory_model.reused(found[0])]];"
    )
    memories, live, reused = run_page_modules(tmp_path, body, {"program": program})
    assert memories == [["arena", 24], ["argument", 64], ["result", 64]]
    assert live == {"live": [14, 24, 24, 20, 14], "peak": 1, "bytes": 24}
    assert reused == [4, 6]  # both where the first one lay


@needs_node
def test_search(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "return ['exp', 'k', 'add p0', 'fusion f32', 'nothing', ''].map((q) => "
        "searching.search(p, 2, q).map((r) => [r.kind, r.id, r.stage]));",
    )
    here = [
        ["instruction", 0, 2],
        ["instruction", 7, 2],
        ["instruction", 8, 2],
        ["instruction", 9, 2],
        ["instruction", 10, 2],
    ]
    # the name in Python has "exp": all instructions, first those of the shown stage
    assert found[0][:6] == [["line", "0:42", 2], *here]
    assert ["instruction", 4, 0] in found[0] and ["instruction", 6, 1] in found[0]
    assert found[1] == [["kernel", 0, 2]]
    assert found[2:] == [[], [["instruction", 7, 2]], [], []]


@needs_node
def test_links(tmp_path: Path) -> None:
    body = """
      const known = ["hlo", "lines", "graph"];
      const defaults = { stage: p.last, panes: ["hlo", "lines"], known, pane: "hlo", beside: "before" };
      const read = (text) => link.parseFragment(p, text, defaults);
      const there = (text) => link.fragmentOf(p, read(text), defaults);
      return [given.given.map(there), read("#selected=l0:42&stage=nothing&panes=nothing"), p.stageKeys];
    """
    texts = [
        "",
        "stage=simplifier",
        "selected=i3",
        "selected=l0:42",
        "stage=traced&selected=k0&pane=graph&search=a%20b%26&panes=graph,hlo",
    ]
    wrong = ["selected=i99", "selected=x", "selected=l0:1", "stage=%E0%A4%A", "pane=nothing", "selected=iNaN"]
    found, state, keys = evaluate(tmp_path, body, texts + wrong)
    assert found == texts + [""] * len(wrong)
    assert (
        state["selection"] == {"kind": "line", "id": "0:42"}
        and state["stage"] == 2
        and state["panes"] == ["hlo", "lines"]
    )
    assert keys == ["traced", "simplifier", "fusion"]


@needs_node
def test_numbers_and_words(tmp_path: Path) -> None:
    found = evaluate(
        tmp_path,
        "return [[0, 999, 1536, 81920, 2.5e9].map(format.bytesText), [2, 0.0123, 4.5e-5].map(format.secondsText),"
        "[0.5, 0.012, 1].map(format.shareText), format.bytesText(-1), format.pythonTokens('x = f(2.5)  # for y'),"
        "[0.5, 1.8, null].map(format.memoryText)];",
    )
    assert found[0] == ["0 B", "999 B", "1.54 kB", "81.9 kB", "2.50 GB"]
    assert found[1:4] == [["2.00 s", "12.3 ms", "45.0 µs"], ["50%", "1.2%", "100%"], ""]
    assert found[5] == ["50%", "180%, from a cache", ""]
    assert found[4] == [["", "x = f("], ["t-number", "2.5"], ["", ")  "], ["t-comment", "# for y"]]


@needs_node
def test_stages_with_one_name_have_keys(tmp_path: Path) -> None:
    program = viewer_program(30, 8)
    keys = run_page_modules(tmp_path, "return new model.Program(given.program).stageKeys;", {"program": program})
    assert keys == ["traced", "simplifier", "cse", "dce", "simplifier~2", "cse~2", "fusion", "scheduling"]


MODULES = {
    path.name: path.read_text(encoding="utf-8") for path in VIEWER_PAGE.glob("*.js") if path.name != "dagre.min.js"
}


def test_modules_can_be_put_into_one_file() -> None:
    """Imports are lines of one form, exports declarations, and no name at the top level is in two modules."""
    names: dict[str, str] = {}
    for module, text in MODULES.items():
        for line in text.splitlines():
            if line.startswith("import "):
                match = re.fullmatch(r'import \{ [\w, ]+ \} from "\./([\w]+\.js)";', line)
                assert match and match[1] in MODULES, (module, line)
            elif line.startswith("export"):
                assert re.match(r"export (async )?(function|class|const) \w+", line), (module, line)
            if match := re.match(r"(?:export )?(?:async )?(?:function|class|const|let) (\w+)", line):
                assert match[1] not in names, f"{match[1]} is in {module} and {names[match[1]]}"
                names[match[1]] = module
    assert len(names) > 60
    for module in PURE_MODULES:
        assert "document" not in re.sub(r"//.*", "", MODULES[f"{module}.js"]), module


@pytest.mark.parametrize("module", sorted(MODULES))
def test_text_of_programs_never_becomes_markup(module: str) -> None:
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "http:",
        "https:",
    ):
        assert word not in MODULES[module].replace("http://www.w3.org/2000/svg", ""), word
    assert MODULES[module].startswith("// ") and len(MODULES[module].splitlines()) < 350


def test_each_name_that_is_exported_is_imported() -> None:
    for module, text in MODULES.items():
        for name in re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE):
            users = [
                m
                for m, other in MODULES.items()
                if m != module and re.search(rf"^import .*\b{name}\b", other, re.MULTILINE)
            ]
            assert users, f"{module}: {name}"
