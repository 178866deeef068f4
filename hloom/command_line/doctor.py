"""`hloom doctor`: one page about this installation, for people and for reports of errors.

It says what there is (versions, processor, BLAS, threads, store, settings), what is degraded and why (`degraded`), and
whether small programs that are compiled here give the evaluator's results (`self_test.py`).
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from .outcome import BAD, FINE

Section = dict[str, Any]
PACKAGES = ("numpy", "ml_dtypes", "optree", "numba", "llvmlite", "scipy", "jax")
_KEY = "0" * 64
"""The name of the file that tests the store."""


def execute(options: Namespace) -> int:
    """Print the report; 1 if a program of the self-test failed."""
    report = examination()
    if not options.no_test:
        from .self_test import results

        report["self-test"] = [result._asdict() for result in results()]
    failed = [test for test in report.get("self-test", ()) if not test["passed"]]
    print(json.dumps(report, indent=1) if options.json else text_of(report))
    return BAD if failed else FINE


def examination() -> dict[str, Any]:
    """Sections of facts by name, and the list `degraded`. Nothing is compiled."""
    sections = {
        "versions": _versions(), "system": _system(), "processor": _processor(), "threads": _threads(), "BLAS": _blas(),
        "store": _store(), "settings": _settings(),
    }  # fmt: skip
    return {**sections, "degraded": [{"what": what, "why": why} for what, why in degraded(sections)]}


def _versions() -> Section:
    from importlib.metadata import PackageNotFoundError, version

    from .. import __file__ as file
    from .. import __version__

    found = {"hloom": __version__, "in": os.path.dirname(file), "python": sys.version.split(" (")[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _system() -> Section:
    from ..hlo.system import system

    return {"name": system.name, "is": system.description(), "resident memory": f"{system.resident_bytes() >> 20} MiB"}


def _processor() -> Section:
    from ..hlo.system import system
    from ..hlo.system.interface import architecture
    from ..numba_backend.machine import code_level, this_machine

    machine = this_machine()
    model = _model(system.cpu_description() or "")
    return {
        "model": model or "not told by the system", "architecture": architecture(),
        "delivered code": code_level() or "none for this processor",
        "vector registers": f"{machine.registers} of {machine.register_bytes} bytes",
        "caches": ", ".join(f"{_bytes(n)} ({'told' if str(k + 1) in system.cache_sizes() else 'assumed'})" for k, n in
                            enumerate((machine.first_cache, machine.second_cache, machine.third_cache))),
        "in the machine": os.cpu_count() or 1, "may run": system.scheduled_cpus(), "may use": system.available_cpus(),
    }  # fmt: skip


def _model(description: str) -> str:
    """The words that name the processor, without the list of what it can do."""
    lines = [line for line in description.splitlines() if not line.startswith(("flags", "Features", "isa"))]
    return ", ".join(lines)


def _threads() -> Section:
    from ..numba_backend.runtime.threads import get_num_threads

    return {"threads of programs": get_num_threads()}


def _blas() -> Section:
    from ..numba_backend.runtime import blas

    return {"is": blas.description() or "unknown", "threads can be set": all(blas.thread_setting())}


def _store() -> Section:
    """The folder, its size, and whether a file can be written and read back."""
    from ..numba_backend.runtime.store import TUNING, KernelStore, default_folder

    folder = default_folder()
    if folder is None:
        return {"folder": "none", "usable": False, "why": "HLOOM_CACHE_DIR is off, or the user has no home"}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store = KernelStore(folder)
        store.keep(_KEY, TUNING, b"doctor")
        usable = store.data(_KEY, TUNING) == b"doctor"
    why = "; ".join(str(warning.message) for warning in told)
    files = []
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            files = [entry.stat(follow_symlinks=False).st_size for entry in entries if entry.name[0] != "."]
        if usable:
            os.unlink(os.path.join(folder, f"{_KEY}{TUNING}"))
    if not usable and not why:
        why = "the files of the library cannot be told apart, as in a zip archive, or changed while this process ran"
    return {
        "folder": folder, "usable": usable, "files": max(len(files) - usable, 0), "size": _bytes(sum(files)),
        **({"why": why} if why else {}),
    }  # fmt: skip


def _settings() -> Section:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(("HLOOM_", "JAX_"))}


def degraded(sections: dict[str, Section]) -> Iterator[tuple[str, str]]:
    """The parts that are slower or smaller here than hloom can be, and the reasons."""
    from ..hlo.array_address import HAS_FIELDS
    from ..hlo.support.slots import HAS_SLOTS
    from ..hlo.system import system
    from ..hlo.system.interface import architecture
    from ..numba_backend.machine import code_level
    from ..numba_backend.runtime.loader import LINKS
    from ..numba_backend.runtime.memory import HUGE_PAGE

    here = f"{system.name} on {architecture()}"
    if (system.name, architecture()) != ("linux", "x86_64"):
        yield "hloom is not tested here", f"{here}: only Linux on x86-64 is"
    if not LINKS:
        yield "LLVM loads all code, and compiles the runtime's functions", f"the loader has no form of code for {here}"
    elif not code_level():
        yield "elementary functions are compiled when they are first used", "the package has none for this processor"
    if system.cpu_description() is None:
        yield "every process loads LLVM, to describe the processor", "the system does not tell its features"
    if not {"1", "2"} <= system.cache_sizes().keys():
        yield "kernels are made for caches of usual sizes", "the system does not tell those of this processor"
    address = system.fresh_huge_pages(2 * HUGE_PAGE, HUGE_PAGE)
    if address:
        system.free_pages(address, 2 * HUGE_PAGE)
    else:
        yield "large arrays have small pages", "the system has no huge pages, or no memory for some"
    processor, threads = sections["processor"], sections["threads"]["threads of programs"]
    if processor["may use"] < processor["may run"]:
        yield f"{threads} threads", f"the control group has {processor['may use']} of {processor['may run']} processors"
    elif processor["may run"] < processor["in the machine"]:
        yield f"{threads} threads", f"this process may run on {processor['may run']} processors"
    if threads < processor["may use"]:
        yield f"{threads} threads", "HLOOM_NUM_THREADS or HLOOM_MACHINE says so"
    if not HAS_SLOTS:
        yield "calls go through Python", "the objects of this Python lie in memory in another way, or it has no GIL"
    elif not HAS_FIELDS:
        yield "calls with NumPy arrays go through Python", "the arrays of this NumPy lie in memory in another way"
    if not sections["BLAS"]["threads can be set"]:
        yield "products of matrices use the BLAS with its own threads", "it is no OpenBLAS"
    if sections["versions"]["scipy"] == "not installed":
        yield "no routines of LAPACK, no products by a BLAS", "SciPy is not installed"
    if not sections["store"]["usable"]:
        yield "every process compiles its kernels", sections["store"]["why"]
    if os.environ.get("HLOOM_MACHINE"):
        yield "kernels are made for another machine", "HLOOM_MACHINE is set"


def text_of(report: dict[str, Any]) -> str:
    """The report as a page."""
    lines = []
    for name, section in report.items():
        if isinstance(section, dict):
            lines += [name, *(f"  {key:20} {value}" for key, value in section.items()), ""]
    lines.append("degraded" if report["degraded"] else "degraded: nothing")
    lines += [f"  {entry['what']}: {entry['why']}" for entry in report["degraded"]]
    if "self-test" in report:
        tests = report["self-test"]
        lines += ["", f"self-test, {sum(test['seconds'] for test in tests):.1f} s"]
        lines += [
            f"  {'ok' if test['passed'] else 'FAILED':7}{test['name']:20} {test['seconds']:5.2f} s  {test['detail']}"
            for test in tests
        ]
    return "\n".join(lines)


def _bytes(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.3g} GiB"
