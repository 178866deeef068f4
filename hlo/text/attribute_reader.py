"""How attributes are read: a form for each attribute class, with its keys. `attribute_writer.py` writes them.

Source: the attribute tables in XLA's HloParserImpl::CreateInstruction.
"""

from __future__ import annotations

from ..ir import Attributes
from . import attribute_forms_arrays, attribute_forms_structure
from .attribute_form import Form

FORMS: dict[type[Attributes], Form] = {**attribute_forms_arrays.FORMS, **attribute_forms_structure.FORMS}
