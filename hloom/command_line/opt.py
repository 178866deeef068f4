"""`hloom opt`: passes over a module."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from ..hlo.backend import get_compiler
from ..hlo.passes.manager import FixedPoint, PassOptions, Pipeline
from ..hlo.passes.partitioning import with_partitions
from ..hlo.passes.record import PassRecord, PassRecords
from ..hlo.passes.rewrite import HloPass
from ..hlo.passes.rewriter import has_rules
from ..hlo.text.dot_graph import to_dot
from .files import read_module, scheduled, target_of, write_text
from .outcome import FINE, UsageError


def execute(options: Namespace) -> int:
    """Print the module after the chosen passes, or write it to a file."""
    chosen = get_compiler("numba").pipeline(target_of(options))
    names = list(dict.fromkeys(each.name for each in chosen.passes()))
    if options.list_passes:
        print("\n".join(names))
        return FINE
    if options.rules:
        print(_rules(chosen))
        return FINE
    if options.file is None:
        raise UsageError("opt needs a FILE")
    settings = PassOptions.from_environment()
    disabled = {*settings.disabled, *options.disable}
    asked = [*(options.passes or ()), *sorted(disabled), *([options.until] if options.until else ())]
    if unknown := [name for name in asked if name not in names]:
        raise UsageError(f"no pass named {', '.join(unknown)}; known: {', '.join(names)}")
    if options.passes is not None:
        by_name = {each.name: each for each in chosen.passes()}
        chosen = Pipeline("chosen", tuple(by_name[name] for name in options.passes))
    elif options.until:
        chosen = _up_to(chosen, options.until)
    settings = replace(
        settings,
        verify=not options.no_verify,
        disabled=_in(chosen, disabled),
        explain=options.explain,
        check_rules=options.check_rules or settings.check_rules,
    )
    with read_module(options.file).within_means() as module:
        module = scheduled(with_partitions(module), options)
        if options.kernels:
            kernels = get_compiler("numba").compile(module, target=target_of(options)).kernels()
            _write("\n\n".join(text.strip() for text in kernels.values()), options)
            return FINE
        module, records = chosen.run(module, settings)
    if options.stats:
        print(PassRecords(records), file=sys.stderr)
    if options.explain:
        text = _explained(records)
    else:
        text = to_dot(module) if options.dot else module.to_text(metadata=not options.no_metadata)
    _write(text, options)
    return FINE


def _write(text: str, options: Namespace) -> None:
    if options.output:
        write_text(options.output, text)
    else:
        print(text, end="" if text.endswith("\n") else "\n")


def _in(pipeline: Pipeline, names: set[str]) -> frozenset[str]:
    return frozenset(each.name for each in pipeline.passes() if each.name in names)


def _up_to(pipeline: Pipeline, name: str) -> Pipeline:
    """The steps up to the first run of pass `name`; if a fixed point contains it, the beginning of one round."""
    steps: list[HloPass | FixedPoint] = []
    for step in pipeline.plain_steps():
        inner = step.passes if isinstance(step, FixedPoint) else (step,)
        found = next((k for k, each in enumerate(inner) if each.name == name), None)
        if found is not None:
            return Pipeline(f"{pipeline.name}-until-{name}", (*steps, *inner[: found + 1]))
        steps.append(step)
    raise AssertionError(name)


def _rules(pipeline: Pipeline) -> str:
    """Each rule of each pass, once: name, opcodes, and when it is valid."""
    lines = []
    for each in {each.name: each for each in pipeline.passes() if has_rules(each)}.values():
        lines.append(f"{each.name}:")
        for rule in each.rules:
            opcodes = ", ".join(opcode.value for opcode in rule.opcodes[:_FEW])
            more = f" and {len(rule.opcodes) - _FEW} more" if len(rule.opcodes) > _FEW else ""
            lines.append(f"  {rule.name} ({opcodes}{more}): {rule.documentation}")
    return "\n".join(lines)


_FEW = 6


def _explained(records: Sequence[PassRecord]) -> str:
    """Each pass that changed something, and each application of its rules."""
    lines = []
    for number, record in enumerate(records):
        if record.changed:
            before, after = record.instructions_before, record.instructions_after
            lines.append(f"pass {number}: {record.name}: {before} -> {after} instructions")
            for application in record.applications:
                lines += [f"  {line}" for line in str(application).splitlines()]
    return "\n".join(lines)
