// Where the panes are: two rows side by side, with borders to drag; in a narrow window one pane, with tabs.
import { make } from "./dom.js";

const NARROW = matchMedia("(max-width: 899px)");

export class Layout {
  constructor(state, panes, bar, root) {
    Object.assign(this, { state, panes, root });
    this.weights = new Map(panes.map((pane) => [pane.name, pane.weight]));
    this.share = 0.62; // of the height, for the upper row
    this.rows = { top: make("div", { class: "panes" }), bottom: make("div", { class: "panes" }) };
    this.border = this.splitter("horizontal", () => this.share, (share) => {
      this.share = Math.min(0.9, Math.max(0.1, share));
      this.size();
    });
    this.bar = bar;
    this.buttons = panes.map((pane, k) => make("button", {
      type: "button", "data-pane": pane.name, text: pane.title, title: `${pane.title}: show or hide (${(k + 1) % 10}: go there)`,
      on: { click: () => this.toggle(pane.name) },
    }));
    bar.append(...this.buttons);
    bar.addEventListener("keydown", (event) => this.rove(event));
    this.order = new Map(panes.map((pane, k) => [pane.name, k]));
    NARROW.addEventListener("change", () => this.arrange());
    state.listen((changed) => {
      if (changed.has("panes") || (changed.has("pane") && (NARROW.matches || !state.panes.includes(state.pane)))) this.arrange();
    });
    root.addEventListener("focusin", (event) => {
      const name = event.target.closest("[data-pane]")?.dataset.pane;
      if (name) state.change({ pane: name }, { replace: true, from: name });
    });
    this.arrange();
  }

  get visible() {
    if (NARROW.matches) return this.panes.filter((pane) => pane.name === this.state.pane);
    const names = new Set(this.state.panes);
    return this.panes.filter((pane) => names.has(pane.name)).sort((a, b) => this.order.get(a.name) - this.order.get(b.name));
  }

  // Put one pane directly before or after another.
  place(name, beside, after) {
    const position = this.order.get(beside) + (after ? 0.5 : -0.5);
    if (this.order.get(name) === position) return;
    this.order.set(name, position);
    this.arrange();
  }

  arrange() {
    const narrow = NARROW.matches;
    document.body.classList.toggle("narrow", narrow);
    this.bar.setAttribute("role", narrow ? "tablist" : "toolbar");
    const shown = this.visible;
    for (const [name, row] of Object.entries(this.rows)) {
      const panes = narrow ? (name === "top" ? shown : []) : shown.filter((pane) => pane.row === name);
      put(row, panes.map((pane) => pane.element), (k) => this.between(panes[k - 1], panes[k]));
    }
    const rows = Object.values(this.rows).filter((row) => row.children.length);
    put(this.root, rows, () => this.border);
    this.buttons.forEach((button) => {
      const on = shown.some((pane) => pane.name === button.dataset.pane);
      for (const name of ["role", "aria-selected", "aria-pressed", "aria-controls"]) button.removeAttribute(name);
      if (narrow) button.setAttribute("role", "tab");
      button.setAttribute(narrow ? "aria-selected" : "aria-pressed", on);
      button.tabIndex = button.dataset.pane === this.state.pane ? 0 : -1;
    });
    if (!this.buttons.some((button) => button.tabIndex === 0)) this.buttons[0].tabIndex = 0;
    this.size();
    for (const pane of shown) pane.flush();
    this.onArrange?.();
  }

  size() {
    const both = this.root.children.length > 1;
    this.rows.top.style.flexGrow = both ? this.share : 1;
    this.rows.bottom.style.flexGrow = both ? 1 - this.share : 1;
    for (const pane of this.panes) pane.element.style.flexGrow = this.weights.get(pane.name);
  }

  toggle(name) {
    const { panes } = this.state;
    if (NARROW.matches) this.state.change({ pane: name });
    else if (!panes.includes(name)) this.state.change({ panes: [...panes, name], pane: name });
    else if (panes.length > 1) this.state.change({ panes: panes.filter((other) => other !== name) });
  }

  // Show a pane, and give it the focus.
  go(name) {
    const { panes } = this.state;
    this.state.change({ pane: name, panes: panes.includes(name) || NARROW.matches ? panes : [...panes, name] }, { replace: true });
    this.panes.find((pane) => pane.name === name).focus();
  }

  // Arrows move along the buttons.
  rove(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.buttons.indexOf(document.activeElement);
    const next = this.buttons[(at + step + this.buttons.length) % this.buttons.length];
    this.buttons.forEach((button) => { button.tabIndex = button === next ? 0 : -1; });
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  between(left, right) {
    const sum = this.weights.get(left.name) + this.weights.get(right.name);
    return this.splitter("vertical", () => this.weights.get(left.name) / sum, (part) => {
      const first = Math.min(0.92, Math.max(0.08, part)) * sum;
      this.weights.set(left.name, first);
      this.weights.set(right.name, sum - first);
      this.size();
    });
  }

  // A border that is dragged, or moved by arrows: get and set the part of what is before it.
  splitter(orientation, get, set) {
    const upright = orientation === "vertical";
    const element = make("div", { class: `splitter ${orientation}`, role: "separator", tabindex: 0, "aria-orientation": orientation, "aria-label": "size of the panes" });
    const update = (part) => {
      set(part);
      element.setAttribute("aria-valuenow", Math.round(get() * 100));
    };
    element.addEventListener("pointerdown", (event) => {
      const before = element.previousElementSibling.getBoundingClientRect();
      const after = element.nextElementSibling.getBoundingClientRect();
      const [start, end] = upright ? [before.left, after.right] : [before.top, after.bottom];
      const move = (at) => update(((upright ? at.clientX : at.clientY) - start) / (end - start));
      element.setPointerCapture(event.pointerId);
      element.addEventListener("pointermove", move);
      element.addEventListener("pointerup", () => element.removeEventListener("pointermove", move), { once: true });
      event.preventDefault();
    });
    element.addEventListener("keydown", (event) => {
      const step = (upright ? { ArrowLeft: -0.04, ArrowRight: 0.04 } : { ArrowUp: -0.04, ArrowDown: 0.04 })[event.key];
      if (!step) return;
      update(get() + step);
      event.preventDefault();
      event.stopPropagation();
    });
    return element;
  }
}

// The elements as children, with a border before each but the first. Those that are there already are not moved: they
// would lose where they are scrolled to.
function put(parent, elements, border) {
  const wanted = new Set(elements);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, k) => {
    if (parent.children[k] !== element) parent.insertBefore(element, parent.children[k] ?? null);
  });
  elements.slice(1).forEach((element, k) => element.before(border(k + 1)));
}
