"""MLIR as a form of exchange: operations with regions, types and attributes, as text and as bytecode.

`tree.py` has the structure that both forms have in common. Nothing here knows a dialect's semantics: `stablehlo/` says
which operations there are, how each is written, and its meaning in HLO. Source: MLIR's language reference and its
bytecode format (mlir.llvm.org/docs/LangRef, .../BytecodeFormat).
"""
