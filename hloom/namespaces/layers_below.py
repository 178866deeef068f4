"""Importing this module imports `hloom.lax`, and the layers below, by `hlo/loading.py`: `hloom.numpy` begins so."""

from __future__ import annotations

from ..hlo.loading import load

load("..lax", __package__)
