from ..api_util.wrapped_functions import (
    merge_linear_aux as merge_linear_aux, StoreException as StoreException, transformation as transformation,
    transformation2 as transformation2, transformation_with_aux as transformation_with_aux,
    transformation_with_aux2 as transformation_with_aux2, wrap_init as wrap_init, WrappedFun as WrappedFun,
)
