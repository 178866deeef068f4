"""`hloom.view` and `hloom view`: a program in all its stages, in a browser.

    inspection.py   compiles a program while its stages are recorded, and runs it while its time is
    model.py        makes of that the data of the page: one JSON object
    tables.py, sources.py, memory.py, running.py: its parts
    page/           the page: HTML, styles, modules of JavaScript
    bundle.py       the page as one file
    server.py       the page on this machine's loopback address

Nothing here is imported before somebody views a program.
"""
