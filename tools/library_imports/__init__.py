"""Which modules of the installed libraries import with JAX and not with hloom, and which names of JAX they ask for.

    python -m tools.library_imports run --jax                  # with JAX: once, after a library is installed
    python -m tools.library_imports run                        # with hloom: all modules that import with JAX
    python -m tools.library_imports run --go-on flax optax     # a stand-in for each missing name: finds the next ones
    python -m tools.library_imports report                     # what was found
    python -m tools.library_imports report --write             # the table in docs/jax_programs.md
    python -m tools.library_imports names --write              # looks up the names in that table again

Run it with the interpreter of an environment that has JAX and the libraries, and with the checkout in PYTHONPATH. The
libraries are the distributions that require jax, or those that are named. Each is imported in processes of its own.

    walk      the modules of a library, from its files
    child     the process that imports them
    uses      the names of JAX in their files
    results   the outcomes, in a file
    table     the report and the table
"""
