"""Standalone programs: as object code for any target of LLVM, and as C. No file here runs a program."""
