#!/usr/bin/env python3
"""Record the StableHLO that JAX lowers some of the cases of `functions_*.py` to: needs JAX 0.10.

    python tests/interop/record_stablehlo.py   # writes tests/data/stablehlo/jax_programs.tar.xz, in a minute

Inputs and results of the same cases are in the archive that `record.py` writes.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
from tqdm import tqdm

from interop import archive
from interop.cases import CASES, Case
from interop.record import resolve
from interop.stablehlo_archive import PATH, write

ONE_IN = 8
LARGEST = 20_000
"""Characters of a program."""


def lowered(case: Case) -> str:
    """The program as JAX prints it, without the user's lines."""
    function = resolve(case.name)
    if case.options:
        function = functools.partial(function, **case.options)
    with jax.enable_x64(case.is_wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text: str = jax.jit(functools.partial(case.call, function), keep_unused=True).lower(*case.draw()).as_text()
    return text


def main() -> None:
    texts = {name: lowered(CASES[name]) for name in tqdm(list(archive.read())[::ONE_IN])}
    write({name: text for name, text in texts.items() if len(text) <= LARGEST})
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
