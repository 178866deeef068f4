// What all panes have: a title, tools, a body, and the moment at which they draw. A pane that is hidden does nothing
// until it is shown.
import { make } from "./dom.js";

export class Pane {
  // row: "top" or "bottom"; weight: its part of the width
  constructor(state, { name, title, row, weight, help }) {
    Object.assign(this, { state, program: state.program, name, title, row, weight });
    this.heading = make("h2", { text: title, title: help });
    this.note = make("span", { class: "note" });
    this.tools = make("div", { class: "tools" });
    this.body = make("div", { class: "body" });
    this.element = make("section", { class: "pane", id: `pane-${name}`, "aria-label": title, "data-pane": name }, [
      make("header", {}, [this.heading, this.note, this.tools]), this.body,
    ]);
    this.pending = new Set(["stage", "selection", "beside", "theme", "panes"]);
    state.listen((changed) => {
      for (const key of changed) this.pending.add(key);
      if (this.shown) this.flush();
    });
  }

  get shown() { return this.element.isConnected && this.element.clientWidth > 0; }

  // Draw what has changed since the pane was last drawn.
  flush() {
    if (this.pending.size === 0) return;
    const changed = this.pending;
    this.pending = new Set();
    this.update(changed, this.state);
  }

  // A selection that was made in this pane does not scroll it.
  get scrolls() { return this.state.origin !== this.name; }

  select(selection) { this.state.select(selection, { from: this.name }); }

  button(text, title, click) {
    const button = make("button", { class: "tool", text, title, type: "button", on: { click } });
    this.tools.append(button);
    return button;
  }

  focus() { (this.body.querySelector("[tabindex='0']") ?? this.element).focus({ preventScroll: true }); }
}
