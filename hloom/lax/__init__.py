"""`hloom.lax`: JAX's thin layer over HLO: a function for each operation, operands of one dtype, almost no broadcasting.

A family's file has the same name in every layer. Functions that promote dtypes or broadcast are in `hloom/numpy`.
"""

from .. import array_functions as _array_functions
from ..tracer.control_flow import cond, switch, while_loop
from ..tracer.scan import fori_loop, map, scan
from . import dot as _dot
from . import elementwise, indexing, movement, special, structure
from . import reduce as _reduce
from .dot import *
from .elementwise import *
from .indexing import *
from .movement import *
from .reduce import *
from .special import *
from .structure import *

__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]
__all__ += _dot.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += movement.__all__
__all__ += _reduce.__all__
__all__ += special.__all__
__all__ += structure.__all__

_array_functions.load_when_used()
del elementwise, indexing, movement, special, structure
