from .conjugate import bicgstab as bicgstab, cg as cg
from .minimal_residual import gmres as gmres
