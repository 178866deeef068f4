#!/usr/bin/env python3
"""Stores portable artifacts that jaxlib writes: python tests/support/record_artifacts.py"""

from __future__ import annotations

import base64
import json
import lzma
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.jaxlib_artifacts import artifact, mixed_artifact
from support.portable_programs import SHARDED, module

PATH = Path(__file__).resolve().parent.parent / "data" / "portable_artifacts.json.xz"
RECORDED = ("0.9.0", "0.10.0", "0.12.0", "0.14.0", "1.0.0", "1.16.0")
"""One for each version of MLIR's bytecode, the first stable one and the newest that jaxlib 0.10.2 writes."""

if __name__ == "__main__":
    artifacts = {version: artifact(module("0.9.0"), version) for version in RECORDED}
    artifacts["all"] = artifact(module(RECORDED[-1]), RECORDED[-1])
    artifacts["sharded"] = mixed_artifact(SHARDED, "1.15.0")
    encoded = {name: base64.b64encode(data).decode() for name, data in artifacts.items()}
    PATH.write_bytes(lzma.compress(json.dumps(encoded).encode(), preset=9))
    print(f"{len(artifacts)} artifacts in {PATH}, {PATH.stat().st_size:,} bytes")
