// The kernels: what each computes, in which order, and its text.
import { make, tokenSpans } from "./dom.js";
import { pythonTokens, secondsText, shareText } from "./format.js";
import { Pane } from "./pane.js";
import { VirtualList } from "./virtual_list.js";

const MANY_LINES = 600; // lines; a program with more opens with its kernels folded

export class KernelsPane extends Pane {
  constructor(state) {
    super(state, { name: "kernels", title: "Kernels", row: "top", weight: 1.3, help: "The kernels with their algorithm and schedule" });
    const { kernels } = this.program;
    this.lines = kernels.map((kernel) => [
      ...(kernel.algorithm ? [["algorithm", kernel.algorithm]] : []),
      ...kernel.schedule.map((step) => ["schedule", step]),
      ...kernel.text.replace(/\n$/, "").split("\n").map((line) => ["", line]),
    ]);
    const total = this.lines.reduce((sum, lines) => sum + lines.length, 0);
    this.unfolded = new Set(total > MANY_LINES ? [] : kernels.keys());
    this.list = new VirtualList({
      label: "Kernels", role: "tree", rowRole: "treeitem", height: 18,
      render: (index) => this.draw(this.rows[index]),
      act: (index, event) => {
        const row = this.rows[index];
        if (event.target.closest?.(".twist")) this.fold(index, !this.unfolded.has(row.kernel));
        else this.select({ kind: "kernel", id: row.kernel });
      },
      fold: (index, open) => this.fold(index, open),
    });
    this.button("fold", "Fold all kernels", () => { this.unfolded.clear(); this.rebuild(); });
    this.button("unfold", "Unfold all kernels", () => { this.unfolded = new Set(kernels.keys()); this.rebuild(); });
    this.note.textContent = String(kernels.length);
    this.body.append(kernels.length ? this.list.element : make("p", { class: "empty", text: "This program has no kernels." }));
    this.rebuild();
  }

  fold(index, open) {
    const { kernel } = this.rows[index];
    if (open) this.unfolded.add(kernel);
    else this.unfolded.delete(kernel);
    this.list.active = this.list.active < 0 ? -1 : index;
    this.rebuild();
  }

  rebuild() {
    this.rows = [];
    this.at = [];
    this.program.kernels.forEach((_, kernel) => {
      this.at.push(this.rows.length);
      this.rows.push({ kernel, line: -1 });
      if (this.unfolded.has(kernel)) for (let line = 0; line < this.lines[kernel].length; line++) this.rows.push({ kernel, line });
    });
    this.list.setCount(this.rows.length);
  }

  draw({ kernel, line }) {
    const { related: found, selection } = this.state;
    const exact = selection?.kind === "kernel" && selection.id === kernel;
    const mark = exact ? " exact" : found.kernels.has(kernel) ? " related" : "";
    if (line < 0) {
      const rows = (this.program.rowsOfKernel.get(kernel) ?? []).map((row) => this.program.rows[row]);
      const seconds = rows.reduce((sum, row) => sum + (row.seconds ?? 0), 0);
      const share = rows.reduce((sum, row) => sum + (row.share ?? 0), 0);
      const cost = seconds > 0 ? `${secondsText(seconds)}  ${shareText(share)}` : "";
      const open = this.unfolded.has(kernel);
      return make("div", { class: `head${mark}`, "aria-expanded": open, "aria-selected": exact, "aria-level": 1 }, [
        make("span", { class: "twist", text: open ? "▾" : "▸" }), make("b", { text: this.program.kernels[kernel].name }), make("span", { class: "cost", text: cost }),
      ]);
    }
    const [kind, text] = this.lines[kernel][line];
    const content = kind ? [make("span", { class: "kind", text: kind }), make("span", { text })] : tokenSpans(pythonTokens(text));
    return make("div", { class: `kernel ${kind}${mark}`, "aria-level": 2 }, [make("code", {}, content)]);
  }

  update(changed, state) {
    const marked = [...state.related.kernels].sort((a, b) => a - b);
    const target = state.selection?.kind === "kernel" ? state.selection.id : marked[0];
    if (changed.has("selection") && target !== undefined && marked.length <= 3 && this.scrolls) {
      const closed = marked.filter((kernel) => !this.unfolded.has(kernel));
      closed.forEach((kernel) => this.unfolded.add(kernel));
      if (closed.length) this.rebuild();
    }
    this.list.refresh();
    if (changed.has("selection") && target !== undefined && this.scrolls) this.toTop(marked, target);
  }

  // The head of a kernel at the top of the list, with its text below it.
  toTop(marked, target) {
    if (marked.some((kernel) => this.list.inView(this.at[kernel]))) return;
    this.list.element.scrollTop = Math.max(0, this.at[target] - 1) * this.list.height;
    this.list.refresh();
  }
}
