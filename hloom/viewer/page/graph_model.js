// The nodes and edges of the graph of a stage: what is unfolded, gathered by line or by scope, and not more than a
// number of nodes around one of them. Pure: no document, no layout.
import { lineKey, push } from "./model.js";

const LIBRARY = new Set(["dot", "convolution", "custom-call", "fft", "sort", "cholesky", "triangular-solve"]);
const MOVES = new Set(["copy", "transpose", "reshape", "bitcast", "broadcast", "concatenate", "slice", "pad"]);
const COLLECTIVE = /^(all-|reduce-scatter|collective-|send|recv|partition-id|replica-id)/;

// The class of a node by the opcode of its instruction.
function nodeClass(program, id) {
  const opcode = program.opcode(id);
  if (opcode === "parameter" || opcode === "constant" || opcode === "iota") return "input";
  if (opcode === "tuple") return "result";
  if (opcode === "while" || opcode === "conditional" || opcode === "call") return "loop";
  if (opcode === "fusion") return "fusion";
  if (COLLECTIVE.test(opcode)) return "collective";
  if (LIBRARY.has(opcode)) return "product";
  return MOVES.has(opcode) ? "move" : "other";
}

// {nodes: [{key, ids, title, detail, class, parent, foldable, folded, more}], edges: [{from, to, id}], total}.
// unfolded: keys of nodes that are shown with their inside; by: "instruction", "line" or "scope"; focus: an instruction
// or -1; wanted: keys that are kept when there are more than `cap` nodes.
export function graphOf(program, s, { unfolded, by, focus = -1, wanted = new Set(), cap = 160 }) {
  const graph = { nodes: new Map(), edges: new Map() };
  const stage = program.stages[s];
  const unit = new Map();
  addComputation(program, graph, unit, stage.entry, null, { unfolded, by });
  for (const [id] of unit) addEdges(program, graph, unit, id, unfolded);
  return cut(program, s, graph, unit, { focus, wanted, cap });
}

function addComputation(program, graph, unit, computation, parent, options) {
  const { instructions } = program.computations[computation];
  const shown = instructions.filter((id) => program.opcode(id) !== "constant" && program.opcode(id) !== "get-tuple-element");
  const groups = new Map();
  for (const id of shown) push(groups, groupKey(program, computation, id, options.by), id);
  for (const [key, ids] of groups) {
    if (ids.length === 1) {
      addInstruction(program, graph, unit, ids[0], parent, options);
      continue;
    }
    const open = options.unfolded.has(key);
    const node = { key, ids, parent, foldable: true, folded: !open, more: 0, class: open ? "cluster" : nodeClass(program, ids[0]) === "input" ? "input" : "group", ...groupText(program, ids, options.by) };
    graph.nodes.set(key, node);
    for (const id of ids) {
      if (open) addInstruction(program, graph, unit, id, key, options);
      else unit.set(id, key);
    }
  }
}

function groupKey(program, computation, id, by) {
  const line = program.line(id);
  if (program.opcode(id) === "parameter") return by === "instruction" ? `i${id}` : `p${computation}`;
  if (program.opcode(id) === "tuple") return `i${id}`;
  if (by === "line" && line) return `g${computation}:${lineKey(line.source, line.line)}`;
  const scope = program.scope(id);
  return by === "scope" && scope ? `g${computation}:${scope}` : `i${id}`;
}

function groupText(program, ids, by) {
  if (program.opcode(ids[0]) === "parameter") return { title: "parameters", detail: String(ids.length) };
  const line = program.line(ids[0]);
  const title = by === "line" ? `${program.sourceName(line.source)}:${line.line}` : program.scope(ids[0]);
  return { title, detail: `${ids.length} instructions` };
}

function addInstruction(program, graph, unit, id, parent, options) {
  const key = `i${id}`;
  const foldable = program.encloses(id);
  const open = foldable && options.unfolded.has(key);
  graph.nodes.set(key, {
    key, ids: [id], parent, foldable, folded: foldable && !open, more: 0, class: open ? "cluster" : nodeClass(program, id),
    title: program.name(id), detail: program.shape(id),
  });
  unit.set(id, key);
  if (open) for (const computation of program.called(id)) addComputation(program, graph, unit, computation, key, options);
}

// The instruction whose node makes the value of an operand: through elements of tuples and into what is unfolded.
function makerOf(program, id, unfolded) {
  for (let at = id; ;) {
    if (program.opcode(at) === "get-tuple-element") [at] = program.operands(at);
    else if (program.encloses(at) && unfolded.has(`i${at}`)) at = bodyOf(program, at).root;
    else return at;
  }
}

// Of the computations that an instruction encloses, the one that makes its result.
function bodyOf(program, id) {
  const called = program.called(id).map((computation) => program.computations[computation]);
  return called.find(({ root }) => program.shape(root) === program.shape(id)) ?? called[called.length - 1];
}

function addEdges(program, graph, unit, id, unfolded) {
  const open = program.encloses(id) && unfolded.has(`i${id}`);
  const { parameters } = open ? bodyOf(program, id) : { parameters: [] };
  program.operands(id).forEach((operand, k) => {
    const to = open ? unit.get(parameters[Math.min(k, parameters.length - 1)]) : unit.get(id);
    const maker = makerOf(program, operand, unfolded);
    const from = unit.get(maker);
    if (from === undefined || to === undefined || from === to) return;
    if (!graph.edges.has(`${from} ${to}`)) graph.edges.set(`${from} ${to}`, { from, to, id: operand });
  });
}

const NEAR = 8; // ranks
const BUDGET = 500; // ranks that all edges together may pass before the far ones are left out of the layout

// Edges that pass many ranks make a layout slow and wide. Where they do, {near, far}: far edges are only drawn. Ranks
// are the longest paths; what has no operands stands above its first user.
export function nearAndFar({ nodes, edges }) {
  const users = new Map();
  const left = new Map(nodes.map(({ key }) => [key, 0]));
  for (const { from, to } of edges) {
    push(users, from, to);
    left.set(to, (left.get(to) ?? 0) + 1);
  }
  const rank = new Map();
  const ready = [...left.keys()].filter((key) => left.get(key) === 0);
  const sources = new Set(ready);
  for (const key of ready) rank.set(key, 0);
  while (ready.length) {
    const key = ready.pop();
    for (const to of users.get(key) ?? []) {
      rank.set(to, Math.max(rank.get(to) ?? 0, rank.get(key) + 1));
      left.set(to, left.get(to) - 1);
      if (left.get(to) === 0) ready.push(to);
    }
  }
  for (const key of sources) {
    const ranks = (users.get(key) ?? []).map((to) => rank.get(to) ?? 0);
    if (ranks.length) rank.set(key, ranks.reduce((a, b) => Math.min(a, b)) - 1);
  }
  const span = ({ from, to }) => Math.abs((rank.get(to) ?? 0) - (rank.get(from) ?? 0));
  if (edges.reduce((sum, edge) => sum + span(edge), 0) <= BUDGET) return { near: edges, far: [] };
  return { near: edges.filter((edge) => span(edge) <= NEAR), far: edges.filter((edge) => span(edge) > NEAR) };
}

// At most cap nodes: those that are wanted, then the nearest to the focus or to the result.
function cut(program, s, { nodes, edges }, unit, { focus, wanted, cap }) {
  const leaves = [...nodes.values()].filter((node) => node.class !== "cluster");
  const list = [...edges.values()];
  if (leaves.length <= cap) return { nodes: [...nodes.values()], edges: list, total: leaves.length };
  const near = new Map();
  for (const { from, to } of list) {
    push(near, from, to);
    push(near, to, from);
  }
  const { root } = program.computations[program.stages[s].entry];
  const start = unit.get(focus) ?? unit.get(root) ?? leaves[0].key;
  const kept = new Set([start, ...[...wanted].filter((key) => nodes.has(key))]);
  const limit = Math.max(cap, wanted.size + 1);
  for (const key of kept) {
    if (kept.size >= limit) break;
    if (nodes.get(key).class === "input") continue; // what many use does not lead to what is near
    for (const other of near.get(key) ?? []) if (kept.size < limit) kept.add(other);
  }
  const shown = [...kept].map((key) => ({ ...nodes.get(key) }));
  for (const node of shown) {
    node.hidden = (near.get(node.key) ?? []).filter((key) => !kept.has(key));
    node.more = node.hidden.length;
  }
  const parents = new Set();
  for (const node of shown) {
    for (let up = node.parent; up && !parents.has(up); up = nodes.get(up).parent) parents.add(up);
  }
  const clusters = [...parents].map((key) => nodes.get(key)).filter((node) => !kept.has(node.key));
  return { nodes: [...clusters, ...shown], edges: list.filter(({ from, to }) => kept.has(from) && kept.has(to)), total: leaves.length };
}
