// The panes that are tables: the rows that run, the passes, the rule applications of a stage, the devices.
import { make } from "./dom.js";
import { bytesText, scaled, secondsText, shareText } from "./format.js";
import { Pane } from "./pane.js";
import { Table } from "./table.js";

export class RowsPane extends Pane {
  constructor(state) {
    super(state, { name: "rows", title: "Rows", row: "bottom", weight: 1.4, help: "What the program runs, with time, bytes, operations and their part of what the machine can do" });
    const { program } = this;
    const profiled = program.rows.some((row) => row.seconds > 0);
    const longest = Math.max(0, ...program.rows.map((row) => row.share ?? 0));
    const largest = Math.max(1, ...program.rows.map((row) => row.bytes ?? 0));
    const place = (row) => (row.source >= 0 && row.source !== null ? `${program.sourceName(row.source)}:${row.line}` : "");
    const columns = [
      { title: "row", width: "minmax(110px, 2.4fr)", text: (row) => row.label, class: "code" },
      ...(profiled ? [
        { title: "time", width: "68px", number: true, text: (row) => secondsText(row.seconds), value: (row) => row.seconds },
        { title: "share", width: "62px", number: true, text: (row) => shareText(row.share), value: (row) => row.share, bar: (row) => (longest ? row.share / longest : 0) },
      ] : []),
      { title: "bytes", width: "68px", number: true, text: (row) => bytesText(row.bytes), value: (row) => row.bytes, bar: profiled ? undefined : (row) => row.bytes / largest },
      { title: "flops", width: "68px", number: true, text: (row) => scaled(row.flops, "F"), value: (row) => row.flops },
      ...(profiled ? [
        { title: "of memory", help: "rate of bytes beside the machine's memory; more than 100%: the bytes came from a cache", width: "66px", number: true, text: (row) => shareText(row.of_memory), value: (row) => row.of_memory },
        { title: "of peak", help: "part of the arithmetic peak of the machine", width: "58px", number: true, text: (row) => shareText(row.of_peak), value: (row) => row.of_peak },
      ] : []),
      { title: "kind", width: "minmax(54px, 0.7fr)", text: (row) => row.kind, class: "dim" },
      { title: "line", width: "minmax(80px, 1fr)", text: place, value: (row) => row.source * 1e6 + row.line, class: "dim" },
      ...(profiled ? [{ title: "calls", width: "46px", number: true, text: (row) => String(row.calls ?? ""), value: (row) => row.calls }] : []),
    ];
    const numbers = new Map(program.rows.map((row, k) => [row, k]));
    this.number = (row) => numbers.get(row);
    this.table = new Table({
      label: "Rows of the program", columns, rows: program.rows, empty: "This program has no rows.",
      act: (row) => this.select({ kind: "row", id: this.number(row) }), mark: (row) => this.markOf(row),
    });
    const { profile } = program;
    this.note.textContent = profile ? `${secondsText(profile.seconds)} a call${profile.machine ? ` · ${profile.machine}` : ""}` : `${program.rows.length}, not profiled`;
    this.body.append(this.table.element);
  }

  markOf(row) {
    const { selection, related: found } = this.state;
    const k = this.number(row);
    return selection?.kind === "row" && selection.id === k ? "exact" : found.rows.has(k) ? "related" : "";
  }

  update(changed) {
    this.table.list.refresh();
    if (changed.has("selection") && this.scrolls) this.table.scrollToFirst((row) => this.markOf(row));
  }
}

export class PassesPane extends Pane {
  constructor(state) {
    super(state, { name: "passes", title: "Passes", row: "bottom", weight: 1.1, help: "All passes with their times, and what their rules did" });
    const { program } = this;
    const longest = Math.max(1e-9, ...program.passes.map((pass) => pass.milliseconds ?? 0));
    let stage = 0;
    const rows = program.passes.map((pass) => {
      // the stages are those passes that changed something, in the same order
      const matches = pass.changed && program.stages[stage + 1]?.name === pass.name;
      return { ...pass, stage: matches ? ++stage : -1 };
    });
    const total = program.passes.reduce((sum, pass) => sum + (pass.milliseconds ?? 0), 0);
    this.note.textContent = `${rows.length} passes, ${secondsText(total / 1000)}`;
    const rules = (row) => Object.entries(row.rules ?? {}).map(([name, count]) => `${name} ×${count}`).join(", ");
    this.table = new Table({
      label: "Passes", rows, empty: "This program was not compiled here.",
      columns: [
        { title: "pass", width: "minmax(130px, 1.2fr)", text: (row) => row.name, class: "code" },
        { title: "time", width: "72px", number: true, text: (row) => secondsText((row.milliseconds ?? 0) / 1000), value: (row) => row.milliseconds, bar: (row) => row.milliseconds / longest },
        { title: "instructions", width: "96px", number: true, text: (row) => (row.changed ? `${row.before} → ${row.after}` : "·"), value: (row) => row.after - row.before },
        { title: "rules", width: "minmax(100px, 2fr)", text: rules, class: "dim" },
      ],
      act: (row) => { if (row.stage >= 0) state.change({ stage: row.stage }, { from: this.name }); },
      mark: (row) => (row.stage === state.stage ? "exact" : row.changed ? "" : "unused"),
    });
    this.body.append(this.table.element);
  }

  update(changed, state) {
    this.table.list.refresh();
    if (changed.has("stage") && this.scrolls) this.table.scrollToFirst((row) => row.stage === state.stage);
  }
}

export class RulesPane extends Pane {
  constructor(state) {
    super(state, { name: "rules", title: "Rules", row: "bottom", weight: 1, help: "What the rules of the chosen stage's pass did, in their order" });
    const { program } = this;
    const names = (ids) => ids.map((id) => program.name(id)).join(", ");
    this.table = new Table({
      label: "Rule applications", rows: [],
      columns: [
        { title: "rule", width: "minmax(120px, 1fr)", text: (row) => program.string(row.rule), class: "code" },
        { title: "from", width: "minmax(80px, 1fr)", text: (row) => (row.before >= 0 ? program.name(row.before) : ""), class: "code" },
        { title: "to", width: "minmax(80px, 1fr)", text: (row) => names(row.after ?? []) || "nothing", class: "code" },
        { title: "in", width: "minmax(60px, 0.7fr)", text: (row) => program.string(row.computation), class: "dim" },
      ],
      act: (row) => {
        const id = row.before >= 0 ? row.before : row.after[0];
        if (id !== undefined) this.select({ kind: "instruction", id });
      },
      mark: (row) => {
        const found = state.related;
        const { selection } = state;
        if (!selection) return "";
        if (selection.kind === "instruction" && row.before === selection.id) return "exact";
        return found.instructions.has(row.before) || row.after.some((id) => found.instructions.has(id)) ? "related" : "";
      },
    });
    this.none = make("p", { class: "empty" });
    this.body.append(this.table.list.element, this.none);
  }

  update(changed, state) {
    if (this.drawn !== state.stage) {
      this.drawn = state.stage;
      const stage = this.program.stages[state.stage];
      const rules = stage?.rules ?? [];
      this.table.setRows(rules);
      this.note.textContent = stage ? `${stage.name}: ${rules.length}` : "";
      this.none.textContent = `${stage?.name ?? "This stage"} has no rules of its own: it is not a set of rewrite rules.`;
      this.none.hidden = rules.length > 0;
      this.table.list.element.hidden = rules.length === 0;
    }
    this.table.list.refresh();
    if (changed.has("selection") && this.scrolls) this.table.scrollToFirst((row) => this.table.mark(row));
  }
}

export class DevicesPane extends Pane {
  constructor(state) {
    super(state, { name: "devices", title: "Devices", row: "bottom", weight: 0.9, help: "The mesh, and what the devices send each other" });
    const { program } = this;
    const { mesh = "", collectives = [] } = program.devices ?? {};
    this.table = new Table({
      label: "Collectives", rows: collectives, empty: program.devices ? "The devices send each other nothing." : "This program runs on one device.",
      columns: [
        { title: "collective", width: "minmax(110px, 1fr)", text: (row) => (row.instruction >= 0 ? program.name(row.instruction) : ""), class: "code" },
        { title: "bytes", width: "72px", number: true, text: (row) => bytesText(row.bytes), value: (row) => row.bytes },
        { title: "between", width: "minmax(110px, 1.6fr)", text: (row) => row.text, class: "dim" },
      ],
      act: (row) => this.select({ kind: "instruction", id: row.instruction }),
      mark: (row) => (state.selection?.kind === "instruction" && state.selection.id === row.instruction ? "exact" : state.related.instructions.has(row.instruction) ? "related" : ""),
    });
    if (mesh) this.body.append(make("pre", { class: "mesh", text: mesh }));
    this.body.append(this.table.element);
  }

  update(changed) {
    this.table.list.refresh();
    if (changed.has("selection") && this.scrolls) this.table.scrollToFirst((row) => this.table.mark(row));
  }
}
