"""`hloom.lax`: JAX's thin layer over HLO: a function for each operation, operands of one dtype, almost no broadcasting.

A family's file has the same name in every layer. Functions that promote dtypes or broadcast are in `hloom/numpy`.
"""

from ..autodiff import stopping as _stopping  # noqa: F401  # references are constants by it
from ..autodiff.rules import families as _families  # noqa: F401  # says where the rules are
from ..namespaces import publish as _publish
from . import collective_hlo as _collective_hlo  # noqa: F401  # registers rules
from . import parallel as _parallel  # noqa: F401  # registers rules
from . import sharding_rules as _sharding_rules  # noqa: F401  # registers rules

_publish(__name__, examples=("from hloom import lax, numpy as jnp",))
