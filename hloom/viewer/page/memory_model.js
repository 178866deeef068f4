// Buffers over time: the memories that there are, what lies where when, what reuses memory, the peak. Pure: no document.

// One entry for each memory and space: {key, label, buffers: [{index, offset, ...}], size, steps}.
export function memories(program) {
  const found = new Map();
  program.buffers.forEach((buffer, index) => {
    const key = `${buffer.memory} ${buffer.space}`;
    if (!found.has(key)) found.set(key, { key, memory: buffer.memory, space: buffer.space, buffers: [] });
    found.get(key).buffers.push({ ...buffer, index });
  });
  const steps = Math.max(1, program.schedule.length, ...program.buffers.map((buffer) => buffer.last + 1));
  return [...found.values()].map((memory) => placed(program, memory, steps)).sort((a, b) => (b.memory === "arena") - (a.memory === "arena") || b.size - a.size);
}

// Only an arena has offsets; buffers of another memory are stacked in the order of the program.
function placed(program, memory, steps) {
  const arena = memory.memory === "arena" ? program.arenas.find(({ space }) => space === memory.space) : null;
  let end = 0;
  const buffers = memory.buffers.map((buffer) => {
    const offset = memory.memory === "arena" ? buffer.offset : end;
    end = Math.max(end, offset + buffer.size);
    return { ...buffer, offset };
  });
  return { ...memory, buffers, steps, arena, size: Math.max(end, arena?.size ?? 0), label: `${memory.memory}${memory.space ? `, ${memory.space}` : ""}` };
}

// The bytes that are live at each position of the schedule, and the position at which they are most.
export function liveness({ buffers, steps }) {
  const change = new Float64Array(steps + 1);
  for (const { first, last, size } of buffers) {
    change[Math.max(0, first)] += size;
    change[Math.min(steps, last + 1)] -= size;
  }
  const live = [];
  let sum = 0;
  let peak = 0;
  for (let at = 0; at < steps; at++) {
    sum += change[at];
    live.push(sum);
    if (sum > live[peak]) peak = at;
  }
  return { live, peak, bytes: live[peak] ?? 0 };
}

// The buffers that lie where another buffer lay before: the set of their indices.
export function reused({ buffers }) {
  const found = new Set();
  const sorted = [...buffers].sort((a, b) => a.first - b.first);
  let covered = []; // disjoint parts that have been in use, by offset: [start, end, earliest end of use]
  const waiting = [];
  for (const buffer of sorted) {
    for (let k = waiting.length - 1; k >= 0; k--) {
      if (waiting[k].last < buffer.first) covered = joined(covered, waiting.splice(k, 1)[0]);
    }
    const end = buffer.offset + buffer.size;
    if (covered.some(([from, to]) => from < end && buffer.offset < to)) found.add(buffer.index);
    waiting.push(buffer);
  }
  return found;
}

function joined(parts, { offset, size }) {
  let [from, to] = [offset, offset + size];
  const apart = [];
  for (const part of parts) {
    if (part[1] < from || part[0] > to) apart.push(part);
    else [from, to] = [Math.min(from, part[0]), Math.max(to, part[1])];
  }
  return [...apart, [from, to]];
}
