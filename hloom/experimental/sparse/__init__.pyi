from . import linalg as linalg
from .arrays import (
    BCOO as BCOO, BCSR as BCSR, CuSparseEfficiencyWarning as CuSparseEfficiencyWarning, JAXSparse as JAXSparse,
    SparseEfficiencyError as SparseEfficiencyError, SparseEfficiencyWarning as SparseEfficiencyWarning,
)
from .convolution import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from .layout import (
    bcoo_extract as bcoo_extract, bcoo_fromdense as bcoo_fromdense, bcoo_sort_indices as bcoo_sort_indices,
    bcoo_sum_duplicates as bcoo_sum_duplicates, bcoo_todense as bcoo_todense,
    bcoo_update_layout as bcoo_update_layout, bcsr_extract as bcsr_extract, bcsr_fromdense as bcsr_fromdense,
    bcsr_sum_duplicates as bcsr_sum_duplicates, bcsr_todense as bcsr_todense,
)
from .matrices import (
    COO as COO, coo_fromdense as coo_fromdense, coo_matmat as coo_matmat, coo_matvec as coo_matvec,
    coo_todense as coo_todense, CSC as CSC, CSR as CSR, csr_fromdense as csr_fromdense, csr_matmat as csr_matmat,
    csr_matvec as csr_matvec, csr_todense as csr_todense,
)
from .operators import (
    bcoo_broadcast_in_dim as bcoo_broadcast_in_dim, bcoo_concatenate as bcoo_concatenate,
    bcoo_dot_general as bcoo_dot_general, bcoo_dot_general_sampled as bcoo_dot_general_sampled,
    bcoo_dynamic_slice as bcoo_dynamic_slice, bcoo_multiply_dense as bcoo_multiply_dense,
    bcoo_multiply_sparse as bcoo_multiply_sparse, bcoo_reduce_sum as bcoo_reduce_sum, bcoo_reshape as bcoo_reshape,
    bcoo_rev as bcoo_rev, bcoo_slice as bcoo_slice, bcoo_squeeze as bcoo_squeeze, bcoo_transpose as bcoo_transpose,
    bcsr_broadcast_in_dim as bcsr_broadcast_in_dim, bcsr_concatenate as bcsr_concatenate,
    bcsr_dot_general as bcsr_dot_general, empty as empty, eye as eye, todense as todense,
)
from .random_arrays import random_bcoo as random_bcoo
from .transform import (
    grad as grad, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, sparsify as sparsify,
    value_and_grad as value_and_grad,
)
