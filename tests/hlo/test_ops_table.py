"""docs/ops.md agrees with the tables, and has no empty cell."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hloom.hlo import ComputationBuilder, LocalClient, Opcode

from support.tool_modules import tool_module


@pytest.fixture(scope="module")
def tool(root: Path) -> ModuleType:
    return tool_module(root, "ops_table")


def test_the_document_is_what_the_tables_say(root: Path) -> None:
    command = [sys.executable, str(root / "tools" / "ops_table.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, f"run: python tools/ops_table.py --write\n{ran.stdout}{ran.stderr}"


def test_every_opcode_has_a_row(tool: ModuleType) -> None:
    assert sorted(row.opcode for row in tool.rows()) == sorted(f"`{opcode.value}`" for opcode in Opcode)


def test_no_cell_is_empty(tool: ModuleType) -> None:
    """A layer has a rule, or a reason why it has none; text comes back; there are cases."""
    wrong = []
    for row in tool.rows():
        empty = [name for name, cell in vars(row).items() if not cell or "**" in cell]
        if empty:
            wrong.append(f"{row.opcode}: {', '.join(empty)}")
    assert not wrong, "\n".join(wrong)


def test_only_parameters_have_no_meaning(tool: ModuleType) -> None:
    assert [row.opcode for row in tool.rows() if row.evaluator != "yes"] == ["`parameter`"]


def test_every_expansion_says_what_it_does(tool: ModuleType) -> None:
    assert tool.MISSING not in tool.expansions()


def test_every_method_is_listed(root: Path) -> None:
    text = (root / "docs" / "ops.md").read_text()
    for name, _ in [*inspect.getmembers(ComputationBuilder), *inspect.getmembers(LocalClient)]:
        if not name.startswith("_") and not name.isupper():
            assert f"| `{name}" in text


def test_a_stale_document_is_found(tool: ModuleType) -> None:
    stale = "<!-- made by tools/ops_table.py: ComputationBuilder -->\nold\n<!-- end -->\n"
    made = tool.with_parts(stale)
    assert made != stale and "`add(lhs, rhs" in made and "old" not in made
    assert tool.with_parts(made) == made


def test_a_part_that_nobody_makes(tool: ModuleType) -> None:
    with pytest.raises(KeyError, match="nothing"):
        tool.with_parts("<!-- made by tools/ops_table.py: nothing -->\n<!-- end -->\n")
