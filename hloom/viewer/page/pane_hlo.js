// The instructions of the chosen stage, and of one before or after it: what a pass added, removed and changed.
import { choice, make } from "./dom.js";
import { aligned, counted, difference, rulesOf } from "./diff.js";
import { lineKey } from "./model.js";
import { foldable, keysAbove, outline, positions } from "./outline.js";
import { Pane } from "./pane.js";
import { marksOf } from "./provenance.js";
import { VirtualList } from "./virtual_list.js";

const SIGNS = { added: "+", removed: "−", changed: "~" };
const MANY_INSTRUCTIONS = 400; // a program with more instructions opens with its computations folded

class HloPane extends Pane {
  constructor(state, given, shared) {
    super(state, given);
    this.shared = shared;
    this.rows = [];
    this.list = new VirtualList({
      label: given.help, role: "tree", rowRole: "treeitem",
      render: (index) => this.draw(this.rows[index]),
      act: (index, event) => this.act(this.rows[index], event),
      fold: (index, open) => this.fold(this.rows[index], open),
    });
    this.body.append(this.list.element);
  }

  update(changed) { this.shared.update(this, changed); }

  act(row, event) {
    const reference = event.target.closest?.("[data-id]");
    if (reference) this.select({ kind: "instruction", id: Number(reference.dataset.id) });
    else if (row.kind === "instruction" && event.target.closest?.(".ruled")) this.showRules(row.id);
    else if (row.kind === "instruction") this.select({ kind: "instruction", id: row.id });
    else if (row.kind === "group" && row.line && !event.target.closest?.(".twist") && event.type === "click") {
      this.select({ kind: "line", id: lineKey(row.line.source, row.line.line) });
    } else if (row.key) this.fold(row, this.shared.folded.has(row.key));
  }

  // The rules of the stage, with those that made or replaced an instruction marked.
  showRules(id) {
    const { panes } = this.state;
    const shown = panes.includes("rules") ? panes : [...panes, "rules"];
    this.state.change({ panes: shown, selection: { kind: "instruction", id } }, { from: this.name });
  }

  fold(row, open) {
    if (row.kind === "instruction" || !row.key) return;
    if (open) this.shared.folded.delete(row.key);
    else this.shared.folded.add(row.key);
    this.shared.rebuild();
  }

  draw(row) {
    if (row.kind === "gap") return make("div", { class: "gap", "aria-hidden": "true" });
    const { program } = this;
    const mark = row.mark ? ` ${row.mark}` : "";
    const indent = make("span", { class: "indent" });
    indent.style.width = `${row.depth * 12}px`;
    if (row.kind !== "instruction") {
      const open = !this.shared.folded.has(row.key);
      const twist = make("span", { class: "twist", text: open ? "▾" : "▸" });
      const text = row.kind === "computation"
        ? [make("b", { text: row.entry ? `ENTRY ${program.computations[row.id].name}` : program.computations[row.id].name }), ` ${row.count} instructions`]
        : [make("b", { text: row.title }), ` ${row.ids.length}: ${opcodes(program, row.ids)}`];
      return make("div", { class: `head${mark}`, "aria-expanded": open, "aria-level": row.depth + 1 }, [make("span", { class: "sign" }), indent, twist, make("span", {}, text)]);
    }
    const { id } = row;
    const change = this.changes?.get(id);
    const rules = this.rules?.get(id) ?? [];
    const names = [...new Set(rules.map((k) => program.string(this.rulesStage.rules[k].rule)))];
    const sign = make("span", { class: names.length ? "sign ruled" : "sign", text: `${SIGNS[change] ?? ""}${names.length ? "•" : ""}`, title: names.join(", ") || null });
    const name = make("span", { class: "name", title: program.name(id), text: program.name(id) });
    name.style.width = `calc(${this.shared.nameWidth}ch - ${row.depth * 12 - 12}px)`;
    const operands = program.operands(id).flatMap((operand, k) => [
      k ? ", " : "", make("span", { class: "ref", "data-id": operand, text: program.name(operand), title: program.shape(operand) }),
    ]);
    const text = program.attributes(id);
    const within = operands.length === 0 && !text.startsWith(","); // the number of a parameter, the value of a constant
    const attributes = within || !text ? "" : text.startsWith(",") ? text : `, ${text}`;
    const shape = make("span", { class: "shape", text: program.shape(id), title: program.shape(id) });
    shape.style.width = `${this.shared.shapeWidth}ch`;
    const title = [program.opName(id), names.length ? `rule: ${names.join(", ")}` : ""].filter(Boolean).join("\n");
    return make("div", {
      class: `instruction ${change ?? ""}${mark}`, title: title || null, "aria-selected": row.mark === "exact", "aria-level": row.depth + 1,
    }, [
      sign, indent, name, shape,
      make("span", { class: "op" }, [make("b", { text: program.opcode(id) }), "(", ...(within ? [text] : operands), ")", make("span", { class: "attributes", text: attributes })]),
      row.root ? make("span", { class: "badge", text: "root" }) : null,
    ]);
  }
}

function opcodes(program, ids) {
  const names = [...new Set(ids.map((id) => program.opcode(id)))];
  return names.slice(0, 6).join(", ") + (names.length > 6 ? ", …" : "");
}

// The width, in characters, in which nearly all of some texts have place.
function columnWidth(lengths, most) {
  const sorted = lengths.sort((a, b) => a - b);
  return Math.min(most, Math.max(8, (sorted[Math.floor(sorted.length * 0.9)] ?? 8) + 2));
}

// Both panes: they fold, align and scroll together.
export class HloPanes {
  constructor(state) {
    this.state = state;
    this.program = state.program;
    this.folded = new Set();
    this.by = "";
    if (this.program.stages.some((stage, s) => this.program.stageIndex(s).computationOf.size > MANY_INSTRUCTIONS)) this.foldAll();
    this.beside = new HloPane(state, { name: "beside", title: "Beside", row: "top", weight: 1.5, help: "Instructions of another stage, to compare" }, this);
    this.main = new HloPane(state, { name: "hlo", title: "HLO", row: "top", weight: 1.7, help: "Instructions of the chosen stage" }, this);
    const all = this.program.stageKeys.map((key, k) => [`=${key}`, `${k}. ${key}`]);
    this.choice = choice("The stage beside", [["before", "the stage before"], ["after", "the stage after"], ["first", "the first"], ["last", "the last"], ...all], state.beside, (beside) => state.change({ beside }));
    this.beside.tools.append(this.choice);
    this.main.tools.append(choice("What is gathered", [["", "all"], ["line", "by line"], ["call", "by call"]], "", (by) => {
      this.by = by;
      this.rebuild();
    }));
    this.main.button("Δ", "Next difference (c; C goes back)", () => this.goToChange(1));
    this.main.button("fold", "Fold all", () => this.foldListed());
    this.main.button("unfold", "Unfold all", () => { this.folded.clear(); this.rebuild(); });
    const [left, right] = [this.main.list.element, this.beside.list.element];
    for (const [from, to] of [[left, right], [right, left]]) {
      from.addEventListener("scroll", () => { if (this.together && to.scrollTop !== from.scrollTop) to.scrollTop = from.scrollTop; }, { passive: true });
    }
    this.onOrder = () => {};
  }

  foldAll() {
    for (let s = 0; s <= this.program.last; s++) for (const key of foldable(this.program, s)) this.folded.add(key);
  }

  foldListed() {
    this.foldAll();
    for (const pane of [this.main, this.beside]) for (const row of pane.rows) if (row.kind === "group") this.folded.add(row.key);
    this.rebuild();
  }

  get besideStage() {
    const { stage, beside } = this.state;
    const { last, stageKeys } = this.program;
    const named = beside[0] === "=" ? stageKeys.indexOf(beside.slice(1)) : -1;
    const chosen = { before: stage - 1, after: stage + 1, first: 0, last }[beside] ?? named;
    return chosen === stage || chosen < 0 || chosen > last ? -1 : chosen;
  }

  // Whether the panes show another pair of stages than they should, or gaps for a pane that is hidden.
  get stale() { return this.drawn !== `${this.state.stage} ${this.state.beside} ${this.beside.shown}`; }

  check() { if ((this.main.shown || this.beside.shown) && this.stale) this.update(this.main, new Set()); }

  update(pane, changed) {
    if (this.stale) {
      this.drawn = `${this.state.stage} ${this.state.beside} ${this.beside.shown}`;
      this.choice.value = this.state.beside;
      this.reveal();
      this.rebuild();
      this.at = -1;
      if (this.main.target < 0 && this.beside.target < 0) this.goToChange(1);
      else this.scroll(true);
    } else if (changed.has("selection")) {
      if (this.reveal()) this.rebuild();
      else this.mark();
      this.scroll(pane.scrolls);
    }
  }

  // Unfold what hides the selected instruction.
  reveal() {
    const { selection } = this.state;
    if (selection?.kind !== "instruction") return false;
    let opened = false;
    for (const s of [this.state.stage, this.besideStage]) {
      if (s < 0 || !this.program.stageIndex(s).computationOf.has(selection.id)) continue;
      for (const key of keysAbove(this.program, s, selection.id)) opened = this.folded.delete(key) || opened;
    }
    return opened;
  }

  rebuild() {
    const { stage } = this.state;
    const other = this.besideStage;
    this.onOrder(other > stage);
    this.together = other >= 0 && this.beside.shown;
    this.main.stage = stage;
    this.beside.stage = other;
    for (const pane of [this.main, this.beside]) {
      pane.rows = pane.stage < 0 ? [] : this.rowsOf(pane.stage);
      pane.changes = pane.rules = null;
      pane.note.textContent = pane.stage < 0 ? "" : this.program.stageKeys[pane.stage];
    }
    if (other < 0) this.beside.note.textContent = "there is none";
    const listed = this.main.rows.filter((row) => row.kind === "instruction");
    this.nameWidth = columnWidth(listed.map((row) => this.program.name(row.id).length + row.depth * 1.6), 30);
    this.shapeWidth = columnWidth(listed.map((row) => this.program.shape(row.id).length), 22);
    this.compare(stage, other);
    for (const pane of [this.main, this.beside]) pane.at = positions(this.program, pane.stage, pane.rows);
    for (const pane of [this.main, this.beside]) {
      this.markPane(pane);
      pane.list.setCount(pane.rows.length);
    }
  }

  rowsOf(s) {
    const { computations } = this.program;
    const roots = new Set(this.program.stages[s].computations.map((at) => computations[at].root));
    const rows = outline(this.program, s, this);
    for (const row of rows) row.root = row.kind === "instruction" && roots.has(row.id);
    return rows;
  }

  // Without a stage beside, the stage is compared with the one before it.
  compare(stage, other) {
    const against = other >= 0 ? other : stage - 1;
    if (against < 0) return;
    const [older, newer] = against < stage ? [against, stage] : [stage, against];
    const marks = difference(this.program, older, newer);
    const near = newer - older === 1;
    const [left, right] = against < stage ? [this.beside, this.main] : [this.main, this.beside];
    left.changes = marks.older;
    right.changes = marks.newer;
    if (near) {
      const rules = rulesOf(this.program.stages[newer]);
      left.rules = rules.before;
      right.rules = rules.after;
      left.rulesStage = right.rulesStage = this.program.stages[newer];
    }
    const { added, removed, changed } = counted(marks);
    right.note.textContent += added + removed + changed ? `  +${added} −${removed} ~${changed}` : "  no instruction differs";
    if (!this.together) return;
    const key = (row, partner) => (row.kind === "instruction" ? partner.get(row.id) ?? -1 : row.key);
    const at = new Map(left.rows.map((row, k) => [row.kind === "instruction" ? row.id : row.key, k]));
    const pairs = aligned(left.rows.length, right.rows.length, (k) => at.get(key(right.rows[k], marks.pairs)) ?? -1);
    const gap = { kind: "gap", depth: 0 };
    const [leftRows, rightRows] = [left.rows, right.rows];
    left.rows = pairs.map(([k]) => (k < 0 ? gap : leftRows[k]));
    right.rows = pairs.map(([, k]) => (k < 0 ? gap : rightRows[k]));
  }

  // Bring the next row that differs from the other stage into view, in both panes; neighbours count as one.
  goToChange(step) {
    const [first, second] = this.together ? [this.main, this.beside] : [this.main, null];
    const differs = (k) => [first, second].some((pane) => {
      const row = pane?.rows[k];
      return row?.kind === "instruction" && pane.changes?.has(row.id);
    });
    const { length } = first.rows;
    for (let k = this.at + step, passed = !differs(this.at); k >= 0 && k < length; k += step) {
      if (!differs(k)) passed = true;
      else if (passed) {
        while (step < 0 && differs(k - 1)) k--;
        this.at = k;
        for (const pane of [first, second]) {
          if (!pane?.shown) continue;
          pane.list.active = k;
          pane.list.scrollTo(k);
        }
        return;
      }
    }
  }

  mark() {
    for (const pane of [this.main, this.beside]) {
      this.markPane(pane);
      pane.list.refresh();
    }
  }

  markPane(pane) {
    for (const row of pane.marked ?? []) row.mark = "";
    pane.marked = [];
    pane.target = -1;
    if (pane.stage < 0) return;
    const order = { exact: 3, related: 2, around: 1 };
    let best = 0;
    for (const [id, mark] of marksOf(this.program, this.state.related, pane.stage)) {
      const at = pane.at(id);
      if (at < 0) continue;
      const row = pane.rows[at];
      const shown = row.kind === "instruction" ? mark : "around";
      if ((order[row.mark] ?? 0) < order[shown]) row.mark = shown;
      pane.marked.push(row);
      if (order[shown] > best || (order[shown] === best && at < pane.target)) [best, pane.target] = [order[shown], at];
    }
  }

  scroll(wanted) {
    const [first, second] = this.together ? [this.main, this.beside] : [this.main, null];
    for (const pane of [first, second]) {
      if (!pane || !pane.shown || pane.target < 0) continue;
      if (wanted && pane.scrolls && !pane.marked.some((row) => row.mark !== "around" && pane.list.inView(pane.at(row.id)))) pane.list.scrollTo(pane.target);
    }
  }
}
