"""The programs in `tools/` as modules: what a test calls without a process of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def tool_module(root: Path, name: str) -> ModuleType:
    """A new module of `tools/NAME.py` in the checkout at `root`."""
    specification = importlib.util.spec_from_file_location(f"{name}_tool", root / "tools" / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module
