"""Importing this module imports `hloom.lax` and the layers below by `hlo/support/loading.py`. `hloom.numpy` does."""

from __future__ import annotations

from ..hlo.support.loading import load

load("..lax", __package__, stays=True)
