// The user's Python lines, with the part of time or bytes that each takes.
import { choice, make, tokenSpans } from "./dom.js";
import { bytesText, pythonTokens, secondsText, shareText } from "./format.js";
import { lineKey } from "./model.js";
import { Pane } from "./pane.js";
import { VirtualList } from "./virtual_list.js";

export class LinesPane extends Pane {
  constructor(state) {
    super(state, { name: "lines", title: "Lines", row: "top", weight: 1, help: "The lines of the program, with what they cost" });
    this.rows = [];
    this.program.sources.forEach((source, k) => {
      this.rows.push({ source: k });
      source.lines.forEach((text, n) => this.rows.push({ source: k, line: source.first + n, key: lineKey(k, source.first + n), text }));
    });
    this.at = new Map(this.rows.map((row, k) => [row.key, k]));
    this.costs = { seconds: new Map(), bytes: new Map(), flops: new Map() };
    for (const row of this.program.rows) {
      if (row.source < 0 || row.source === null || row.source === undefined) continue;
      const key = lineKey(row.source, row.line);
      for (const of of ["bytes", "flops"]) {
        if (row[of] > 0) this.costs[of].set(key, (this.costs[of].get(key) ?? 0) + row[of] * Math.max(1, row.calls ?? 1));
      }
    }
    for (const { source, line, seconds } of this.program.profile?.lines ?? []) this.costs.seconds.set(lineKey(source, line), seconds);
    this.cost = this.costs.seconds.size ? "seconds" : "bytes";
    const kinds = [["seconds", "time"], ["bytes", "bytes"], ["flops", "flops"]].filter(([key]) => this.costs[key].size);
    if (kinds.length) {
      this.tools.append(choice("What the bars show", kinds, this.cost, (value) => {
        this.cost = value;
        this.list.refresh();
      }));
    }
    this.list = new VirtualList({
      label: "Lines of the program",
      render: (index) => this.draw(this.rows[index]),
      act: (index) => { if (this.program.byLine.has(this.rows[index].key)) this.select({ kind: "line", id: this.rows[index].key }); },
    });
    this.body.append(this.rows.length ? this.list.element : make("p", { class: "empty", text: "No instruction names a line of a source file." }));
    this.list.setCount(this.rows.length);
  }

  draw(row) {
    if (row.line === undefined) {
      const { path } = this.program.sources[row.source];
      return make("div", { class: "file", text: this.program.sourceName(row.source), title: path });
    }
    const costs = this.costs[this.cost];
    const cost = costs.get(row.key);
    const total = this.cost === "seconds" ? this.program.profile.seconds : [...costs.values()].reduce((a, b) => a + b, 0);
    const share = cost === undefined || !total ? 0 : Math.min(1, cost / total);
    const text = { seconds: secondsText, bytes: bytesText, flops: (value) => bytesText(value).replace("B", "F") }[this.cost](cost);
    const bar = make("span", { class: "heat", title: cost === undefined ? null : `${text}, ${shareText(share)} of all` }, [
      make("span", { class: "fill" }), make("span", { class: "value", text: cost === undefined ? "" : shareText(share) }),
    ]);
    bar.firstChild.style.width = `${(share * 100).toFixed(1)}%`;
    const used = this.program.byLine.has(row.key);
    const { related: found, selection } = this.state;
    const exact = selection?.kind === "line" && selection.id === row.key;
    const mark = exact ? " exact" : found.lines.has(row.key) ? " related" : "";
    return make("div", { class: `line${used ? " used" : ""}${mark}`, "aria-selected": exact }, [
      make("span", { class: "number", text: row.line }), bar, make("code", {}, tokenSpans(pythonTokens(row.text))),
    ]);
  }

  update(changed, state) {
    this.list.refresh();
    if (!changed.has("selection") || !this.scrolls) return;
    const marked = [...state.related.lines].map((key) => this.at.get(key)).filter((at) => at !== undefined).sort((a, b) => a - b);
    const selected = state.selection?.kind === "instruction" ? this.program.line(state.selection.id) : null;
    const own = selected ? this.at.get(lineKey(selected.source, selected.line)) : undefined;
    const target = own ?? marked[0];
    if (target !== undefined && !(own === undefined && marked.some((at) => this.list.inView(at)))) this.list.scrollTo(target);
  }
}
