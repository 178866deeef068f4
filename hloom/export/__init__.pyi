from ..hlo.symbolic.scope import SymbolicScope as SymbolicScope
from ..tracer.symbolic.shapes import (
    is_symbolic_dim as is_symbolic_dim, symbolic_args_specs as symbolic_args_specs,
    symbolic_dim_bounds as symbolic_dim_bounds, symbolic_shape as symbolic_shape,
)
from .checks import DisabledSafetyCheck as DisabledSafetyCheck
from .exported import (
    Exported as Exported,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from .exporting import export as export
from .platforms import default_export_platform as default_export_platform
from .reading import deserialize as deserialize
from .trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)
