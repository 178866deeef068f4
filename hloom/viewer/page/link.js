// The fragment of the page's address: the state that a link restores. Pure: no document.

// A selection as text: i12, k3, b4, r5, l0:41.
function selectionText(selection) { return selection ? selection.kind[0] + selection.id : ""; }

function parseSelection(program, text) {
  const kinds = { i: "instruction", k: "kernel", b: "buffer", r: "row", l: "line" };
  const kind = kinds[text?.[0]];
  if (!kind) return null;
  const id = text.slice(1);
  if (kind === "line") return program.byLine.has(id) ? { kind, id } : null;
  const counts = { instruction: program.count, kernel: program.kernels.length, buffer: program.buffers.length, row: program.rows.length };
  const number = /^\d+$/.test(id) ? Number(id) : -1;
  return number >= 0 && number < counts[kind] ? { kind, id: number } : null;
}

// What is as by default is left out.
export function fragmentOf(program, state, defaults) {
  const entries = [];
  if (state.stage !== defaults.stage) entries.push(["stage", program.stageKeys[state.stage]]);
  if (state.selection) entries.push(["selected", selectionText(state.selection)]);
  for (const key of ["pane", "search", "beside", "theme"]) {
    if (state[key] && state[key] !== defaults[key]) entries.push([key, state[key]]);
  }
  if (state.panes.join() !== defaults.panes.join()) entries.push(["panes", state.panes.join(",")]);
  return entries.map(([key, value]) => `${key}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":")}`).join("&");
}

export function parseFragment(program, fragment, defaults) {
  const given = new Map(fragment.replace(/^#/, "").split("&").filter(Boolean).map((entry) => {
    const [key, ...value] = entry.split("=");
    return [key, decoded(value.join("="))];
  }));
  const stage = program.stageKeys.indexOf(given.get("stage"));
  const panes = given.get("panes")?.split(",").filter((name) => defaults.known.includes(name));
  return {
    stage: stage >= 0 ? stage : defaults.stage,
    selection: parseSelection(program, given.get("selected")),
    pane: defaults.known.includes(given.get("pane")) ? given.get("pane") : defaults.pane,
    search: given.get("search") ?? "",
    beside: given.get("beside") ?? defaults.beside,
    theme: ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : "",
    panes: panes?.length ? panes : defaults.panes,
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
