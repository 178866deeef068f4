// The graph of the last stage (or of the shown one), laid out by dagre: fusions, loops, products and what flows.
/* global dagre */
import { choice, make, makeSvg } from "./dom.js";
import { graphOf, nearAndFar } from "./graph_model.js";
import { Pane } from "./pane.js";
import { marksOf } from "./provenance.js";

const CAP = 120; // nodes; more are shown on request
const CHARACTER = 6.7; // pixels, of the font of the nodes
const KEYS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export class GraphPane extends Pane {
  constructor(state) {
    super(state, { name: "graph", title: "Graph", row: "top", weight: 1.3, help: "What flows between the instructions of the program" });
    this.unfolded = new Set();
    this.wanted = new Set();
    this.by = "instruction";
    this.follow = false;
    this.focused = -1;
    this.tools.append(
      choice("Which stage", [["last", "last stage"], ["shown", "shown stage"]], "last", (value) => {
        this.follow = value === "shown";
        this.rebuild();
      }),
      this.gather = choice("What a node is", [["instruction", "instructions"], ["line", "by line"], ["scope", "by call"]], "instruction", (value) => {
        this.by = value;
        this.rebuild();
      }),
    );
    this.button("−", "Smaller", () => this.zoom(1 / 1.25));
    this.button("+", "Larger", () => this.zoom(1.25));
    this.button("fit", "The whole graph", () => this.fit(0.05));
    this.scene = makeSvg("g");
    this.svg = makeSvg("svg", { class: "graph", tabindex: 0, role: "listbox", "aria-label": "Graph" }, [
      makeSvg("defs", {}, [makeSvg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, [
        makeSvg("path", { d: "M0 0L8 4L0 8z", class: "tip" })])]), this.scene,
    ]);
    this.more = make("button", { class: "more", type: "button", hidden: true, on: { click: () => { this.wanted = new Set([...this.shownKeys, ...this.hiddenKeys]); this.rebuild(true); } } });
    this.body.append(this.svg, this.more);
    this.listen();
  }

  get stage() { return this.follow ? this.state.stage : this.program.last; }

  update(changed, state) {
    const drawn = `${this.stage}`;
    if (drawn !== this.drawn) {
      // a graph takes longest: other panes are drawn first
      this.drawn = drawn;
      setTimeout(() => this.rebuild());
    } else if (changed.has("selection")) {
      const id = state.selection?.kind === "instruction" ? state.selection.id : -1;
      const lacking = this.left && id >= 0 && this.program.stageIndex(this.stage).computationOf.has(id) && !this.visible(id);
      if (lacking) {
        this.focused = [id, ...this.program.callers(this.stage, id)].pop();
        this.rebuild();
      } else this.mark();
    }
  }

  visible(id) { return [id, ...this.program.callers(this.stage, id)].some((at) => this.nodeOf.has(at)); }

  rebuild(stay = false) {
    performance.mark("graph-start");
    if (this.by === "instruction" && this.countInstructions() > CAP && !this.chosen) {
      this.chosen = true;
      this.by = this.program.sources.length ? "line" : "instruction";
      this.gather.value = this.by;
    }
    const graph = graphOf(this.program, this.stage, { unfolded: this.unfolded, by: this.by, focus: this.focused, wanted: this.wanted, cap: CAP });
    this.nodes = new Map(graph.nodes.map((node) => [node.key, node]));
    this.nodeOf = new Map();
    for (const node of graph.nodes) if (node.class !== "cluster" || node.foldable) for (const id of node.ids) if (!this.nodeOf.has(id) || node.class !== "cluster") this.nodeOf.set(id, node);
    this.shownKeys = graph.nodes.map(({ key }) => key);
    this.hiddenKeys = graph.nodes.flatMap((node) => node.hidden ?? []);
    const leaves = graph.nodes.filter((node) => node.class !== "cluster").length;
    this.left = graph.total - leaves;
    this.note.textContent = this.left ? `${leaves} of ${graph.total} nodes` : `${leaves} nodes`;
    this.more.hidden = this.left === 0;
    this.more.textContent = `${this.left} more: show the next`;
    this.draw(layoutOf(graph));
    this.mark(stay);
    performance.measure("graph", "graph-start");
  }

  countInstructions() { return this.program.computations[this.program.stages[this.stage].entry].instructions.length; }

  draw({ nodes, edges, width, height }) {
    this.size = [width, height];
    this.places = nodes;
    const shares = new Map();
    for (const row of this.program.rows) if (row.share > 0 && row.instruction >= 0) shares.set(row.instruction, (shares.get(row.instruction) ?? 0) + row.share);
    const made = [];
    for (const node of nodes.filter(({ class: kind }) => kind === "cluster")) made.push(this.box(node, shares));
    for (const { points, from, to, id, far } of edges) {
      made.push(makeSvg("path", { class: far ? "edge far" : "edge", d: curve(points), "marker-end": "url(#tip)", "data-from": from, "data-to": to }, [makeSvg("title", { text: this.program.shape(id) })]));
    }
    for (const node of nodes.filter(({ class: kind }) => kind !== "cluster")) made.push(this.box(node, shares));
    this.scene.replaceChildren(...made);
    this.boxes = new Map(made.filter((element) => element.dataset.key).map((element) => [element.dataset.key, element]));
    this.edges = made.filter((element) => element.dataset.from);
    this.fit();
  }

  box(node, shares) {
    const { key, x, y, width, height, title, detail, ids } = node;
    const [left, top] = [x - width / 2, y - height / 2];
    const share = node.class === "cluster" ? 0 : ids.reduce((sum, id) => sum + (shares.get(id) ?? 0), 0);
    const group = makeSvg("g", { class: `node ${node.class}`, "data-key": key, id: `node-${key}`, role: "option", "aria-label": `${title}, ${detail}` }, [
      makeSvg("rect", { x: left, y: top, width, height, rx: 5 }),
      makeSvg("text", { x: left + 10, y: top + (node.class === "cluster" ? 14 : 16), class: "title", text: clip(title, width - 26) }),
      node.class === "cluster" ? null : makeSvg("text", { x: left + 10, y: top + 30, class: "detail", text: clip(detail, width - 14 - (node.more ? 30 : 0)) }),
      share > 0 ? makeSvg("rect", { class: "hot", x: left, y: top + height - 3, width: Math.max(1, width * Math.min(1, share)), height: 3 }) : null,
      makeSvg("title", { text: `${title}\n${detail}${share > 0 ? `\n${(share * 100).toFixed(1)}% of the time` : ""}` }),
    ]);
    if (node.foldable) group.append(makeSvg("text", { x: left + width - 14, y: top + 15, class: "twist", text: node.folded ? "▸" : "▾" }));
    if (node.more) group.append(makeSvg("text", { x: left + width - 4, y: top + height - 5, class: "hidden-more", text: `+${node.more}` }));
    return group;
  }

  listen() {
    this.svg.addEventListener("click", (event) => {
      const box = event.target.closest(".node");
      if (!box || this.dragged) return;
      const node = this.nodes.get(box.dataset.key);
      if (event.target.closest(".twist")) this.fold(node);
      else if (event.target.closest(".hidden-more")) this.showNear(node);
      else this.choose(node);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const box = event.target.closest(".node");
      if (box) this.fold(this.nodes.get(box.dataset.key));
    });
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY / 500), event);
      else this.move(-event.deltaY, 0);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      const start = [event.clientX, event.clientY];
      const view = this.view ? [...this.view] : [0, 0, 1];
      this.dragged = false;
      const move = (at) => {
        if (Math.hypot(at.clientX - start[0], at.clientY - start[1]) < 4 && !this.dragged) return;
        this.dragged = true;
        this.setView(view[0] + at.clientX - start[0], view[1] + at.clientY - start[1], view[2]);
      };
      this.svg.addEventListener("pointermove", move);
      window.addEventListener("pointerup", () => this.svg.removeEventListener("pointermove", move), { once: true });
    });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.fitted) this.fit(); }).observe(this.svg);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const node = this.places?.find(({ key }) => key === this.active);
    if (event.key in KEYS) this.activate(this.nearest(node, KEYS[event.key]));
    else if (node && (event.key === "Enter" || event.key === " ")) this.choose(this.nodes.get(node.key));
    else if (node && event.key === "x") this.fold(this.nodes.get(node.key));
    else if (event.key === "+") this.zoom(1.25);
    else if (event.key === "-") this.zoom(1 / 1.25);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The next node in a direction.
  nearest(node, [dx, dy]) {
    const leaves = this.places.filter(({ class: kind }) => kind !== "cluster");
    if (!node) return leaves[0];
    let best = node;
    let least = Infinity;
    for (const other of leaves) {
      const [x, y] = [other.x - node.x, other.y - node.y];
      const along = x * dx + y * dy;
      if (along <= 1) continue;
      const distance = along + 2.5 * Math.abs(x * dy + y * dx);
      if (distance < least) [best, least] = [other, distance];
    }
    return best;
  }

  activate(node) {
    this.boxes.get(this.active)?.classList.remove("active");
    this.active = node.key;
    this.boxes.get(node.key).classList.add("active");
    this.svg.setAttribute("aria-activedescendant", `node-${node.key}`);
    this.show([node]);
  }

  fold(node) {
    if (!node.foldable) return;
    if (!this.unfolded.delete(node.key)) this.unfolded.add(node.key);
    this.rebuild(true);
  }

  showNear(node) {
    this.wanted = new Set([...this.shownKeys, ...node.hidden]);
    this.rebuild(true);
  }

  choose(node) {
    if (node.class === "group" && this.by === "line") {
      const { source, line } = this.program.line(node.ids[0]);
      this.select({ kind: "line", id: `${source}:${line}` });
    } else this.select({ kind: "instruction", id: node.ids[0] });
  }

  mark(stay = false) {
    if (!this.boxes) return;
    const marks = marksOf(this.program, this.state.related, this.stage);
    const order = { exact: 3, related: 2, around: 1 };
    const found = new Map();
    for (const [id, mark] of marks) {
      const node = this.nodeOf.get(id);
      if (!node) continue;
      const shown = node.ids.length > 1 && mark === "exact" ? "related" : mark;
      if ((order[found.get(node.key)] ?? 0) < order[shown]) found.set(node.key, shown);
    }
    for (const [key, box] of this.boxes) {
      for (const mark of Object.keys(order)) box.classList.toggle(mark, found.get(key) === mark);
      box.setAttribute("aria-selected", found.get(key) === "exact");
    }
    for (const edge of this.edges) edge.classList.toggle("lit", found.get(edge.dataset.from) === "exact" || found.get(edge.dataset.to) === "exact");
    this.svg.classList.toggle("chosen", found.size > 0);
    const best = Math.max(0, ...[...found.values()].map((mark) => order[mark]));
    const targets = this.places.filter(({ key }) => found.has(key) && order[found.get(key)] === best);
    if (targets.length && this.scrolls && !stay) this.show(targets);
  }

  // Move so that one of the nodes is in view.
  show(nodes) {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!this.view || !width) return;
    const [left, top, scale] = this.view;
    const inside = ({ x, y }) => x * scale + left > 30 && x * scale + left < width - 30 && y * scale + top > 15 && y * scale + top < height - 15;
    if (nodes.some(inside)) return;
    this.setView(width / 2 - nodes[0].x * scale, height / 2 - nodes[0].y * scale, scale);
  }

  setView(left, top, scale) {
    this.view = [left, top, scale];
    this.fitted = false;
    this.scene.setAttribute("transform", `translate(${left.toFixed(1)} ${top.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  move(dx, dy) { this.setView(this.view[0] + dx, this.view[1] + dy, this.view[2]); }

  zoom(factor, event) {
    const { clientWidth, clientHeight } = this.svg;
    const bounds = event && this.svg.getBoundingClientRect();
    const [x, y] = event ? [event.clientX - bounds.left, event.clientY - bounds.top] : [clientWidth / 2, clientHeight / 2];
    const [left, top, scale] = this.view;
    const next = Math.min(3, Math.max(0.05, scale * factor));
    this.setView(x - ((x - left) * next) / scale, y - ((y - top) * next) / scale, next);
  }

  // The whole graph where it can be read, otherwise its upper part.
  fit(least = 0.6) {
    const { clientWidth, clientHeight } = this.svg;
    if (!this.size || !clientWidth) return;
    const [width, height] = this.size;
    const scale = Math.min(1, Math.max(least, Math.min((clientWidth - 24) / width, (clientHeight - 24) / height)));
    this.setView((clientWidth - width * scale) / 2, height * scale < clientHeight ? (clientHeight - height * scale) / 2 : 12, scale);
    this.fitted = true;
  }
}

function clip(text, width) {
  const count = Math.max(3, Math.floor(width / CHARACTER));
  return text.length > count ? `${text.slice(0, count - 1)}…` : text;
}

function layoutOf({ nodes, edges }) {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) {
    if (node.class === "cluster") graph.setNode(node.key, {});
    else {
      const length = Math.max(node.title.length + (node.foldable ? 2 : 0), Math.min(26, node.detail.length));
      graph.setNode(node.key, { width: Math.min(220, Math.max(64, length * CHARACTER + 22)), height: 38 });
    }
  }
  for (const node of nodes) if (node.parent && graph.hasNode(node.parent)) graph.setParent(node.key, node.parent);
  const leaf = new Set(nodes.filter((node) => node.class !== "cluster").map((node) => node.key));
  const drawn = edges.filter(({ from, to }) => leaf.has(from) && leaf.has(to));
  const { near, far } = nearAndFar({ nodes: nodes.filter(({ key }) => leaf.has(key)), edges: drawn });
  for (const { from, to } of near) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width = 1, height = 1 } = graph.graph();
  return {
    width, height,
    nodes: nodes.map((node) => ({ ...node, ...graph.node(node.key) })).filter(({ x }) => x !== undefined),
    edges: [
      ...near.map((edge) => ({ ...edge, points: graph.edge(edge.from, edge.to).points })),
      ...far.map((edge) => ({ ...edge, far: true, points: aside(graph.node(edge.from), graph.node(edge.to)) })),
    ],
  };
}

// The points of an edge that the layout does not know: out to the right, and back.
function aside(from, to) {
  const x = Math.max(from.x + from.width / 2, to.x + to.width / 2) + 30;
  return [{ x: from.x + from.width / 2, y: from.y }, { x, y: from.y + 12 }, { x, y: to.y - 12 }, { x: to.x + to.width / 2, y: to.y }];
}

// A smooth line through points.
function curve(points) {
  const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  let path = `M${at(points[0])}`;
  for (let k = 1; k < points.length - 1; k++) {
    const next = points[k + 1];
    const end = k === points.length - 2 ? next : { x: (points[k].x + next.x) / 2, y: (points[k].y + next.y) / 2 };
    path += `Q${at(points[k])} ${at(end)}`;
  }
  return points.length === 2 ? `${path}L${at(points[1])}` : path;
}
