#!/usr/bin/env python3
"""Runs all op cases in XLA and stores its results: python tests/support/record_oracle.py. Takes about two minutes.

With --new only the cases that are not recorded, or were other cases then.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tqdm import tqdm

from hloom.backend_check.op_table import CASES, make_inputs
from support.recorded import PATH, is_answered, recorded, save
from support.xla_oracle import run_case

if __name__ == "__main__":
    known = dict(recorded()) if sys.argv[1:] == ["--new"] else {}
    answers = {case: answer for case, answer in known.items() if answer is not None}
    for case in tqdm([c for c in CASES if is_answered(c) and c not in answers]):
        inputs = make_inputs(case)
        try:
            answers[case] = (inputs, run_case(case, inputs))
        except Exception as error:
            sys.exit(f"{case.id}: XLA says: {error}")
    save(answers)
    print(f"{len(answers)} of {len(CASES)} cases in {PATH}, {PATH.stat().st_size:,} bytes")
