"""MLIR as a form of exchange: operations with regions, types and attributes, as text and as bytecode.

`tree.py` has the structure that text and bytecode have in common. Nothing here knows a dialect's semantics:
`stablehlo/` says which operations there are, how each is written, and its meaning in HLO. Source: MLIR's language
reference and its bytecode format (mlir.llvm.org/docs/LangRef, .../BytecodeFormat).

    tree.py             operations, types, attributes
    scanner.py          text as tokens; type_reader.py, attribute_reader.py, location_reader.py, operation_reader.py:
                        classes that read them, each derived from the one before
    operation_writer.py operations as text, with attribute_writer.py and naming.py
    assembly_format.py  how an operation is written, as data that reader and writer interpret; assembly_attributes.py,
                        assembly_types.py and functions.py: its elements
    dense.py            literals, with the numbers of elements.py
    bytecode*.py        MLIR's bytecode
"""
