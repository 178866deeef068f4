from ..hlo.support.source import add_internal_file as _add_internal_file

register_exclusion = _add_internal_file
