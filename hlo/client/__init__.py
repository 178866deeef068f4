"""The client interface: programs built operation by operation (ComputationBuilder) and run on values (LocalClient).

Source: the seeds' "Getting started", "C++ interface" and "Operation Semantics". A computation that a builder makes is
HLO as any other; nothing below knows of this package.
"""

from __future__ import annotations

from .builder import ComputationBuilder
from .data import GlobalData
from .handle import BuildError, Computation, ComputationDataHandle
from .local_client import LocalClient
from .padding import Padding, PaddingConfig, PaddingConfigDimension, make_padding

__all__ = [
    "BuildError",
    "Computation",
    "ComputationBuilder",
    "ComputationDataHandle",
    "GlobalData",
    "LocalClient",
    "Padding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "make_padding",
]
