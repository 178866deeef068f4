"""The documentation site, which `make docs` builds: the pages of docs/, and a reference made from the namespaces.

`pages.py` copies the pages to a folder of sources, with links that stay inside the site, and puts them into an order.
`reference.py` writes a page for each public namespace, from the signatures and texts of its names (`docstrings.py`);
`operations.py` writes one for each HLO opcode. Both run the examples of the texts (`calls.py`): for types and errors
(`behaviour.py`), and for the functions that trace to an operation (`traced.py`).
`conf.py` is the configuration of Sphinx, which makes HTML of the sources.

Sphinx with the theme Furo and MyST, for three reasons. Its search runs from files, without a server. It knows names of
Python as objects, so that the search lists a function before the pages that mention it. All three are maintained, which
Material for MkDocs is no more. The reference does not use `autodoc`: a namespace loads its names when they are asked
for, and completes their examples then, and `reference.py` reads them as a program would.
"""
