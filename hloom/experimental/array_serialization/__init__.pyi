from . import serialization as serialization, tensorstore_impl as tensorstore_impl
