from .tracer.references.refs import (
    AbstractRef as AbstractRef, addupdate as addupdate, empty_ref as empty_ref, free_ref as free_ref,
    freeze as freeze, get as get, new_ref as new_ref, Ref as Ref, set as set, swap as swap,
)
