"""Programs of others, as their authors wrote them: NPBench and pyhpc-benchmarks, from a clone on this machine.

    HLOOM_NPBENCH  a clone of https://github.com/spcl/npbench (BSD 3-Clause): groups `npbench-S`, `-M`, `-L`
    HLOOM_PYHPC    a clone of https://github.com/dionhaefner/pyhpc-benchmarks (Unlicense): group `pyhpc`

hloom runs the JAX version, through `hloom.as_jax`. NPBench's NumPy, Numba, Pythran and DaCe versions write into their
arguments, so these get fresh ones before each call, which is not timed. Of several Numba versions the quickest counts,
as in NPBench. Without a clone the groups are empty.

Pythran, DaCe and Numba compile longer than the programs run. Their code is kept in `HLOOM_BUILT` (if it is not set, in
`~/.cache/hloom-benchmarks`), and `python -m benchmarks --prepare` compiles it without a measurement.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .harness import Case, Program, arrays
from .translated import PYTHRAN_BLAS

PRESETS = ("S", "M", "L")
PYHPC = ("equation_of_state", "isoneutral_mixing", "turbulent_kinetic_energy")
PYHPC_SIZES = tuple(4**k for k in range(6, 12))
BACKENDS = {"hloom": "jax", "jax": "jax", "numpy": "numpy", "numba": "numba", "torch": "pytorch"}
NUMBA_VERSIONS = ("numba_np", "numba_npr", "numba_n", "numba_op", "numba_opr", "numba_o")
PYTHRAN_FLAGS = ("-DUSE_XSIMD", "-fopenmp", "-march=native", "-ffast-math")
"""NPBench's own."""
BUILT = Path(os.environ.get("HLOOM_BUILT") or Path.home() / ".cache" / "hloom-benchmarks")
"""Holds the code that Pythran, DaCe and Numba have compiled on this machine."""


class Data:
    """The arguments of a program of NPBench, and what it changes."""

    def __init__(self, info: Mapping[str, Any], sources: Path, preset: str) -> None:
        self.info, self.folder = info, sources / info["relative_path"]
        self.values: dict[str, Any] = dict(info["parameters"][preset])
        if init := info.get("init"):
            made = getattr(self.load(""), init["func_name"])(*(self.values[name] for name in init["input_args"]))
            names = init["output_args"]
            self.values |= dict(zip(names, made if len(names) > 1 else [made], strict=True))

    def load(self, postfix: str) -> ModuleType:
        """A module of the program. Raises FileNotFoundError."""
        return _load(self.folder / f"{self.info['module_name']}{postfix}.py")

    def function(self, postfix: str) -> Callable[..., Any]:
        return getattr(self.load(postfix), self.info["func_name"])  # type: ignore[no-any-return]

    def own(self, of: Callable[[Any], Any] = copy.deepcopy) -> dict[str, Any]:
        """The arguments by name, the arrays made by `of`."""
        named = self.info["array_args"]
        return {name: of(v) if name in named else v for name, v in self.values.items()}


def _load(file: Path, name: str = "", search: list[str] | None = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name or file.stem, file, submodule_search_locations=search)
    if spec is None or spec.loader is None or not file.exists():
        raise FileNotFoundError(f"{file.name}: no such version")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _jax(package: str) -> Any:
    """The module that `import jax` gives from now on in this process."""
    jax = importlib.import_module("hloom").as_jax() if package == "hloom" else importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


def _traced(data: Data, package: str) -> Program:
    jax = _jax(package)
    function = data.function("_jax")
    own = data.own(importlib.import_module("jax.numpy").array)
    given = [own[name] for name in data.info["input_args"]]
    return Program(lambda: function(*given), jax.block_until_ready)


def _bits(value: Any) -> list[bytes]:
    return [hashlib.blake2b(np.ascontiguousarray(array).data).digest() for array in arrays(value)]


def _in_place(data: Data, function: Callable[..., Any]) -> Program:
    """A version that may write into its arguments, also those that the description does not name. If it does, it gets
    new ones for each call, and what it has written are results, too."""
    order = data.info["input_args"]
    own: dict[str, Any] = {}
    changes = [True]

    def prepare() -> None:
        if changes[0]:
            own.update(data.own())

    def run() -> Any:
        return function(*(own[name] for name in order))

    def check() -> Any:
        own.update(data.own())
        returned = run()
        names = data.info["array_args"]
        written = [own[name] for name in names if _bits(own[name]) != _bits(data.values[name])]
        changes[0] = bool(written)
        return [*([] if returned is None else arrays(returned)), *written]

    return Program(run, check=check, prepare=prepare)


def _numba(data: Data) -> Program:
    """The quickest of the Numba versions that run. Raises what the last one raises if none does."""
    numba = importlib.import_module("numba")
    os.environ["NUMBA_CACHE_DIR"] = str(BUILT / "numba")
    numba.config.reload_config()
    decorators = importlib.import_module("numba.core.decorators")
    for name in ("jit", "njit"):  # the versions ask for no cache
        setattr(numba, name, functools.partial(getattr(decorators, name), cache=True))
    found: list[tuple[float, Program]] = []
    failure: Exception = FileNotFoundError("no Numba version")
    for version in NUMBA_VERSIONS:
        try:
            program = _in_place(data, data.function("_" + version))
            (program.check or program.run)()  # compiles
            assert program.prepare is not None
            program.prepare()
            began = time.perf_counter()
            program.run()
            found.append((time.perf_counter() - began, program))
        except Exception as error:
            failure = failure if isinstance(error, FileNotFoundError) else error
    if not found:
        raise failure
    return min(found, key=lambda pair: pair[0])[1]


def _built(peer: str, source: Path, compiler: Callable[[Path], Any]) -> Path:
    """The folder into which `compiler(folder)` has compiled this source, now or in an earlier process. Raises what
    `compiler` raises."""
    kept = [importlib.import_module(peer).__version__, sys.version, *PYTHRAN_FLAGS, *PYTHRAN_BLAS, source.read_text()]
    folder = BUILT / peer / f"{source.stem}-{hashlib.sha256(repr(kept).encode()).hexdigest()[:16]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:  # no half of it is ever found
            (new := Path(made) / "new").mkdir()
            compiler(new)
            new.rename(folder)
    return folder


def _pythran(data: Data) -> Program:
    pythran = importlib.import_module("pythran")
    source = data.folder / f"{data.info['module_name']}_pythran.py"

    def compile_into(folder: Path) -> None:
        pythran.compile_pythranfile(
            str(source), config=PYTHRAN_BLAS, output_file=str(folder / f"{source.stem}.so"),
            extra_compile_args=list(PYTHRAN_FLAGS), extra_link_args=["-fopenmp"],
        )  # fmt: skip

    library = _built("pythran", source, compile_into) / f"{source.stem}.so"
    return _in_place(data, getattr(_load(library, source.stem), data.info["func_name"]))


def _dace(data: Data) -> Program:
    """DaCe's program after `auto_optimize` for the CPU."""
    dace = importlib.import_module("dace")
    source = data.folder / f"{data.info['module_name']}_dace.py"
    (BUILT / "dace").mkdir(parents=True, exist_ok=True)
    os.chdir(BUILT / "dace")  # DaCe writes graphs where it runs

    def compile_into(folder: Path) -> None:
        optimize = importlib.import_module("dace.transformation.auto.auto_optimize").auto_optimize
        graph = data.function("_dace").to_sdfg(simplify=True)  # type: ignore[attr-defined]
        optimize(graph, dace.dtypes.DeviceType.CPU)
        graph.build_folder = str(folder)
        graph.compile(return_program_handle=False)

    folder = _built("dace", source, compile_into)
    compiled = importlib.import_module("dace.sdfg.utils").load_precompiled_sdfg(str(folder))
    known = {str(name) for name in compiled.sdfg.free_symbols} | {*compiled.sdfg.arglist()}
    order = data.info["input_args"]
    symbols = {name: data.values[name] for name in known - {*order} if name in data.values}
    return _in_place(data, lambda *a: compiled(**{n: v for n, v in zip(order, a) if n in known}, **symbols))


def _npbench_case(file: Path, sources: Path, preset: str) -> Case:
    info = json.loads(file.read_text())["benchmark"]
    builders = {"numba": _numba, "pythran": _pythran, "dace": _dace}
    lazily = functools.cache(lambda: Data(info, sources, preset))  # in the peer's process only
    programs: dict[str, Callable[[], Program]] = {
        package: functools.partial(lambda package: _traced(lazily(), package), package) for package in ("hloom", "jax")
    }
    programs["numpy"] = lambda: _in_place(lazily(), lazily().function("_numpy"))
    for peer, builder in builders.items():
        programs[peer] = functools.partial(lambda builder: builder(lazily()), builder)
    return Case(f"npbench-{preset}-{file.stem}", f"{info['name']}, {preset}", programs, others=_others(programs))


def _pyhpc_case(clone: Path, program: str, size: int) -> Case:
    def build(peer: str) -> Program:
        jax = _jax(peer) if peer in ("hloom", "jax") else None
        folder = clone / "benchmarks" / program
        module = _load(folder / "__init__.py", f"pyhpc_{program}", [str(folder)])
        if jax is None:
            importlib.import_module(peer)
        importlib.import_module(f".{next(folder.glob(f'*_{BACKENDS[peer]}.py')).stem}", module.__name__)
        run = module.get_callable(BACKENDS[peer], size)
        return Program(run, jax.block_until_ready if jax else lambda result: result)

    programs = {peer: functools.partial(build, peer) for peer in BACKENDS}
    title = f"{program.replace('_', ' ')}, {size:,} elements"
    return Case(f"pyhpc-{program}-{size}", title, programs, others=_others(programs))


def _others(programs: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(programs) - {"hloom", "jax"}


def _groups() -> dict[str, dict[str, Callable[[], Case]]]:
    found: dict[str, dict[str, Callable[[], Case]]] = {f"npbench-{preset}": {} for preset in PRESETS} | {"pyhpc": {}}
    if clone := os.environ.get("HLOOM_NPBENCH"):
        sources = Path(clone) / "npbench" / "benchmarks"
        for file in sorted(Path(clone).glob("bench_info/*.json")):
            info = json.loads(file.read_text())["benchmark"]
            if not (sources / info["relative_path"] / f"{info['module_name']}_jax.py").exists():
                continue  # nobody has written it for JAX
            for preset in PRESETS:
                make = functools.partial(_npbench_case, file, sources, preset)
                found[f"npbench-{preset}"][f"npbench-{preset}-{file.stem}"] = make
    if clone := os.environ.get("HLOOM_PYHPC"):
        for program in PYHPC:
            for size in PYHPC_SIZES:
                found["pyhpc"][f"pyhpc-{program}-{size}"] = functools.partial(_pyhpc_case, Path(clone), program, size)
    return found


GROUPS = _groups()
