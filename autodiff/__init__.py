"""Transformations of traced programs: jvp by a trace, reverse mode by linearisation and transposition, vmap by a trace.

    tangents        zero tangents, operands in which an op is linear
    jvp             JVPTrace: a tangent beside each value
    linearize       LinearizeTrace: tangents recorded as a linear HLO program
    residuals       the values that a loop keeps for the loop backwards
    transpose       that program backwards
    rules/          the tables of rules, and each op's jvp and transpose
    remat           checkpoint
    policies        which values a checkpoint keeps
    operations      HLO instructions as policies see them, under JAX's names
    saved           print_saved_residuals
    custom          custom_jvp, custom_vjp
    symbolic_zeros  zeros without arrays, for their rules
    functions       linear_transpose, closure_convert, custom_gradient, fwd_and_bwd
    solves          custom_root, custom_linear_solve
    grad_checks     requirements of grad and its relatives for arguments and results
    finite_differences  check_grads and its parts: derivatives beside differences
    api             grad, value_and_grad, jvp, vjp, linearize
    batches         values that become batches
    batching        BatchTrace: a batch in place of each value
    custom_batching custom_vmap, sequential_vmap
    vmap            vmap
    jacobian        jacfwd, jacrev, hessian

The modules here import `tracer` and know nothing of backends. This file imports none of them: the library of functions
needs `tangents` alone, and the transformations are loaded when the first of them is used.
"""

if "." not in __name__:  # Python would load a second copy of each module, next to the one in `hloom`
    raise ImportError("autodiff is a part of hloom: import hloom.autodiff")
