"""A backend for an accelerator that does not exist, simulated: scenario 3 of docs/new_backend.md.

    isa.py        what the machine can do: eight commands, and what each costs
    device.py     the machine: memory, a queue, a clock; a StreamExecutor
    assembler.py  commands for simple tasks: copy an array, compute elementwise, multiply matrices
    lowering*.py  from HLO ops to such tasks
    expansions.py ops that become simpler ops first
    compiler.py   the passes and the executable
"""
