"""Documentation of the public functions: everything has a text with an example, and examples print their shown output.

`NAMESPACES` lists the namespaces, and the classes whose methods users call. In the default suite each public callable
of them is asked for an example, and the examples run, one item for each namespace; a text in several
namespaces runs once. They run on the evaluator, which compiles nothing: all of them take some ten seconds, where their
kernels would take minutes. Kernels are compared with the evaluator by other tests.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import hloom
from hloom.namespaces import stub_names

NAMESPACES = [
    "hloom", "hloom:Array", "hloom.tracer.arrays.array:Array",
    "hloom.ad_checkpoint", "hloom.custom_batching", "hloom.custom_derivatives", "hloom.dlpack", "hloom.dtypes",
    "hloom.flatten_util", "hloom.ops", "hloom.test_util", "hloom.tree", "hloom.tree_util",
    "hloom.numpy", "hloom.numpy.fft", "hloom.numpy.linalg", "hloom.numpy:ufunc", "hloom.numpy.indexing:IndexUpdate",
    "hloom.lax", "hloom.lax.linalg", "hloom.nn", "hloom.nn.initializers", "hloom.random", "hloom.image",
    "hloom.scipy.cluster.vq", "hloom.scipy.fft", "hloom.scipy.integrate", "hloom.scipy.interpolate",
    "hloom.scipy.linalg",
    "hloom.scipy.ndimage", "hloom.scipy.optimize", "hloom.scipy.signal", "hloom.scipy.sparse.linalg",
    "hloom.scipy.spatial.transform", "hloom.scipy.special", "hloom.scipy.stats",
    "hloom.experimental", "hloom.experimental.checkify", "hloom.experimental.jet", "hloom.experimental.sparse.linalg",
    "hloom.experimental.layout",
    "hloom.experimental.ode", "hloom.experimental.pjit", "hloom.experimental.sparse",
    "hloom.example_libraries.optimizers", "hloom.example_libraries.stax",
    "hloom.debug", "hloom.profiler", "hloom.ref", "hloom.sharding", "hloom.stages",
    "hloom:Lowered", "hloom:Compiled", "hloom.stages:Traced", "hloom:custom_jvp", "hloom:custom_vjp",
    "hloom.custom_batching:custom_vmap", "hloom.monitoring", "hloom.memory", "hloom.distributed", "hloom.aot",
    "hloom.core", "hloom.extend", "hloom.extend.core", "hloom.extend.linear_util", "hloom.api_util",
    "hloom.interpreters.ad", "hloom.interpreters.batching", "hloom.hlo", "hloom.experimental.rnn",
    "hloom.extend.mlir.dialects.chlo", "hloom.extend.mlir.dialects.stablehlo",
    "hloom.scipy.spatial.transform:Rotation", "hloom.scipy.spatial.transform:Slerp", "hloom.scipy.stats:gaussian_kde",
    *[f"hloom.scipy.stats.{name}" for name, (home, _) in stub_names(hloom.scipy.stats).items() if home == "."],
]  # fmt: skip

ON_THE_CPU = {"hloom:Compiled", "hloom.hlo"}
"""Their examples show kernels and passes; the others run on the evaluator."""

WITHOUT: dict[str, str] = {
    "hloom.hlo": """
        Communication ComparisonDirection ComparisonType Computation ComputationBuilder ComputationDataHandle
        ConvolutionDimensionNumbers CpuTarget ElementType FusionKind GlobalData HloComputation HloInstruction HloModule
        InputOutputAlias Layout Link Literal MemorySpace Metadata Opcode Padding PaddingConfig PaddingConfigDimension
        PaddingValue Partitioned Prediction RandomAlgorithm Scaling Shape Target Tile TpuTarget
    """,
    "hloom.scipy.spatial.transform:Rotation": "count index",
    "hloom.scipy.spatial.transform:Slerp": "count index",
    "hloom.scipy.stats:gaussian_kde": "integrate_box set_bandwidth tree_flatten tree_unflatten",
    "hloom.tracer.arrays.array:Array": """
        from_buffer from_shards given_up moved with_aval
    """,
}
"""Names without an example yet: remove a name when it gets an example."""


def _public(namespace: str) -> Iterator[tuple[str, Any]]:
    """The names of a namespace, or of a class, that can be called and are the library's own."""
    space = pkgutil.resolve_name(namespace)
    if isinstance(space, type):
        for name in dir(space):
            found = inspect.getattr_static(space, name)
            if not name.startswith("_") and (callable(found) or isinstance(found, property | classmethod)):
                yield name, found
        return
    names = getattr(space, "__all__", None) or [n for n in vars(space) if not n.startswith("_")]
    for name in names:
        found = getattr(space, name)
        if callable(found) and not _is_foreign(found) and not _is_error(found):
            yield name, found


def _is_foreign(found: Any) -> bool:
    """Another library's object, which has the text that it has there."""
    home = getattr(found, "__module__", None) or type(found).__module__
    return home.partition(".")[0] != hloom.__name__


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)


def _text(found: Any) -> str:
    text = getattr(found, "__doc__", None)
    return text if isinstance(text, str) else ""


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_everything_has_an_example(namespace: str) -> None:
    without = {name for name, found in _public(namespace) if ">>>" not in _text(found)}
    known = set(WITHOUT.get(namespace, "").split())
    assert not without - known, f"no example: {sorted(without - known)}"
    assert not known - without, f"remove these from WITHOUT: {sorted(known - without)}"


@functools.cache
def _examples() -> dict[str, list[tuple[str, str]]]:
    """The names and texts to run in each namespace."""
    seen: set[str] = set()
    found: dict[str, list[tuple[str, str]]] = {}
    for namespace in NAMESPACES:
        found[namespace] = []
        for name, what in _public(namespace):
            text = _text(what)
            if ">>>" in text and text not in seen:
                seen.add(text)
                found[namespace].append((name, text))
    return found


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_examples_print_what_they_show(namespace: str) -> None:
    before = hloom.config.read("hloom_backend")
    if namespace not in ON_THE_CPU:
        hloom.config.update("hloom_backend", "evaluator")
    try:
        failures = _failures(namespace)
    finally:
        hloom.config.update("hloom_backend", before)
    assert not failures, "\n".join(failures)


def _failures(namespace: str) -> list[str]:
    failures: list[str] = []
    for name, text in _examples()[namespace]:
        test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), {}, f"{namespace}.{name}", None, 0)
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runner.run(test, out=failures.append)
    return failures


def test_an_example_that_prints_something_else_fails() -> None:
    """The runner's own test."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed == 1 and "Got:" in "".join(said)
