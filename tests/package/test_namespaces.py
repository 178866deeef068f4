"""Public namespaces hold the names that users expect: JAX's, and a few of hloom's."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from hloom.tracer.arrays import operators

import hloom
import hloom.numpy as jnp
from hloom.namespaces import stub_names
from support import jax_names

OURS = {
    "": {
        *("Compiled", "LocalClient", "Lowered", "extend", "hlo", "kernel_globals", "make_hlo", "run_hlo", "schedule"),
        *("ad_checkpoint", "example_libraries"),  # JAX has them after `import jax.ad_checkpoint` and the like
        "aot",
        "as_jax",
        *("jit_scope", "jit_scope_report"),
        "loop_checkpoints",
        "memory_budget",
        *("progress", "progress_bars"),
        *("register_custom_call", "registered_custom_calls", "unregister_custom_call"),
        "view",
    },
    "core": {  # JAX has them, and warns
        *("DropVar", "concrete_or_error", "find_top_trace", "get_opaque_trace_state", "pytype_aval_mappings"),
        "valid_jaxtype",
    },
    "debug": {"Stepper", "step"},
    "errors": {
        *("CustomCallError", "DeletedArrayError", "DerivativeMismatchError", "ExecutionError", "HloError"),
        *("AxisError", "CollectiveError", "EmptyQueueError", "HloParseError", "IndexKindError"),
        *("MemoryBudgetError", "ScheduleError"),
        *("BytecodeError", "CompileOptionError", "NonConcreteSliceError", "ShardingTypeError"),
        *("NonArrayArgumentError", "NonHashableStaticArgumentsError", "OperandError", "ShapeError", "UnboundAxisError"),
        *("TreeDefError", "TreeStructureError", "UnsupportedElementTypeError", "UnsupportedError", "VerificationError"),
    },
    "example_libraries.stax": {  # JAX has them too, of jax.nn
        *("elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones"),
        *("randn", "relu", "selu", "sigmoid", "softmax", "softplus", "standardize", "zeros"),
    },
    "experimental": {"disable_x64", "enable_x64", "error_check"},  # JAX has not published error_check yet
    "experimental.sparse": {"linalg"},  # JAX has the module there, too
    # JAX has them after `import jax.experimental.pallas.tpu`
    "experimental.pallas": {"mosaic_gpu", "ops", "tpu", "triton"},
    "experimental.shard_map": {"shard_map"},  # JAX has it, and warns
    "extend": {"Linear", "Primitive"},  # JAX has Primitive in `extend.core`
    "extend.core": {"Linear"},
    "extend.core.primitives": {  # JAX has them in lax and lax.linalg
        *("cholesky_update_p", "dce_sink_p", "lu_pivots_to_permutation_p", "mulhi_p", "optimization_barrier_p"),
        *("ormqr_p", "scatter_sub_p", "split_p", "stack_p", "stage_p", "symmetric_product_p", "tile_p", "unstack_p"),
    },
    "interpreters.batching": {"is_vmappable"},  # JAX had it, and libraries use it
    "interpreters.pxla": {"thread_resources"},  # JAX has it, and warns
    "numpy": {"fix"},  # NumPy has it, and JAX had it
    "profiler": {"Profile", "profile"},
    "scipy": {"optimize", "spatial"},  # JAX has them after `import jax.scipy.optimize` and the like
    "scipy.special": {"lpmn_values"},  # JAX has it, and warns
    "stages": {"JitScope"},
    "tree": {"PyTreeDef", "register_dataclass", "register_pytree_node", "register_pytree_node_class"},
}
"""Names that JAX has not in this namespace."""


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_every_name_is_one_of_jax_or_declared_as_ours(name: str) -> None:
    public = set(jax_names.namespace("hloom", name).__all__)
    jax = {*jax_names.recorded()[name], *jax_names.newer().get(name, ())}
    added = public - jax - OURS.get(name, set())
    assert not added, f"JAX has no {', '.join(sorted(added))}: add a row to OURS in this file"
    assert not OURS.get(name, set()) - public, "not there any more: remove these rows of OURS"
    assert not OURS.get(name, set()) & jax, "JAX has these: remove the rows of OURS"


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_nothing_internal_leaks(name: str) -> None:
    """The names that tab completion offers, and that `from namespace import name` finds."""
    module = jax_names.namespace("hloom", name)
    offered = {n for n in dir(module) if n.isidentifier()}  # pytest gives the modules that it rewrites names with an @
    assert {n for n in offered if not n.startswith("_")} == set(module.__all__)
    reachable = {n for n in vars(module) if n.isidentifier() and not n.startswith("_")}
    # its own files: the import system binds them when they are loaded
    reachable = {n for n in reachable if vars(module)[n] is not sys.modules.get(f"{module.__name__}.{n}")}
    assert reachable <= set(module.__all__)


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_no_name_is_listed_twice_and_all_exist(name: str) -> None:
    module = jax_names.namespace("hloom", name)
    assert len(module.__all__) == len(set(module.__all__))
    for n in module.__all__:
        assert getattr(module, n, module) is not module, n


OWN_CODE = """
import builtins, dis, importlib, json, sys, types
import hloom
import hloom.numpy as jnp
from hloom.hlo.support.tracebacks import inner
def read(code):
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return names.union(*(read(c) for c in code.co_consts if isinstance(c, types.CodeType)))
loaded = json.loads(sys.argv[1])
for name in loaded:
    importlib.import_module(name)
missing, functions = {}, 0
for name in loaded:
    known = vars(sys.modules[name])
    before = {*known, *vars(builtins)}
    for value in [*known.values(), *(getattr(sys.modules[name], n) for n in known["__all__"])]:
        value = inner(value) if isinstance(value, types.FunctionType) else value
        inside = vars(value).values() if isinstance(value, type) and value.__module__ == name else [value]
        for f in inside:
            if isinstance(f, types.FunctionType) and f.__globals__ is known:
                functions += 1
                if lacking := read(f.__code__) - before:
                    missing[f"{name}.{f.__name__}"] = sorted(lacking)
print(json.dumps([functions, missing]))
"""


def test_code_of_a_namespace_finds_the_names_that_it_reads(root: Path) -> None:
    """In a new process: also before anyone has asked the namespace for them."""
    published = re.compile(r"^_?publish\(__name__", re.MULTILINE)
    files = [f for f in root.joinpath("hloom").rglob("*.py") if published.search(f.read_text())]
    names = [".".join(f.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for f in files]
    assert len(names) > 60
    found = subprocess.run(
        [sys.executable, "-c", OWN_CODE, json.dumps(names)], capture_output=True, text=True, timeout=120, cwd=root
    )
    assert found.returncode == 0, found.stderr
    functions, missing = json.loads(found.stdout)
    assert functions > 20
    assert missing == {}


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_a_file_and_a_name_are_not_confused(name: str) -> None:
    """The import system binds a file to its name in the namespace: a function of that name must be the file's."""
    module = jax_names.namespace("hloom", name)
    if hasattr(module, "__path__") and not hasattr(module, "__file__"):
        return
    path = Path(module.__file__ or "")
    if path.name != "__init__.py" or not path.with_suffix(".pyi").exists():
        return
    for public, (home, _) in stub_names(module).items():
        is_file = (path.parent / f"{public}.py").exists() or (path.parent / public).is_dir()
        assert not is_file or home in (f".{public}", "."), public
        assert inspect.ismodule(getattr(module, public)) == (home == "."), public


def test_a_stub_with_an_import_that_is_no_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stubbed.py").write_text("")
    (tmp_path / "stubbed.pyi").write_text("from .somewhere import cube\n")
    spec = importlib.util.spec_from_file_location("stubbed", tmp_path / "stubbed.py")
    assert spec is not None
    with pytest.raises(ImportError, match=r"stubbed\.pyi: write `cube as cube`"):
        stub_names(importlib.util.module_from_spec(spec))


MESSAGES = {
    # what JAX has, and what to use
    "scipy.signal.firwin": "module 'hloom.scipy.signal' has no attribute 'firwin': outside of jit and grad, "
    "scipy.signal.firwin takes concrete arrays",
    "lax.psend": "jax.lax has 'psend', hloom.lax does not have it: not written yet; docs/scaling.md says how programs "
    "use several devices and processes",
    # names in other namespaces
    "numpy.softmax": "module 'hloom.numpy' has no attribute 'softmax': there is hloom.nn.softmax",
    "nn.sin": "module 'hloom.nn' has no attribute 'sin': there is hloom.numpy.sin",
    "tree_map": "module 'hloom' has no attribute 'tree_map': there is hloom.tree_util.tree_map",
    "random.scan": "module 'hloom.random' has no attribute 'scan': there is hloom.lax.scan",
    # what only NumPy has
    "numpy.busday_count": "module 'hloom.numpy' has no attribute 'busday_count': outside of jit and grad, "
    "numpy.busday_count takes concrete arrays",
    # names with another spelling
    "numpy.sinn": "module 'hloom.numpy' has no attribute 'sinn': did you mean 'sin', 'sinh' or 'sinc'?",
    "jitt": "module 'hloom' has no attribute 'jitt': did you mean 'jit'?",
    "numpy.Float32": "module 'hloom.numpy' has no attribute 'Float32': did you mean 'float32', 'float_' or 'float64'?",
    "nn.initializers.he": "module 'hloom.nn.initializers' has no attribute 'he': did you mean 'he_normal' or "
    "'he_uniform'?",
    "hlo.Parse": "module 'hloom.hlo' has no attribute 'Parse': did you mean 'parse'?",
    "errors.OperandErr": "module 'hloom.errors' has no attribute 'OperandErr': did you mean 'OperandError'?",
    # unknown names
    "lax.zzzz": "module 'hloom.lax' has no attribute 'zzzz'",
    "extend.zzzz": "module 'hloom.extend' has no attribute 'zzzz'",
    "experimental.zzzz": "module 'hloom.experimental' has no attribute 'zzzz'",
    "dtypes.__path__": "module 'hloom.dtypes' has no attribute '__path__'",
    "tree._flatten": "module 'hloom.tree' has no attribute '_flatten'",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_name_that_is_not_there(name: str) -> None:
    space, _, attribute = name.rpartition(".")
    module = jax_names.namespace("hloom", space)
    assert not hasattr(module, attribute)
    with pytest.raises(AttributeError) as caught:
        getattr(module, attribute)
    assert str(caught.value) == MESSAGES[name]
    assert traceback.format_exception_only(caught.value) == [f"AttributeError: {MESSAGES[name]}\n"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is AttributeError and str(again) == MESSAGES[name]


@pytest.mark.parametrize("name", jax_names.NAMESPACES)
def test_every_name_of_jax_gets_an_answer(name: str) -> None:
    module = jax_names.namespace("hloom", name)
    for each in [*jax_names.recorded()[name], *jax_names.newer().get(name, ())]:
        if each not in module.__all__:
            with pytest.raises(AttributeError, match=f"has '{re.escape(each)}', hloom"):
                getattr(module, each)


def test_advice_is_for_names_that_are_missing_and_names_what_is_there() -> None:
    from hloom.namespaces import jax_names as lists

    for name, words in lists.ADVICE.items():
        space, _, attribute = name.rpartition(".")
        if attribute == "*":
            assert space in lists.NAMESPACES, name
            continue
        assert attribute in lists.lacking(space), name
        assert not hasattr(jax_names.namespace("hloom", space), attribute), f"there is {name} now: drop the advice"
        for mentioned in re.findall(r"hloom((?:\.\w+)+)", words):
            found: object = hloom
            for part in mentioned.split(".")[1:]:
                found = getattr(found, part)


def test_python_adds_no_suggestion_of_its_own() -> None:
    code = "import hloom.numpy as jnp; jnp.sinn"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stderr.splitlines()[-1] == f"AttributeError: {MESSAGES['numpy.sinn']}"


def test_the_lists_are_read_only_for_messages() -> None:
    code = "import sys, hloom.numpy; hasattr(hloom, 'zzz'), hasattr(hloom.numpy, 'sort'); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    loaded = ran.stdout.split()
    assert "hloom.namespaces" in loaded and "hloom.namespaces.jax_names" not in loaded, ran.stderr


def test_arrays_have_every_function_that_their_methods_call() -> None:
    """`use_functions` is given them by hand."""
    called = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(operators)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "_np"
    }
    assert "add" in called
    functions = vars(operators._np)
    assert called == {*functions, *functions["_later"]} - {"_later"}


@pytest.mark.parametrize("use", ["lax.add(1.0, 2.0) + 1", "lax.erf_inv(0.0) + 4", "lax.full((2,), 2.0).sum()"])
def test_arrays_have_operators_where_lax_alone_is_imported(use: str) -> None:
    code = f"from hloom import lax; print(float({use}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "4.0", ran.stderr


def test_recorded_names_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_names.VERSION:
        pytest.skip(f"the names were recorded from JAX {jax_names.VERSION}")
    # in a process of its own: modules of JAX that other tests have imported become names of their packages
    code = "import json; from support import jax_names; print(json.dumps(jax_names.of_jax()))"
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(ran.stdout) == jax_names.recorded()


def test_only_the_librarys_own_objects_get_another_home() -> None:
    code = (
        "import hloom, typing, numpy, ml_dtypes, hloom.errors, hloom.numpy, hloom.typing\n"
        "print(*(x.__module__ for x in (typing.Any, numpy.ndarray, numpy.float32, ml_dtypes.bfloat16)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.split() == ["typing", "numpy", "numpy", "ml_dtypes"]


FIRST = """
import json, os, sys, traceback
import numba, scipy.linalg, scipy.special
import hloom.autodiff.api, hloom.hlo, hloom.tracer.bottom  # layers below, which import no namespace
for name in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        try:
            module = __import__(name, fromlist=["_"])
            for each in module.__all__:
                getattr(module, each)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""
"""Imports each namespace in a process that has no other yet, and asks for all of its names; prints those that fail."""


@pytest.mark.slow
def test_each_namespace_can_be_the_first_that_is_imported() -> None:
    package = Path(hloom.__file__).parent
    files = [f for f in package.rglob("*.py") if not f.is_relative_to(package / "jax_programs")]
    files = [f for f in files if "\n_publish(__name__" in f.read_text()]
    names = [".".join(f.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__") for f in files]
    assert len(names) > 70
    command = [sys.executable, "-c", FIRST, json.dumps(sorted(names))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


@pytest.mark.parametrize(
    ("use", "home"),
    [
        ("hloom.extend.core hloom.errors", "errors.InconclusiveDimensionOperation"),
        ("hloom.experimental.hijax hloom.ref", "ref.AbstractRef"),
        ("hloom hloom.sharding", "sharding.NamedSharding"),
    ],
)
def test_a_class_keeps_its_home(use: str, home: str) -> None:
    """Whichever of the namespaces that offer it is used first, or later."""
    space, _, name = home.rpartition(".")
    code = f"for m in {use.split()}: found = getattr(__import__(m, fromlist=['_']), {name!r}); print(found.__module__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.split()[-1] == f"hloom.{space}"


def test_the_page_of_names_is_what_is_there() -> None:
    """And each name that is missing has a reason."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, str(root / "tools" / "namespaces.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, f"run: python tools/namespaces.py --write\n{ran.stdout}{ran.stderr}"
    ran = subprocess.run([*command, "--unexplained"], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == []


def test_aliases_are_called_by_their_names() -> None:
    """As in JAX, where `numpy.absolute` is a function beside `numpy.abs`, and `nn.swish` is `nn.silu`."""
    own = [n for n in jnp.__all__ if callable(getattr(jnp, n)) and not isinstance(getattr(jnp, n), type)]
    wrong = {n: getattr(jnp, n).__name__ for n in own if getattr(getattr(jnp, n), "__name__", n) != n}
    assert not wrong, wrong
    assert [f.__name__ for f in (hloom.remat, hloom.checkpoint, hloom.jacobian)] == ["remat", "checkpoint", "jacobian"]
    for name in ("absolute", "amax", "remainder", "true_divide"):
        assert pickle.loads(pickle.dumps(getattr(jnp, name))) is getattr(jnp, name)
    assert jnp.amax(jnp.arange(3.0)) == hloom.jit(jnp.amax)(jnp.arange(3.0)) == 2
    assert hloom.nn.swish is hloom.nn.silu and hloom.nn.initializers.he_normal is hloom.nn.initializers.kaiming_normal
