"""A traced program as a jaxpr: a view of its HLO, in JAX's names and JAX's notation.

    atoms, nodes    Var, Literal, DropVar; Jaxpr, ClosedJaxpr, JaxprEqn: the classes for users
    view            an HLO computation -> a Jaxpr; tuples vanish, broadcast scalars become operands. make_jaxpr
    rules           the table: for each HLO op, which of JAX's primitives it is, and with which parameters; and the
                    broadcasts that are no equations, since JAX's primitive would broadcast its operand itself
    <family>        the rows of that table, and the functions that primitives bind where these are not the functions
                    of the same name in `hloom.lax`
    calls           operations without an opcode in HLO: jit, scan, custom derivatives, checkpoint; and control flow
    primitives      the objects that `eqn.primitive` names, with `bind`
    printing        the notation
    evaluate        eval_jaxpr, jaxpr_as_fun: a jaxpr run, equation by equation

Nothing here is an IR. A Jaxpr is made on request, from the HLO that is compiled, and no pass reads it.
"""
