// Search over instructions, lines, kernels and rows. Pure: no document.
import { lineKey } from "./model.js";

// Selections with a text for the list: [{kind, id, text, stage}], first what the shown stage has. All words must occur.
export function search(program, s, query, limit = 500) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  if (words.length === 0) return found;
  const add = (kind, id, text, hay = text) => {
    const low = hay.toLowerCase();
    if (found.length < limit && words.every((word) => low.includes(word))) found.push({ kind, id, text, stage: s });
  };
  program.sources.forEach((source, k) => {
    source.lines.forEach((text, n) => {
      if (program.byLine.has(lineKey(k, source.first + n))) {
        add("line", lineKey(k, source.first + n), `${program.sourceName(k)}:${source.first + n}  ${text.trim()}`);
      }
    });
  });
  program.kernels.forEach((kernel, k) => {
    add("kernel", k, kernel.name, [kernel.name, kernel.algorithm ?? "", ...kernel.schedule, kernel.text].join("\n"));
  });
  program.rows.forEach((row, k) => {
    if (row.kernel < 0) add("row", k, `${row.label} (${row.kind})`);
  });
  const hay = (id) => `%${program.name(id)} ${program.opcode(id)} ${program.shape(id)} ${program.opName(id)}`;
  const text = (id) => `${program.name(id)} = ${program.shape(id)} ${program.opcode(id)}`;
  const here = program.stageIndex(s).computationOf;
  for (const id of here.keys()) add("instruction", id, text(id), hay(id));
  for (let id = 0; id < program.count && found.length < limit; id++) {
    if (here.has(id) || program.firstStage[id] < 0) continue;
    const before = found.length;
    add("instruction", id, text(id), hay(id));
    if (found.length > before) found[before].stage = s < program.firstStage[id] ? program.firstStage[id] : program.lastStage[id];
  }
  return found;
}
