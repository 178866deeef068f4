"""`hloom.extend.source_info_util`: which files are not the user's, with the name of jax.extend.source_info_util."""

from ..hlo.source import add_internal_file as register_exclusion
from ..namespaces import publish as _publish

__all__ = ["register_exclusion"]

_publish(__name__)
