"""Who imports whom: layers import downwards only, and no modules import one another in a circle.

All imports count, also those under TYPE_CHECKING and inside functions: these hide a circle, they do not remove it. Late
loads (`import_module(".name", __package__)`, `load(...)`) save time, and may hide a circle too: they count. It does not
count that importing a module also imports the packages around it.

A lower layer that needs a part of the library above it asks `hlo/library.py` for it, which lists all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hloom.hlo import library

from support import source_tree

FOLDERS = ("hlo", "numba_backend", "tracer", "autodiff", "hloom")
ALLOWED: dict[str, set[str]] = {
    "hlo": set(),
    "numba_backend": {"hlo"},
    "tracer": {"hlo"},
    "autodiff": {"hlo", "tracer"},
    "hloom": {"hlo", "tracer", "autodiff", "numba_backend"},
}
"""The layers that each layer may import."""

CIRCLES: dict[frozenset[str], str] = {
    frozenset(
        {
            *("hlo.builder", "hlo.ir", "hlo.text.common_attributes", "hlo.text.instruction_parser"),
            *("hlo.text.parser", "hlo.text.resolver"),
        }
    ): "pickle keeps the text of a module, and finds the parser by `HloModule.__reduce__`",
    frozenset({f"hloom.experimental.sparse.{name}" for name in ("arrays", "layout", "matrices", "operators")}): (
        "methods of sparse arrays are operations, which return sparse arrays"
    ),
}
"""The circles that there may be, with the late load that closes each. One that is gone must leave the list; none may
join it."""

COMPUTED: dict[str, str] = {
    "hlo": "its public names",
    "hlo.custom_call_targets.library": "libraries of users",
    "hlo.custom_call_targets.table": "the files of its folder",
    "hlo.library": "the parts of the library that lower layers use",
    "hlo.support.loading": "it loads for others",
    "hlo.system": "the file of this system",
    "hloom.aot.compiling": "the files of numba_backend/ahead",
    "hloom.command_line": "the files of its folder",
    "hloom.command_line.aot": "the user's program",
    "hloom.jax_programs.sources": "JAX's internal modules, by their public names",
    "hloom.jax_programs.switch": "JAX's names",
    "hloom.namespaces": "public names of namespaces",
    "numba_backend.lowering_rules": "the files of its folder",
    "numba_backend.runtime.portable": "files of its folder",
}
"""The modules that load others by computed names, and which: no test sees these imports. None may join."""

PARTS = {
    "backends": {"hlo.backend"},
    "functions": {"tracer.arrays.operators"},
    "jaxprs": {"tracer.stages", "hloom.jaxpr.primitives"},
    "namespaces": {"hlo", "tracer.callers"},
    "notebooks": {"hlo.notebooks"},
    "sizes": {"hlo.symbolic.expressions"},
    "special": {"hlo.stablehlo.reading_chlo"},
}
"""The parts of the library above them that modules use (`hlo/library.py`). None may join."""

Graph = dict[str, set[str]]
"""Modules, by their names inside of the package, with those that they import."""


def modules(root: Path) -> dict[str, Path]:
    """Every module of the library: `hlo.ops.dot` -> its file; a package is its `__init__`."""
    found = {}
    for file in source_tree.modules(root):
        parts = Path(file).with_suffix("").parts
        parts = parts[1:] if parts[1] in FOLDERS else parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = root / file
    return found


def imports(name: str, path: Path, known: Iterable[str]) -> Iterator[str]:
    """The modules that a module's relative imports name, wherever they are in the file."""
    inside = name.split(".")
    inside = inside if inside[0] == "hloom" else ["hloom", *inside]
    package = inside if path.stem == "__init__" else inside[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                for target in ([*base, alias.name], base):
                    inner = ".".join(target[1:]) if len(target) > 1 and target[1] in FOLDERS else ".".join(target)
                    if inner in known:
                        yield inner
                        break
                else:
                    raise AssertionError(f"{name}: from {'.' * node.level}{node.module or ''} import {alias.name}")


def late_loads(path: Path) -> Iterator[ast.Call]:
    """The calls of a module that import another one by its name."""
    text = path.read_text()
    if not any(word in text for word in ("import_module", "__import__", ".loading")):
        return
    tree = ast.parse(text)
    loaders = {"__import__"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1] in ("importlib", "loading"):
            loaders |= {a.asname or a.name for a in node.names if a.name in ("import_module", "load")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            is_method = isinstance(called, ast.Attribute) and called.attr == "import_module"
            if is_method or (isinstance(called, ast.Name) and called.id in loaders):
                yield node


def late_imports(name: str, path: Path, known: Iterable[str]) -> Iterator[str | None]:
    """The modules that a module loads by their names; None for a computed name."""
    inside = name.split(".")
    inside = inside if inside[0] == "hloom" else ["hloom", *inside]
    package = inside if path.name == "__init__.py" else inside[:-1]
    for node in late_loads(path):
        argument = node.args[0]
        choices = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
        for choice in choices:
            origin = ast.unparse(node.args[1]) if node.args[1:] else ""
            if not isinstance(choice, ast.Constant) or origin not in ("", "__name__", "__package__"):
                yield None
            elif choice.value.startswith("."):
                relative = choice.value.lstrip(".")
                base = inside if origin == "__name__" else package
                target = base[: len(base) + 1 - (len(choice.value) - len(relative))] + relative.split(".")
                inner = ".".join(target[1:] if len(target) > 1 and target[1] in FOLDERS else target)
                assert inner in known, f"{name}: {ast.unparse(node)}"
                yield inner


@cache
def graph(root: Path) -> Graph:
    known = modules(root)
    found: Graph = {name: set(imports(name, path, known)) - {name} for name, path in known.items()}
    for name, path in known.items():
        found[name] |= {late for late in late_imports(name, path, known) if late is not None} - {name}
        stub = path.with_suffix(".pyi")
        if stub.exists():  # a namespace loads the names in its stub when they are first used
            found[name] |= set(imports(name, stub, known)) - {name}
    return found


def circles(edges: Graph) -> set[frozenset[str]]:
    """The largest sets of modules in which each reaches each other: Tarjan's algorithm."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for target in edges.get(module, ()):
            if target not in number:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in path:
                lowest[module] = min(lowest[module], number[target])
        if lowest[module] == number[module]:
            component = path[path.index(module) :]
            del path[path.index(module) :]
            if len(component) > 1:
                found.add(frozenset(component))

    for module in edges:
        if module not in number:
            visit(module)
    return found


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}
    assert circles(edges) == {frozenset("abc")}
    assert circles(edges | {"c": set()}) == set()


def test_imports_are_found_wherever_they_hide(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "from ..shape import Shape\n"
        "if TYPE_CHECKING:\n    from .dot import DotAttributes\n"
        "def f():\n    from . import spec\n"
    )
    known = {"hlo.shape", "hlo.ops.dot", "hlo.ops.spec"}
    assert set(imports("hlo.ops.x", path, known)) == known


def test_late_loads_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import importlib\nfrom importlib import import_module\nfrom ..loading import load as _load\n"
        "def f():\n"
        "    import_module('.dot', __package__)\n"
        "    importlib.import_module('...shape', __name__)\n"
        "    _load('.a' if f else '.b', __package__)\n"
        "    import_module(f'.{f}', __package__)\n"
        "    import_module('html')\n"
    )
    known = {"hlo.ops.dot", "hlo.shape", "hlo.ops.a", "hlo.ops.b"}
    assert set(late_imports("hlo.ops.x", path, known)) == {*known, None}


def test_computed_names_are_loaded_in_few_modules(root: Path) -> None:
    known = modules(root)
    found = {name for name, path in known.items() if None in late_imports(name, path, known)}
    assert found == set(COMPUTED)


def test_lower_layers_use_few_parts_of_the_library_above(root: Path) -> None:
    found: dict[str, set[str]] = {}
    for name, path in modules(root).items():
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "part_above(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("part_above", "_part_above"):
                (argument,) = node.args
                found.setdefault(ast.literal_eval(argument), set()).add(name)
    assert found == PARTS
    assert set(library.PARTS) == set(PARTS)
    known = set(modules(root))
    assert {f"hloom{name}" for name in library.PARTS.values()} <= {*known, *(f"hloom.{name}" for name in known)}


def test_the_graph_is_not_empty(root: Path) -> None:
    edges = graph(root)
    assert "hlo.instruction" in edges["hlo.ir"] and "hlo.ops.declare" in edges["hlo.ops.dot"]


def test_no_modules_import_one_another_in_a_circle(root: Path) -> None:
    found = circles(graph(root))
    new = [sorted(circle) for circle in found if not any(circle <= known for known in CIRCLES)]
    gone = [sorted(known) for known in CIRCLES if not any(circle <= known for circle in found)]
    assert not new, "modules import one another in a circle"
    assert not gone, "circles that are gone: take them out of the list"


FOLDER_CIRCLES: dict[frozenset[str], str] = {
    frozenset({"fused_computations", "native_loops", "output_fusion"}): (
        "inside of a loop or a fusion, results share buffers by the rule that has loops and fusions in it"
    ),
}


def test_mlir_knows_no_dialect(root: Path) -> None:
    edges = graph(root)
    assert any(name.startswith("hlo.mlir.") for name in edges["hlo.stablehlo.text"])
    assert not [name for name in edges if name.startswith("hlo.mlir") for to in edges[name] if "stablehlo" in to]


def test_folders_of_the_backend_form_no_circle(root: Path) -> None:
    """So a folder can be read with those below it, and without those above: `ahead` uses `emit`, for example."""
    folders = {path.name for path in (root / "hloom" / "numba_backend").iterdir() if path.is_dir()}

    def place(module: str) -> str:
        return module.split(".")[1]

    edges: Graph = {}
    inside = {name: targets for name, targets in graph(root).items() if name.startswith("numba_backend.")}
    for name, targets in inside.items():
        edges.setdefault(place(name), set()).update({place(t) for t in targets if t in inside} - {place(name)})
    assert folders >= {"ahead", "emit", "policy", "schedule"} and "schedule" in edges["policy"]
    assert circles(edges) == set(FOLDER_CIRCLES)


@pytest.mark.parametrize("layer", FOLDERS)
def test_imports_go_down_only(layer: str, root: Path) -> None:
    wrong = [
        f"{name} imports {target}"
        for name, targets in graph(root).items()
        for target in targets
        if name.split(".")[0] == layer and target.split(".")[0] not in ALLOWED[layer] | {layer}
    ]
    assert wrong == []


NUMBA_IS_OPEN = {
    "numba": {"njit", "cfunc", "types"},
    "numba.core": {"errors"},
    "numba.core.cgutils": {"create_struct_proxy"},
    "numba.core.errors": {"NumbaTypeError"},
    "numba.extending": {"intrinsic"},
}
"""The names of Numba that are used: its documents describe all of them."""


def test_only_documented_names_of_numba_are_used(root: Path) -> None:
    for path in sorted((root / "hloom" / "numba_backend").rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
                found = {alias.name for alias in node.names}
                assert found <= NUMBA_IS_OPEN.get(str(node.module), set()), f"{path.name} imports {found}"
            if isinstance(node, ast.Import):
                assert not any(a.name.startswith("numba.") for a in node.names), path.name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "numba":
                assert node.attr in NUMBA_IS_OPEN["numba"], f"{path.name}: numba.{node.attr}"


def test_no_property_holds_a_lock_while_it_computes(root: Path) -> None:
    """Before Python 3.12 functools.cached_property does, and a forked child waits for it: use hlo/support/lazy.py."""
    users = {name for name, path in modules(root).items() if "cached_property" in path.read_text()}
    assert users <= {"hlo.support.lazy"}
