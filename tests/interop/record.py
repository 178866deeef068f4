#!/usr/bin/env python3
"""Record what JAX lowers the cases of `functions_*.py` to, and what XLA's CPU backend makes of it: needs JAX 0.10.

    python tests/interop/record.py            # writes tests/data/interop.tar.xz, in about three minutes
    python tests/interop/record.py --only eigh  # records some cases anew
    python tests/interop/record.py --missing  # lists public functions that no case calls

Arguments are drawn by the case's name, and the archive has no dates: the same versions on the same CPU give the same
file.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import numpy as np
from jaxlib import _hlo
from tqdm import tqdm

from interop import (
    functions_control,
    functions_lax,
    functions_linalg,
    functions_nn,
    functions_numpy,
    functions_random,
    functions_scipy,
    functions_shapes,
    functions_transformed,
)
from interop.archive import PATH, Recorded, read, write
from interop.cases import CASES, Array, Case

TABLES = (
    functions_numpy, functions_shapes, functions_linalg, functions_lax, functions_control, functions_nn,
    functions_random, functions_scipy, functions_transformed,
)  # fmt: skip

OPTIMIZED = 8
"""Of every so many cases one is recorded after XLA's own passes as well."""
LARGEST = 250_000
"""Characters of a module; longer ones would fill the archive."""


def resolve(name: str) -> Any:
    """What `jax.<name>` is; imports the modules on the way. AttributeError if there is no such thing."""
    found: Any = jax
    path = "jax"
    for part in name.split("."):
        path += f".{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


def as_array(leaf: Any) -> Array:
    """A result as NumPy; a key as its data."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def print_options() -> Any:
    """Everything that is needed to run the module; no paths of this machine."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    return options


def record(case: Case, optimized: bool) -> Recorded:
    """Lower the case, and run it."""
    arguments = case.draw()
    function = resolve(case.name)
    if case.options:
        function = functools.partial(function, **case.options)
    with jax.enable_x64(case.is_wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = jax.jit(functools.partial(case.call, function), keep_unused=True).lower(*arguments)
        text = lowered.compiler_ir("hlo").as_hlo_module().to_string(print_options())
        compiled = lowered.compile()
        outputs = [as_array(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]
        after = compiled.runtime_executable().hlo_modules()[0].to_string(print_options()) if optimized else None
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    if not case.is_wide:  # the types that JAX gives Python numbers and NumPy's wide arrays
        inputs = [a.astype(jax.dtypes.canonicalize_dtype(a.dtype)) for a in inputs]
    return Recorded(case.id, case.name, text, after, inputs, outputs)


MODULES = [
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "random",
    "scipy.special",
    "scipy.linalg",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.fft",
    "scipy.integrate",
    "scipy.cluster.vq",
    "scipy.stats",
    "ops",
    "image",
]


def missing() -> list[str]:
    """Public functions of JAX that no case calls."""
    called = {case.name for case in CASES.values()}
    known = {id(resolve(name)) for name in called}
    names = []
    for within in MODULES:
        module = importlib.import_module(f"jax.{within}")
        for name in dir(module):
            value = getattr(module, name)
            is_function = callable(value) and not isinstance(value, type | types.ModuleType)
            if not name.startswith("_") and is_function and id(value) not in known:
                names.append(f"{within}.{name}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="list the functions that no case calls")
    parser.add_argument("--only", default="", help="cases whose name contains this; the others stay as they are")
    options = parser.parse_args()
    if options.missing:
        sys.exit("\n".join(missing()))
    recorded, failed = [], []
    chosen = [case for case in CASES.values() if options.only in case.id]
    for number, case in enumerate(tqdm(chosen)):
        try:
            one = record(case, optimized=number % OPTIMIZED == 0)
        except Exception as error:
            failed.append(f"{case.id}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
            continue
        if len(one.text) > LARGEST:
            failed.append(f"{case.id}: its module has {len(one.text):,} characters")
        else:
            recorded.append(one)
    print(f"{len(recorded)} cases of {len({one.function for one in recorded})} functions")
    if failed:
        sys.exit("\n".join(failed))
    if options.only:
        recorded = list((read() | {one.id: one for one in recorded}).values())
    write(recorded)
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
