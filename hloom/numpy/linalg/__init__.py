"""`hloom.numpy.linalg`: linear algebra with matrices in the last two dimensions."""

from ...namespaces import publish as _publish
from ..tensor_contractions import vecdot
from ..array_manipulation import matrix_transpose
from . import decompositions, determinants, diagonals, norms, products, solving
from .decompositions import (
    cholesky as cholesky,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    qr as qr,
    svd as svd,
    svdvals as svdvals,
)
from .determinants import (
    det as det,
    matrix_rank as matrix_rank,
    slogdet as slogdet,
)
from .diagonals import (
    diagonal as diagonal,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
)
from .norms import (
    cond as cond,
    matrix_norm as matrix_norm,
    norm as norm,
    vector_norm as vector_norm,
)
from .products import (
    cross as cross,
    matrix_power as matrix_power,
    multi_dot as multi_dot,
)
from .solving import (
    inv as inv,
    lstsq as lstsq,
    pinv as pinv,
    solve as solve,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)

__all__ = ["matrix_transpose", "vecdot"]
__all__ += decompositions.__all__
__all__ += determinants.__all__
__all__ += diagonals.__all__
__all__ += norms.__all__
__all__ += products.__all__
__all__ += solving.__all__

del decompositions, determinants, diagonals, norms, products, solving

_publish(__name__)
