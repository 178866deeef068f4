// What is known of the selected thing, with links to all that belongs to it.
import { make } from "./dom.js";
import { bytesText, memoryText, scaled, secondsText, shareText } from "./format.js";
import { lineKey } from "./model.js";
import { Pane } from "./pane.js";
import { lineage } from "./provenance.js";

const MOST = 40; // links in one entry

export class DetailsPane extends Pane {
  constructor(state) {
    super(state, { name: "details", title: "Details", row: "bottom", weight: 1, help: "The selected thing, what it came from and what it became" });
    this.list = make("dl", { class: "details" });
    this.body.append(this.list);
    this.body.classList.add("scrolls");
    this.body.tabIndex = 0;
    this.body.setAttribute("aria-label", "Details");
    this.body.setAttribute("role", "region");
  }

  focus() { this.body.focus({ preventScroll: true }); }

  update(changed, state) {
    if (this.drawn !== undefined && !changed.has("selection") && !changed.has("stage")) return;
    this.drawn = true;
    const { selection } = state;
    const show = selection ? this[`${selection.kind}Entries`](selection.id) : [...this.program.data.facts, ["to begin", "Select a line, an instruction, a node, a kernel, a row or a buffer: every pane marks what it became and what it came from. [ and ] go through the stages, / searches, ? lists all keys."]];
    this.heading.textContent = selection ? "Details" : "Program";
    const entries = show.filter(([, ...values]) => values.flat().some((value) => value !== null && value !== undefined && value !== ""));
    this.list.replaceChildren(...entries.flatMap(([name, ...values]) => [
      make("dt", { text: name }), make("dd", {}, shortened(values.flat()).map((value) => value ?? "")),
    ]));
    this.body.scrollTop = 0;
  }

  // A link that selects a thing.
  link(selection, text, stage) {
    return make("button", { class: "link", type: "button", text, on: { click: () => this.state.select(selection, { from: this.name, stage }) } });
  }

  links(ids, stage) { return ids.map((id) => this.link({ kind: "instruction", id }, this.program.name(id), stage)); }

  lineLink(at) {
    if (!at || at.source < 0 || at.source === null || at.source === undefined) return null;
    const { source, line } = at;
    const text = this.program.sources[source].lines[line - this.program.sources[source].first]?.trim() ?? "";
    return [this.link({ kind: "line", id: lineKey(source, line) }, `${this.program.sourceName(source)}:${line}`), make("code", { text: ` ${text}` })];
  }

  belonging() {
    const { kernels, rows, buffers, selection } = this.state.related;
    const others = (set, kind) => [...set].filter((id) => kind !== selection.kind || id !== selection.id);
    return [
      ["kernels", others(kernels, "kernel").map((id) => this.link({ kind: "kernel", id }, this.program.kernels[id].name))],
      ["rows", others(rows, "row").map((id) => this.link({ kind: "row", id }, this.program.rows[id].label))],
      ["buffers", others(buffers, "buffer").map((id) => this.link({ kind: "buffer", id }, this.bufferText(id)))],
    ];
  }

  bufferText(id) {
    const { memory, offset, size, values } = this.program.buffers[id];
    const [value] = values;
    const name = typeof value === "number" ? this.program.name(value) : value ?? "";
    return memory === "arena" ? `${bytesText(size)} at ${offset}` : `${memory} ${name}`;
  }

  instructionEntries(id) {
    const { program, state } = this;
    const [first, last] = [program.firstStage[id], program.lastStage[id]];
    const here = first <= state.stage && state.stage <= last ? state.stage : last;
    const steps = lineage(program, id).map(({ stage, ids }) => make("div", { class: "step" }, [
      make("span", { class: "dim", text: program.stageKeys[stage] }),
      ...shortened(ids.map((at) => (at === id ? make("b", { text: program.name(at) }) : this.link({ kind: "instruction", id: at }, program.name(at), stage)))),
    ]));
    const inStages = first < 0 ? "in no stage: a rule made it, and a later one replaced it" : first === last ? program.stageKeys[first] : `${program.stageKeys[first]} to ${program.stageKeys[last]}`;
    const rules = [];
    for (const s of new Set([first, last + 1])) {
      for (const rule of program.stages[s]?.rules ?? []) {
        if (rule.before === id || rule.after.includes(id)) rules.push(this.ruleText(rule, s));
      }
    }
    return [
      ["instruction", make("b", { text: program.name(id) })],
      ["shape", make("code", { text: program.shape(id) })],
      ["operation", make("code", { text: `${program.opcode(id)}${program.attributes(id) ? ` ${program.attributes(id).replace(/^, /, "")}` : ""}` })],
      ["name in Python", program.opName(id)],
      ["line", this.lineLink(program.line(id))],
      ["operands", this.links(program.operands(id))],
      ["used by", here >= 0 ? this.links(program.users(here, id)) : []],
      ["encloses", program.encloses(id) ? program.called(id).map((at) => make("code", { text: program.computations[at].name })) : []],
      ["cost", [bytesText(program.instructions.bytes[id]), scaled(program.instructions.flops[id], "F")].filter(Boolean).join(", ")],
      ["in stages", inStages],
      ["history", steps.length > 1 ? steps : []],
      ["rules", rules],
      ...this.belonging(),
    ];
  }

  ruleText(rule, s) {
    const { program } = this;
    const before = rule.before >= 0 ? program.name(rule.before) : "";
    const after = rule.after.map((at) => program.name(at)).join(", ") || "nothing";
    return make("div", {}, [
      make("b", { text: program.string(rule.rule) }), ` in ${program.stageKeys[s]}: ${before} → ${after}`,
      rule.text ? make("pre", { text: rule.text.split("\n").slice(0, 24).join("\n") }) : null,
    ]);
  }

  lineEntries(key) {
    const [source, line] = key.split(":").map(Number);
    const ids = this.program.byLine.get(key) ?? [];
    const s = this.state.stage;
    const here = ids.filter((id) => this.program.firstStage[id] <= s && s <= this.program.lastStage[id]);
    return [
      ["line", this.lineLink({ source, line })],
      ["file", this.program.sources[source].path],
      [`in ${this.program.stageKeys[s]}`, this.links(here, s)],
      ["in all stages", `${ids.length} instructions`],
      ...this.belonging(),
    ];
  }

  kernelEntries(id) {
    const kernel = this.program.kernels[id];
    return [
      ["kernel", make("b", { text: kernel.name })], ["algorithm", make("code", { text: kernel.algorithm ?? "" })],
      ["schedule", kernel.schedule.map((step) => make("div", {}, [make("code", { text: step })]))],
      ["runs", this.links(kernel.instructions, this.program.last)], ...this.belonging(),
    ];
  }

  rowEntries(id) {
    const row = this.program.rows[id];
    const rate = row.seconds > 0 && row.bytes > 0 ? `${bytesText(row.bytes / row.seconds)}/s` : "";
    return [
      ["row", make("b", { text: row.label })], ["kind", row.kind], ["line", this.lineLink(row)],
      ["time", row.seconds > 0 ? `${secondsText(row.seconds)}, ${shareText(row.share)} of the program, ${row.calls} calls` : ""],
      ["bytes", `${bytesText(row.bytes)}${rate ? `, ${rate}${row.of_memory ? `, ${memoryText(row.of_memory)} of the machine's memory` : ""}` : ""}`],
      ["flops", row.flops > 0 ? `${scaled(row.flops, "F")}${row.of_peak ? `, ${shareText(row.of_peak)} of the machine` : ""}` : ""],
      ["instruction", row.instruction >= 0 ? this.links([row.instruction], this.program.last) : []], ...this.belonging(),
    ];
  }

  bufferEntries(id) {
    const buffer = this.program.buffers[id];
    const ids = buffer.values.filter((value) => typeof value === "number");
    const at = (position) => (this.program.schedule[position] === undefined ? position : `${position} (${this.program.name(this.program.schedule[position])})`);
    return [
      ["buffer", make("b", { text: `${buffer.memory}${buffer.space ? `, ${buffer.space}` : ""}` })],
      ["values", [...this.links(ids, this.program.last), ...buffer.values.filter((value) => typeof value === "string")]],
      ["offset", buffer.offset === null ? "" : String(buffer.offset)],
      ["size", `${bytesText(buffer.size)} (${buffer.size})`],
      ["padding", buffer.logical >= 0 && buffer.logical < buffer.size ? `${bytesText(buffer.size - buffer.logical)}, ${shareText(1 - buffer.logical / buffer.size)}` : ""],
      ["live", `from ${at(buffer.first)} to ${at(buffer.last)}`], ["why", buffer.reason], ...this.belonging(),
    ];
  }
}

// A list with a word about what is left out.
function shortened(values) {
  const shown = values.filter((value) => value !== null && value !== undefined);
  return shown.length <= MOST ? shown : [...shown.slice(0, MOST), `and ${shown.length - MOST} more`];
}
