from .autodiff.finite_differences import check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp
