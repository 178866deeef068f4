"""The tables of source locations that XLA prints between a module's header and its computations.

    FileNames
    1 "/home/ada/model.py"

    FileLocations
    1 {file_name_id=1 function_name_id=1 line=7 column=4}

    StackFrames
    1 {file_location_id=1 parent_frame_id=1}

Metadata then has only a `stack_frame_id`. Source: XLA's StackFrameIndexProto.
"""

from __future__ import annotations

from .scanner import Scanner

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


class SourceTable:
    """File and line by stack frame."""

    def __init__(self) -> None:
        self._names: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
        self._records: dict[str, dict[int, dict[str, int]]] = {"FileLocations": {}, "StackFrames": {}}

    def location(self, stack_frame: int) -> tuple[str, int] | None:
        """File and line of the innermost call of a stack frame, or None if the tables do not say."""
        frame = self._records["StackFrames"].get(stack_frame, {})
        location = self._records["FileLocations"].get(frame.get("file_location_id", 0), {})
        file = self._names["FileNames"].get(location.get("file_name_id", 0))
        return None if file is None else (file, location.get("line", 0))

    def read(self, scanner: Scanner) -> None:
        """Read all tables that come next, if any."""
        while (table := scanner.peek_word()) in _TABLES:
            start = scanner.skip()
            scanner.word("a table")
            if scanner.peek("{") or scanner.peek("("):  # a computation of that name
                scanner.position = start
                return
            while scanner.peek_digit():
                key = scanner.integer("a number")
                if table in self._names:
                    self._names[table][key] = scanner.string("a name in quotes")
                else:
                    self._records[table][key] = self._read_record(scanner)

    @staticmethod
    def _read_record(scanner: Scanner) -> dict[str, int]:
        scanner.expect("{", "to open a location")
        record = {}
        while not scanner.accept("}"):
            key = scanner.word("a key of the location or '}'")
            scanner.expect("=")
            record[key] = scanner.integer("a number")
        return record
