// The rows in which a stage is listed: computations, with what they enclose nested in them, and instructions, all or
// gathered by source line or by call. Pure: no document.
import { lineKey } from "./model.js";

// rows: {kind: "computation" | "group" | "instruction", id, depth, key, ...}. A row whose key is in `folded` hides what
// is below it. by: "line" or "call" puts a row of its own above neighbours of one source line, or of one call in Python.
export function outline(program, s, { folded, by = "" }) {
  const stage = program.stages[s];
  const { callerOf } = program.stageIndex(s);
  const rows = [];
  const listed = new Set();
  const instruction = (id, depth) => {
    rows.push({ kind: "instruction", id, depth, key: id });
    if (!program.encloses(id)) return;
    for (const computation of program.called(id)) if (callerOf.get(computation) === id) list(computation, depth + 1);
  };
  const list = (computation, depth) => {
    if (listed.has(computation)) return;
    listed.add(computation);
    const { name, instructions } = program.computations[computation];
    const key = `c:${name}`;
    rows.push({ kind: "computation", id: computation, depth, key, count: instructions.length, entry: computation === stage.entry });
    if (folded.has(key)) {
      hide(instructions);
      return;
    }
    if (!by) {
      for (const id of instructions) instruction(id, depth + 1);
      return;
    }
    for (const group of groups(program, instructions, by)) {
      if (group.ids.length === 1 || !group.title) {
        for (const id of group.ids) instruction(id, depth + 1);
        continue;
      }
      const groupKey = `${by}:${name}:${group.key}:${group.nth}`;
      rows.push({ ...group, kind: "group", id: group.ids[0], depth: depth + 1, key: groupKey });
      if (folded.has(groupKey)) hide(group.ids);
      else for (const id of group.ids) instruction(id, depth + 2);
    }
  };
  // what a folded row encloses is not listed elsewhere
  const hide = (ids) => {
    for (const id of ids) {
      if (!program.encloses(id)) continue;
      for (const computation of program.called(id)) {
        if (callerOf.get(computation) !== id || listed.has(computation)) continue;
        listed.add(computation);
        hide(program.computations[computation].instructions);
      }
    }
  };
  list(stage.entry, 0);
  for (const computation of stage.computations) list(computation, 0);
  return rows;
}

// Runs of instructions with one source line or call; nth tells runs of the same one apart.
function groups(program, instructions, by) {
  const found = [];
  const times = new Map();
  for (const id of instructions) {
    const line = program.line(id);
    const place = line ? lineKey(line.source, line.line) : "";
    const key = by === "line" ? place : program.scope(id);
    const open = found[found.length - 1];
    if (open && open.key === key) open.ids.push(id);
    else {
      times.set(key, (times.get(key) ?? 0) + 1);
      const title = by === "line" && line ? `${program.sourceName(line.source)}:${line.line}` : key;
      found.push({ key, title, line: by === "line" ? line : null, ids: [id], nth: times.get(key) });
    }
  }
  return found;
}

// The keys that must not be folded for an instruction of a stage to be listed.
export function keysAbove(program, s, id) {
  const { computationOf } = program.stageIndex(s);
  return [id, ...program.callers(s, id)].map((at) => `c:${program.computations[computationOf.get(at)].name}`);
}

// All keys of a stage that can be folded, but for the entry's.
export function foldable(program, s) {
  const { entry, computations } = program.stages[s];
  return computations.filter((computation) => computation !== entry).map((at) => `c:${program.computations[at].name}`);
}

// The position of each instruction in the rows; of one that a folded row hides, the position of that row.
export function positions(program, s, rows) {
  const at = new Map();
  const folded = new Map();
  rows.forEach((row, k) => {
    if (row.kind === "instruction") at.set(row.id, k);
    else folded.set(row.key, k);
    if (row.kind === "group") for (const id of row.ids) if (!at.has(id)) at.set(id, k);
  });
  return (id) => {
    if (at.has(id)) return at.get(id);
    const { computationOf } = program.stageIndex(s);
    if (!computationOf.has(id)) return -1;
    for (const key of keysAbove(program, s, id)) if (folded.has(key)) return folded.get(key);
    return -1;
  };
}
