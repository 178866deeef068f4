from ..autodiff.checkify import (
    all_checks as all_checks, automatic_checks as automatic_checks, check as check, check_error as check_error,
    checkify as checkify, debug_check as debug_check, div_checks as div_checks, Error as Error,
    ErrorCategory as ErrorCategory, float_checks as float_checks, index_checks as index_checks,
    init_error as init_error, nan_checks as nan_checks, user_checks as user_checks,
)
from ..autodiff.checks import JaxRuntimeError as JaxRuntimeError
