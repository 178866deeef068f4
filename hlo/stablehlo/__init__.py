"""The meaning of StableHLO: an MLIR tree (`hlo/mlir/tree.py`) of its ops and an HloModule, in both directions.

    ops.py             which op is which opcode, and which attributes are which fields: the table of both directions
    attributes.py      the forms of attributes
    types.py           types and shapes
    to_hlo.py          a tree as HLO; regions.py: bodies of ops; reading_*.py: ops that HLO has in another form
    refine.py          sizes that are written `?` and follow from constants
    from_hlo.py        HLO as a tree; writing_*.py: opcodes that StableHLO has in another form
    forms.py           how each op is written as text; directives.py, records.py: its parts with a syntax of their own
    vhlo.py            portable bytecode as a tree, and a tree as portable bytecode; vhlo_*.py: its tables

Source: https://openxla.org/stablehlo/spec, and the definitions of its dialects (StablehloOps.td, ChloOps.td).
"""
