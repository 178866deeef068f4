"""Every opcode in every layer: a rule, or an explicit word on why there is none. And who may import whom."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hloom.autodiff.rules.tables import JVP, TRANSPOSE
from hloom.hlo.evaluator import EVALUATE
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import SPECS
from hloom.hlo.rules import RuleTable
from hloom.numba_backend.emit.element import ELEMENT
from hloom.tracer.overlay import EXTENDED

import hloom.autodiff.rules  # isort: skip
import hloom.numba_backend.emit  # isort: skip
import hloom.tracer.extended_ops  # noqa: F401  # isort: skip

TABLES: list[RuleTable] = [EVALUATE, ELEMENT, JVP, TRANSPOSE, EXTENDED]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.what)
def test_every_opcode_has_a_rule_or_a_reason(table: RuleTable) -> None:
    assert table.missing() == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.what)
def test_a_second_rule_is_refused(table: RuleTable) -> None:
    with pytest.raises(AssertionError, match=r"two .* rules"):
        table.register(next(o for o in Opcode if o in table))(lambda: None)


def test_every_opcode_has_a_spec() -> None:
    assert set(SPECS) == set(Opcode)


ALLOWED: dict[str, set[str]] = {
    "hlo": set(),
    "numba_backend": {"hlo"},
    "tracer": {"hlo"},
    "autodiff": {"hlo", "tracer"},
    "hloom": {"hlo", "tracer", "autodiff", "numba_backend"},
}


NUMBA_IS_OPEN = {"numba.core.types", "numba.core.errors", "numba.core.compiler_lock", "numba.extending"}
"""What others than `numba_internals.py` may import from Numba."""


def test_the_form_of_numba_is_known_in_one_module(root: Path) -> None:
    for path in sorted((root / "numba_backend").rglob("*.py")):
        if path.name == "numba_internals.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
                module = str(node.module)
                whole = {"numba", "numba.core"}
                found = {f"numba.core.{a.name}" for a in node.names} if module in whole else {module}
                assert found <= NUMBA_IS_OPEN, f"{path.name} imports {', '.join(found)}"
            if isinstance(node, ast.Import):
                assert not any(a.name.partition(".")[0] == "numba" for a in node.names), path.name


def _imported_layers(path: Path, root: Path) -> set[str]:
    """The layers that a file's relative imports reach."""
    inside = ("hloom", *path.relative_to(root).with_suffix("").parts)
    if inside[1] == "hloom":
        inside = inside[1:]
    package = inside[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            target = (*base, *(node.module or "").split("."))
            names = [target[1]] if len(target) > 1 and target[1] else [alias.name for alias in node.names]
            found.update(n for n in names if n in ALLOWED)
    return found


@pytest.mark.parametrize("layer", ["hlo", "numba_backend", "tracer", "autodiff"])
def test_imports_go_down_only(layer: str, root: Path) -> None:
    for path in (root / layer).rglob("*.py"):
        wrong = _imported_layers(path, root) - ALLOWED[layer] - {layer}
        assert not wrong, f"{path.relative_to(root)} imports {', '.join(sorted(wrong))}"
