// Starts the page: data, indices, panes. Marks in performance: data (loaded), indices (made), ready (drawn, and answers).
import { loadData } from "./data.js";
import { make } from "./dom.js";
import { Layout } from "./layout.js";
import { Program } from "./model.js";
import { BuffersPane } from "./pane_buffers.js";
import { DetailsPane } from "./pane_details.js";
import { GraphPane } from "./pane_graph.js";
import { HloPanes } from "./pane_hlo.js";
import { KernelsPane } from "./pane_kernels.js";
import { LinesPane } from "./pane_lines.js";
import { DevicesPane, PassesPane, RowsPane, RulesPane } from "./pane_tables.js";
import { State } from "./state.js";
import { Toolbar } from "./toolbar.js";

const NAMES = ["lines", "beside", "hlo", "graph", "kernels", "details", "rows", "buffers", "passes", "rules", "devices"];

// The panes that fit into the window, which a link can replace.
function firstPanes(program) {
  if (program.count === 0) return program.sources.length ? ["lines", "details", "rows"] : ["details", "rows"];
  const shown = new Set(["hlo", "graph", "details", "buffers"]);
  if (program.sources.length) shown.add("lines");
  if (program.rows.length) shown.add("rows");
  else shown.add("passes");
  if (innerWidth >= 1500 && program.kernels.length) shown.add("kernels");
  if (innerWidth >= 2200) shown.add("beside");
  if (program.devices) shown.add("devices");
  return NAMES.filter((name) => shown.has(name));
}

async function start() {
  const data = await loadData();
  performance.mark("data");
  const program = new Program(data);
  performance.mark("indices");
  const state = new State(program, { stage: program.last, panes: firstPanes(program), pane: "hlo", beside: "before", search: "", theme: "", known: NAMES });
  const hlo = new HloPanes(state);
  const panes = [
    new LinesPane(state), hlo.beside, hlo.main, new GraphPane(state), new KernelsPane(state),
    new DetailsPane(state), new RowsPane(state), new BuffersPane(state), new PassesPane(state), new RulesPane(state), new DevicesPane(state),
  ];
  performance.mark("panes");
  const layout = new Layout(state, panes, document.getElementById("panes"), document.getElementById("main"));
  hlo.onOrder = (after) => layout.place("beside", "hlo", after);
  layout.onArrange = () => hlo.check();
  new Toolbar(state, layout, hlo, document.getElementById("head"));
  document.getElementById("loading").remove();
  performance.mark("drawn");
  requestAnimationFrame(() => setTimeout(() => {
    performance.mark("ready");
    document.documentElement.dataset.ready = "yes";
  }));
}

start().catch((error) => {
  console.error(error);
  document.getElementById("loading").replaceChildren(make("p", { class: "failure", text: `The program cannot be shown: ${error.message}` }));
});
