from .direct import spsolve as spsolve
from .lobpcg import lobpcg_standard as lobpcg_standard
