// The head of the page: title, stage, search, theme, help; and the keys that work everywhere.
import { make } from "./dom.js";
import { search } from "./searching.js";

const KEYS_HELP = [
  ["[  ]", "stage before, after (in the slider also the arrows)"],
  ["c  C", "next, previous difference between the stages beside each other"],
  ["/", "search; Enter and Shift+Enter go to the next and the previous"],
  ["n  N", "next, previous search result"],
  ["1 … 9, 0", "go to a pane, and show it"],
  ["↑ ↓  Page  Home End", "move in a pane"],
  ["Enter, Space", "select: all panes mark what it became and what it came from"],
  ["→ ←", "unfold, fold"],
  ["x", "in the graph: unfold, fold; there and in Buffers + − 0 change the size"],
  ["Escape", "leave the search, end the selection"],
  ["Alt+← →", "back, forward: each selection and stage is a step"],
  ["?", "this help"],
];

export class Toolbar {
  constructor(state, layout, hlo, root) {
    Object.assign(this, { state, layout, hlo, program: state.program, results: [], at: -1 });
    const { program } = this;
    const { title, facts } = program.data;
    document.title = `${title} · hloom view`;
    this.slider = make("input", { type: "range", min: 0, max: Math.max(0, program.last), step: 1, "aria-label": "Stage", on: { input: () => this.stage(Number(this.slider.value), true), change: () => this.stage(Number(this.slider.value)) } });
    this.stages = make("select", { "aria-label": "Stage by name", on: { change: () => this.stage(Number(this.stages.value)) } },
      program.stageKeys.map((key, k) => make("option", { value: k, text: `${k}. ${key}` })));
    this.before = make("button", { type: "button", text: "‹", title: "Stage before ([)", on: { click: () => this.step(-1) } });
    this.after = make("button", { type: "button", text: "›", title: "Stage after (])", on: { click: () => this.step(1) } });
    this.field = make("input", { type: "search", placeholder: "Search  ( / )", role: "combobox", "aria-expanded": false, "aria-controls": "hits", "aria-label": "Search in instructions, names, lines and kernels", spellcheck: "false", autocomplete: "off", on: { input: () => this.find(), keydown: (event) => this.searchKey(event), focus: () => this.list(true), blur: () => setTimeout(() => this.list(false), 150) } });
    this.count = make("span", { class: "count", "aria-live": "polite" });
    this.hits = make("div", { class: "hits", id: "hits", role: "listbox", "aria-label": "Search results", hidden: true });
    this.said = make("div", { class: "said", role: "status", "aria-live": "polite" });
    this.help = this.makeHelp();
    root.append(
      make("h1", { text: title, title: facts.map((pair) => pair.join(": ")).join("\n") }),
      make("div", { class: "stage", role: "group", "aria-label": "Stage" }, [this.before, this.slider, this.after, this.stages]),
      make("div", { class: "search", role: "search" }, [
        this.field, this.count,
        make("button", { type: "button", text: "↑", title: "Previous result (N)", on: { click: () => this.go(-1) } }),
        make("button", { type: "button", text: "↓", title: "Next result (n)", on: { click: () => this.go(1) } }),
        this.hits,
      ]),
      make("button", { type: "button", class: "theme", text: "◐", title: "Light or dark", "aria-label": "Light or dark", on: { click: () => this.theme() } }),
      make("button", { type: "button", text: "?", title: "Help (?)", "aria-label": "Help", on: { click: () => this.help.showModal() } }),
      this.said,
    );
    document.body.append(this.help);
    this.field.value = state.search;
    if (state.search) this.find();
    document.addEventListener("keydown", (event) => this.key(event));
    state.listen((changed) => this.show(changed));
    this.show(new Set(["stage", "theme"]));
  }

  makeHelp() {
    const close = make("button", { type: "button", text: "Close", on: { click: () => this.help.close() } });
    return make("dialog", { "aria-label": "Help" }, [
      make("h2", { text: "Keys" }),
      make("dl", { class: "keys" }, KEYS_HELP.flatMap(([keys, text]) => [make("dt", { text: keys }), make("dd", { text })])),
      make("p", { text: "Marks: + added, − removed, ~ changed against the stage beside; • a rule did it (its name is shown when the pointer rests there, and in Rules). A filled row is selected, a tinted one is what it became or came from, an outlined one encloses it." }),
      close,
    ]);
  }

  stage(stage, sliding = false) {
    if (!sliding && this.slid !== undefined) {
      // one step of the history for the whole slide
      const slid = this.slid;
      this.slid = undefined;
      this.state.change({ stage: slid }, { replace: true });
      this.state.change({ stage });
      return;
    }
    if (sliding && this.slid === undefined) this.slid = this.state.stage;
    this.state.change({ stage }, { replace: sliding });
  }

  step(by) { this.stage(Math.min(this.program.last, Math.max(0, this.state.stage + by))); }

  show(changed) {
    const { state } = this;
    if (changed.has("stage")) {
      this.slider.value = this.stages.value = state.stage;
      this.slider.setAttribute("aria-valuetext", this.program.stageKeys[state.stage] ?? "");
      this.before.disabled = state.stage <= 0;
      this.after.disabled = state.stage >= this.program.last;
    }
    if (changed.has("theme")) {
      if (state.theme) document.documentElement.dataset.theme = state.theme;
      else delete document.documentElement.dataset.theme;
    }
    if (changed.has("search") && this.field.value !== state.search) {
      this.field.value = state.search;
      this.find();
    }
    if (changed.has("selection")) {
      const { related: found, selection } = state;
      this.said.textContent = selection ? `${selection.kind} selected; ${found.instructions.size} instructions in all stages, ${found.lines.size} lines, ${found.kernels.size} kernels, ${found.buffers.size} buffers` : "nothing selected";
    }
  }

  theme() {
    const dark = this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.state.change({ theme: dark ? "light" : "dark" }, { replace: true });
  }

  find() {
    performance.mark("search-start");
    this.results = search(this.program, this.state.stage, this.field.value);
    performance.measure("search", "search-start");
    this.at = -1;
    this.state.change({ search: this.field.value }, { replace: true });
    this.counted();
    this.list(document.activeElement === this.field);
  }

  counted() {
    const { length } = this.results;
    const many = length >= 500 ? "500+" : String(length);
    this.count.textContent = this.field.value ? `${this.at < 0 ? "" : `${this.at + 1} / `}${many}` : "";
  }

  // The results below the field, around the one that is chosen.
  list(open) {
    this.hits.hidden = !open || this.results.length === 0;
    this.field.setAttribute("aria-expanded", !this.hits.hidden);
    if (this.hits.hidden) return;
    const from = Math.max(0, Math.min(this.at - 5, this.results.length - 12));
    this.hits.replaceChildren(...this.results.slice(from, from + 12).map((result, k) => make("div", {
      class: `hit${from + k === this.at ? " active" : ""}`, role: "option", "aria-selected": from + k === this.at,
      on: { pointerdown: (event) => { event.preventDefault(); this.at = from + k - 1; this.go(1); } },
    }, [make("span", { class: "kind", text: result.kind }), make("code", { text: result.text }), result.stage === this.state.stage ? null : make("span", { class: "dim", text: this.program.stageKeys[result.stage] })])));
  }

  go(step) {
    if (this.results.length === 0) return;
    const { length } = this.results;
    this.at = (this.at + step + (this.at < 0 && step < 0 ? 1 : 0) + length) % length;
    const { kind, id, stage } = this.results[this.at];
    this.state.select({ kind, id }, { from: "search", ...(kind === "instruction" ? { stage } : {}) });
    this.counted();
    this.list(document.activeElement === this.field);
  }

  searchKey(event) {
    if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowDown") this.go(1);
    else if (event.key === "ArrowUp") this.go(-1);
    else if (event.key === "Escape") {
      this.field.value = "";
      this.find();
      this.layout.go(this.state.pane);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  key(event) {
    const { tagName, type } = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    if (tagName === "SELECT" || (tagName === "INPUT" && type !== "range")) return;
    const pane = /^[0-9]$/.test(event.key) ? this.layout.panes[(Number(event.key) + 9) % 10] : null;
    if (pane) this.layout.go(pane.name);
    else if (event.key === "[") this.step(-1);
    else if (event.key === "]") this.step(1);
    else if (event.key === "c" || event.key === "C") this.hlo.goToChange(event.key === "c" ? 1 : -1);
    else if (event.key === "/") this.field.select();
    else if (event.key === "n") this.go(1);
    else if (event.key === "N") this.go(-1);
    else if (event.key === "?") this.help.showModal();
    else if (event.key === "Escape") this.state.change({ selection: null });
    else return;
    event.preventDefault();
  }
}
