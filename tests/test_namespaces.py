"""Public namespaces hold the names that users expect: JAX's, and a few of hloom's."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from types import ModuleType

import pytest
from hloom.tracer import operators

import hloom
from support import jax_names

OURS = {
    "": {
        *("Compiled", "LocalClient", "Lowered", "extend", "hlo", "make_hlo", "run_hlo"),
        *("register_custom_call", "registered_custom_calls", "unregister_custom_call"),
    },
    "errors": {
        *("CustomCallError", "DeletedArrayError", "ExecutionError", "HloError", "HloParseError"),
        *("NonArrayArgumentError", "NonHashableStaticArgumentsError", "OperandError", "ShapeError"),
        *("TreeStructureError", "UnsupportedElementTypeError", "UnsupportedError", "VerificationError"),
    },
    "numpy": {"fix"},  # NumPy has it, and JAX had it
    "tree": {"PyTreeDef", "register_dataclass", "register_pytree_node", "register_pytree_node_class"},
}
"""Names that JAX has not in this namespace."""


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_every_name_is_one_of_jax_or_declared_as_ours(name: str) -> None:
    public = set(jax_names.namespace("hloom", name).__all__)
    jax = set(jax_names.recorded()[name])
    assert public - jax == OURS.get(name, set())


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_nothing_internal_leaks(name: str) -> None:
    """What tab completion offers, and what `from namespace import name` finds."""
    module = jax_names.namespace("hloom", name)
    assert {n for n in dir(module) if not n.startswith("_")} == set(module.__all__)
    reachable = {n for n in vars(module) if not n.startswith("_")}
    if module is hloom:  # its other packages: the import system binds them when they are loaded
        reachable = {n for n in reachable if not isinstance(getattr(module, n), ModuleType)}
    assert reachable <= set(module.__all__)


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_no_name_is_listed_twice_and_all_exist(name: str) -> None:
    module = jax_names.namespace("hloom", name)
    assert len(module.__all__) == len(set(module.__all__))
    for n in module.__all__:
        assert getattr(module, n, module) is not module, n


def test_arrays_have_every_function_that_their_methods_call() -> None:
    """`use_functions` is given them by hand."""
    called = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(operators)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "_np"
    }
    assert "add" in called
    assert called == set(vars(operators._np))


@pytest.mark.parametrize("use", ["lax.add(1.0, 2.0) + 1", "lax.erf_inv(0.0) + 4", "lax.full((2,), 2.0).sum()"])
def test_arrays_have_operators_where_lax_alone_is_imported(use: str) -> None:
    code = f"from hloom import lax; print(float({use}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "4.0", ran.stderr


def test_recorded_names_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_names.VERSION:
        pytest.skip(f"the names were recorded from JAX {jax_names.VERSION}")
    assert jax_names.of_jax() == jax_names.recorded()
