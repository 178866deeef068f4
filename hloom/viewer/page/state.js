// The state of the page: stage, selection, panes, search, theme. Panes listen; the address follows it.
import { fragmentOf, parseFragment } from "./link.js";
import { related } from "./provenance.js";

export class State {
  constructor(program, defaults) {
    this.program = program;
    this.defaults = defaults;
    this.listeners = [];
    Object.assign(this, parseFragment(program, location.hash, defaults));
    this.related = related(program, this.selection);
    this.origin = "";
    window.addEventListener("popstate", () => this.restore());
    window.addEventListener("hashchange", () => this.restore());
  }

  // listener(changed names, the state)
  listen(listener) { this.listeners.push(listener); }

  // Change some of the values; `from` is the pane in which it happened, which does not scroll by itself.
  change(values, { from = "", replace = false } = {}) {
    const changed = Object.keys(values).filter((name) => !equal(this[name], values[name]));
    if (changed.length === 0) return;
    Object.assign(this, values);
    this.tell(changed, from);
    const fragment = fragmentOf(this.program, this, this.defaults);
    const address = `${location.pathname}${location.search}${fragment ? `#${fragment}` : ""}`;
    if (replace) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  }

  // Select a thing; an instruction that the shown stage does not have a trace of also changes the stage.
  select(selection, { from = "", stage } = {}) {
    this.change({ selection, ...(stage === undefined ? {} : { stage }) }, { from });
  }

  restore() {
    const values = parseFragment(this.program, location.hash, this.defaults);
    const changed = Object.keys(values).filter((name) => !equal(this[name], values[name]));
    Object.assign(this, values);
    if (changed.length) this.tell(changed, "");
  }

  tell(changed, from) {
    performance.mark("change");
    if (changed.includes("selection")) this.related = related(this.program, this.selection);
    this.origin = from;
    for (const listener of this.listeners) listener(new Set(changed), this);
    performance.measure(changed.join(" "), "change");
  }
}

function equal(a, b) { return a === b || JSON.stringify(a) === JSON.stringify(b); }
