"""The fuzzer: programs drawn at random, compared in every way that there is to run them.

    make fuzz ARGS="--minutes 10 --seed 0 --kind text,hlo,array,loop"     or     python -m tools.fuzz --minutes 10

Each kind of case is a file (`text_cases`, `module_cases`, `array_cases`, and for loops `loop_cases` and `array_loops`)
with a generator, a check, and a way to make a case smaller. `worker` runs cases in a child process, so that a crash or
a hang is a result like others; `agreement` says when two results differ by more than rounding explains; `minimise`
makes a finding small; `command` is the loop.
The generators build on the tests' generators (`tests/support/`).
"""
