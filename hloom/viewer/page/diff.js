// The difference of two stages: what was added, removed and changed, and rows of both side by side. Pure: no document.

// For the instructions of two stages: {older, newer}, maps from an instruction to "added", "removed" or "changed"
// (others are the same), and pairs, from an instruction of the newer stage to one of the older.
export function difference(program, olderStage, newerStage) {
  const older = program.stageIndex(olderStage).computationOf;
  const newer = program.stageIndex(newerStage).computationOf;
  const marks = { older: new Map(), newer: new Map(), pairs: new Map() };
  const kept = new Set();
  const sources = new Map();
  const sourcesOf = (id) => {
    if (sources.has(id)) return sources.get(id);
    const found = new Set();
    const seen = new Set([id]);
    const open = [id];
    while (open.length) {
      for (const from of program.instructions.origin[open.pop()]) {
        if (seen.has(from)) continue;
        seen.add(from);
        if (older.has(from)) found.add(from);
        else open.push(from);
      }
    }
    const list = [...found];
    sources.set(id, list);
    return list;
  };
  const gone = new Map(); // what another instruction, of both stages, has the value of
  for (const { merged = [] } of program.stages.slice(olderStage + 1, newerStage + 1)) {
    for (const [old, into] of merged) gone.set(old, into);
  }
  for (const id of newer.keys()) {
    if (older.has(id)) {
      marks.pairs.set(id, id);
      kept.add(id);
    }
  }
  // whether an operand of the newer stage is the value of one of the older: also through a parameter of a fusion
  const reaches = (id, old) => {
    if (id === old || gone.get(old) === id || (!older.has(id) && sourcesOf(id).includes(old))) return true;
    if (program.opcode(id) !== "parameter") return false;
    const { computationOf, callerOf } = program.stageIndex(newerStage);
    const computation = computationOf.get(id);
    const caller = callerOf.get(computation);
    if (caller === undefined) return false;
    const outside = program.operands(caller)[program.computations[computation].parameters.indexOf(id)];
    return outside !== undefined && reaches(outside, old);
  };
  const rest = [];
  for (const id of newer.keys()) {
    if (older.has(id)) continue;
    const near = sourcesOf(id).find((old) => !kept.has(old) && alike(program, old, id));
    if (near === undefined) rest.push(id);
    else {
      marks.pairs.set(id, near);
      kept.add(near);
      if (!sameOperands(program, near, id, reaches)) {
        marks.newer.set(id, "changed");
        marks.older.set(near, "changed");
      }
    }
  }
  for (const id of rest) {
    const near = sourcesOf(id).find((old) => !kept.has(old));
    marks.newer.set(id, near === undefined ? "added" : "changed");
    if (near === undefined) continue;
    marks.pairs.set(id, near);
    kept.add(near);
    for (const old of sourcesOf(id)) if (!newer.has(old)) marks.older.set(old, "changed");
  }
  for (const id of older.keys()) {
    if (!newer.has(id) && !kept.has(id) && !marks.older.has(id)) marks.older.set(id, "removed");
  }
  return marks;
}

function alike(program, a, b) {
  const table = program.instructions;
  return table.opcode[a] === table.opcode[b] && table.shape[a] === table.shape[b] && table.text[a] === table.text[b];
}

function sameOperands(program, a, b, reaches) {
  const left = program.operands(a);
  const right = program.operands(b);
  return left.length === right.length && right.every((id, k) => reaches(id, left[k]));
}

// How many there are of each mark.
export function counted(marks) {
  const count = { added: 0, removed: 0, changed: 0 };
  for (const mark of marks.newer.values()) count[mark]++;
  for (const mark of marks.older.values()) if (mark === "removed") count.removed++;
  return count;
}

// The rule applications of a stage by the instruction that they replaced ("before") or made ("after").
export function rulesOf(stage) {
  const before = new Map();
  const after = new Map();
  const add = (map, id, k) => map.set(id, [...(map.get(id) ?? []), k]);
  (stage.rules ?? []).forEach((rule, k) => {
    add(before, rule.before, k);
    for (const id of rule.after) add(after, id, k);
  });
  return { before, after };
}

// Positions in two lists of rows, so that partners stand side by side: [[left or -1, right or -1]]. partnerOf gives the
// position on the left that belongs to a position on the right, or -1. Partners that would cross are left apart.
export function aligned(leftCount, rightCount, partnerOf) {
  const anchors = increasing(Array.from({ length: rightCount }, (_, right) => [partnerOf(right), right]));
  const rows = [];
  let left = 0;
  let right = 0;
  const upTo = (toLeft, toRight) => {
    while (left < toLeft || right < toRight) {
      rows.push([left < toLeft ? left++ : -1, right < toRight ? right++ : -1]);
    }
  };
  for (const [atLeft, atRight] of anchors) {
    upTo(atLeft, atRight);
    rows.push([left++, right++]);
  }
  upTo(leftCount, rightCount);
  return rows;
}

// The longest part of the pairs, sorted by their second number, in which the first number increases too.
function increasing(pairs) {
  const valid = pairs.filter(([left]) => left >= 0);
  const tails = [];
  const previous = new Int32Array(valid.length).fill(-1);
  valid.forEach(([left], k) => {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (valid[tails[middle]][0] < left) low = middle + 1;
      else high = middle;
    }
    previous[k] = low > 0 ? tails[low - 1] : -1;
    tails[low] = k;
  });
  const found = [];
  for (let k = tails.length ? tails[tails.length - 1] : -1; k >= 0; k = previous[k]) found.push(valid[k]);
  return found.reverse();
}
