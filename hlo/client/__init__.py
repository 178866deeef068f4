"""The client interface: programs built operation by operation (ComputationBuilder) and run on values (LocalClient).

Source: the pages "Getting started", "C++ interface" and "Operation Semantics" of the seeds, the four pages of XLA's
first documentation (2017). A computation that a builder makes is ordinary HLO; no lower layer knows this package.
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
