// The tables of a program (see hloom/viewer/), with the indices that the panes need. Pure: no document.
// What depends on all stages is indexed once, in the constructor; what belongs to one stage when it is first shown.

const FOLDED_IN = new Set(["while", "call", "conditional", "fusion", "async-start"]);

export class Program {
  constructor(data) {
    this.data = data;
    this.instructions = data.instructions;
    this.computations = data.computations;
    this.stages = data.stages;
    if (this.stages.length === 0) { // a timeline: rows that ran, without HLO
      this.computations = [{ name: "", instructions: [], root: -1, parameters: [] }];
      this.stages = [{ name: "timeline", milliseconds: null, entry: 0, computations: [0], fused: [], rules: [] }];
    }
    this.kernels = data.kernels ?? [];
    this.rows = data.rows ?? [];
    this.buffers = data.buffers ?? [];
    this.sources = data.sources ?? [];
    this.passes = data.passes ?? [];
    this.schedule = data.schedule ?? [];
    this.arenas = data.arenas ?? [];
    this.profile = data.profile ?? null;
    this.devices = data.devices ?? null;
    this.last = this.stages.length - 1;
    this.indexOfStage = new Array(this.stages.length);
    this.stageKeys = keysOf(this.stages.map((stage) => stage.name));
    this.spanStages();
    this.replacedBy = inverse(this.instructions.origin);
    this.standsFor = new Map();
    for (const { merged = [] } of this.stages) {
      for (const [old, kept] of merged) {
        push(this.replacedBy, old, kept);
        push(this.standsFor, kept, old);
      }
    }
    this.byLine = new Map();
    const { source, line } = this.instructions;
    for (let id = 0; id < source.length; id++) if (source[id] >= 0) push(this.byLine, lineKey(source[id], line[id]), id);
    this.kernelsOf = new Map();
    this.kernels.forEach((kernel, k) => kernel.instructions.forEach((id) => push(this.kernelsOf, id, k)));
    this.rowsOf = new Map();
    this.rows.forEach((row, k) => { if (row.instruction >= 0) push(this.rowsOf, row.instruction, k); });
    this.rowsOfKernel = new Map();
    this.rows.forEach((row, k) => { if (row.kernel >= 0) push(this.rowsOfKernel, row.kernel, k); });
    this.buffersOf = new Map();
    this.buffers.forEach((buffer, k) => {
      for (const value of buffer.values) if (typeof value === "number") push(this.buffersOf, value, k);
    });
  }

  // The first and the last stage that each instruction is in.
  spanStages() {
    const count = this.instructions.name.length;
    this.firstStage = new Int32Array(count).fill(-1);
    this.lastStage = new Int32Array(count).fill(-1);
    const first = new Map();
    const last = new Map();
    this.stages.forEach((stage, s) => {
      for (const computation of stage.computations) {
        if (!first.has(computation)) first.set(computation, s);
        last.set(computation, s);
      }
    });
    for (const [computation, from] of first) {
      const to = last.get(computation);
      for (const id of this.computations[computation].instructions) {
        if (this.firstStage[id] < 0 || from < this.firstStage[id]) this.firstStage[id] = from;
        if (to > this.lastStage[id]) this.lastStage[id] = to;
      }
    }
  }

  string(index) { return index === null || index === undefined || index < 0 ? "" : this.data.strings[index]; }
  get count() { return this.instructions.name.length; }
  name(id) { return this.instructions.name[id]; }
  opcode(id) { return this.string(this.instructions.opcode[id]); }
  shape(id) { return this.string(this.instructions.shape[id]); }
  opName(id) { return this.string(this.instructions.op_name[id]); }
  // What an instruction came from and what it became, in the stages next to its own.
  before(id) { return [...this.instructions.origin[id], ...(this.standsFor.get(id) ?? [])]; }
  after(id) { return this.replacedBy.get(id) ?? []; }
  scope(id) { return this.opName(id).split("/").slice(0, -1).join("/"); }
  attributes(id) { return this.instructions.text[id]; }
  operands(id) { return this.instructions.operands[id]; }
  called(id) { return this.instructions.called[id]; }
  line(id) {
    const source = this.instructions.source[id];
    return source < 0 ? null : { source, line: this.instructions.line[id] };
  }

  // The instructions of a stage: the computation of each, who calls a computation, who uses an instruction.
  stageIndex(s) {
    if (this.indexOfStage[s]) return this.indexOfStage[s];
    const stage = this.stages[s];
    const computationOf = new Map();
    const callerOf = new Map();
    for (const computation of stage.computations) {
      for (const id of this.computations[computation].instructions) {
        computationOf.set(id, computation);
        if (FOLDED_IN.has(this.opcode(id))) {
          for (const called of this.called(id)) if (!callerOf.has(called)) callerOf.set(called, id);
        }
      }
    }
    return (this.indexOfStage[s] = { computationOf, callerOf, fused: new Set(stage.fused), users: null });
  }

  users(s, id) {
    const index = this.stageIndex(s);
    if (!index.users) {
      index.users = new Map();
      for (const user of index.computationOf.keys()) {
        for (const operand of new Set(this.operands(user))) push(index.users, operand, user);
      }
    }
    return index.users.get(id) ?? [];
  }

  // The instructions of a stage that call the computation which an instruction is in, innermost first.
  callers(s, id) {
    const { computationOf, callerOf } = this.stageIndex(s);
    const found = [];
    for (let at = id; ;) {
      const caller = callerOf.get(computationOf.get(at));
      if (caller === undefined || found.includes(caller)) return found;
      found.push(caller);
      at = caller;
    }
  }

  // Whether an instruction encloses the computations that it calls (a reduction only names its own).
  encloses(id) { return FOLDED_IN.has(this.opcode(id)) && this.called(id).length > 0; }

  sourceName(source) { return this.sources[source].path.replace(/^.*\//, ""); }
}

export function lineKey(source, line) { return `${source}:${line}`; }

export function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

// For each number that occurs in the lists, the positions of those lists.
function inverse(lists) {
  const found = new Map();
  lists.forEach((list, k) => { for (const value of list) push(found, value, k); });
  return found;
}

// Names with "~2" after the second of the same name, and so on.
function keysOf(names) {
  const seen = new Map();
  return names.map((name) => {
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name) === 1 ? name : `${name}~${seen.get(name)}`;
  });
}
