// What a selected thing became and what it came from, in all stages and all tables. Pure: no document.
// Work is proportional to what is found, not to the program.
import { lineKey } from "./model.js";

// A selection is {kind, id}: an instruction, kernel, buffer or row by index, a line by "source:line".
export function related(program, selection) {
  const found = {
    selection, exact: new Set(), instructions: new Set(), lines: new Set(), kernels: new Set(), rows: new Set(),
    buffers: new Set(),
  };
  if (!selection) return found;
  seeds(program, selection).forEach((id) => found.exact.add(id));
  const inside = new Set(found.exact);
  if (selection.kind !== "line") for (const id of found.exact) addEnclosed(program, id, inside);
  const before = closure(inside, (id) => program.before(id));
  const after = closure(inside, (id) => program.after(id));
  for (const set of [inside, before, after]) for (const id of set) found.instructions.add(id);
  const ownLines = selection.kind === "line" ? [] : [...inside, ...before];
  for (const id of ownLines) {
    const at = program.line(id);
    if (at) found.lines.add(lineKey(at.source, at.line));
  }
  addTables(program, found);
  if (selection.kind === "line") found.lines.add(selection.id);
  else if (selection.kind !== "instruction") found[`${selection.kind}s`].add(selection.id);
  return found;
}

function seeds(program, { kind, id }) {
  if (kind === "instruction") return [id];
  if (kind === "line") return program.byLine.get(id) ?? [];
  if (kind === "kernel") return program.kernels[id].instructions;
  if (kind === "buffer") return program.buffers[id].values.filter((value) => typeof value === "number");
  const { instruction, kernel } = program.rows[id];
  return instruction >= 0 ? [instruction] : kernel >= 0 ? program.kernels[kernel].instructions : [];
}

// The instructions of the computations that an instruction encloses, at any depth.
function addEnclosed(program, id, found) {
  const open = [id];
  while (open.length) {
    const at = open.pop();
    if (!program.encloses(at)) continue;
    for (const computation of program.called(at)) {
      for (const inner of program.computations[computation].instructions) {
        if (!found.has(inner)) {
          found.add(inner);
          open.push(inner);
        }
      }
    }
  }
}

function closure(start, next) {
  const found = new Set();
  const open = [...start];
  while (open.length) {
    for (const id of next(open.pop())) {
      if (!found.has(id)) {
        found.add(id);
        open.push(id);
      }
    }
  }
  return found;
}

// The kernels, rows and buffers of what is related in the last stage, and of what encloses it.
function addTables(program, found) {
  if (program.last < 0) return;
  const { computationOf } = program.stageIndex(program.last);
  for (const id of found.instructions) {
    if (!computationOf.has(id)) continue;
    const direct = program.buffersOf.get(id);
    if (direct) direct.forEach((k) => found.buffers.add(k));
    const callers = program.callers(program.last, id);
    for (const at of [id, ...callers]) {
      for (const k of program.kernelsOf.get(at) ?? []) {
        found.kernels.add(k);
        for (const row of program.rowsOfKernel.get(k) ?? []) {
          const owner = program.rows[row].instruction;
          if (owner < 0 || owner === at) found.rows.add(row);
        }
      }
      for (const k of program.rowsOf.get(at) ?? []) found.rows.add(k);
    }
    const { fused } = program.stageIndex(program.last);
    if (callers.length && fused.has(computationOf.get(id))) {
      for (const k of program.buffersOf.get(callers[0]) ?? []) found.buffers.add(k);
    }
  }
}

// How each instruction of a stage is marked: "exact", "related", or "around" for one that encloses such an instruction.
export function marksOf(program, found, s) {
  const marks = new Map();
  const { computationOf } = program.stageIndex(s);
  for (const id of found.instructions) {
    if (!computationOf.has(id)) continue;
    marks.set(id, found.exact.has(id) ? "exact" : "related");
    for (const caller of program.callers(s, id)) if (!marks.has(caller)) marks.set(caller, "around");
  }
  for (const id of found.exact) if (computationOf.has(id)) marks.set(id, "exact");
  return marks;
}

// The instructions that an instruction came from and became, stage by stage: [{stage, ids}], oldest first.
export function lineage(program, id) {
  const ids = new Set([id]);
  for (const other of closure([id], (at) => program.before(at))) ids.add(other);
  for (const other of closure([id], (at) => program.after(at))) ids.add(other);
  const stages = new Map();
  for (const at of ids) {
    const s = program.firstStage[at];
    if (s >= 0) stages.set(s, [...(stages.get(s) ?? []), at]);
  }
  return [...stages].sort(([a], [b]) => a - b).map(([stage, list]) => ({ stage, ids: list.sort((a, b) => a - b) }));
}
