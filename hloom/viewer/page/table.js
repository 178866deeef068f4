// A table with a head that sorts, of which only the rows in view are elements.
import { make } from "./dom.js";
import { VirtualList } from "./virtual_list.js";

export class Table {
  // columns: {title, help, width, text(row), value(row) for sorting, number, bar(row): 0..1, class}; rows: any objects.
  // act(row, event); mark(row): "exact", "related" or ""
  constructor({ label, columns, rows, act, mark = () => "", empty }) {
    Object.assign(this, { columns, mark, all: rows, rows: [...rows], empty });
    this.template = columns.map(({ width }) => width).join(" ");
    this.heads = columns.map((column, k) => make("button", {
      type: "button", role: "columnheader", class: column.number ? "number" : "", text: column.title, title: column.help ?? "Sort", tabindex: -1,
      on: { click: () => this.sort(k) },
    }));
    const header = make("div", { class: "columns", role: "row" }, this.heads);
    header.style.gridTemplateColumns = this.template;
    this.list = new VirtualList({
      label, role: "grid", rowRole: "row", height: 22, header,
      render: (index) => this.draw(this.rows[index]), act: (index, event) => act(this.rows[index], event),
    });
    this.element = rows.length ? this.list.element : make("p", { class: "empty", text: empty });
    this.list.setCount(rows.length);
  }

  setRows(rows) {
    this.all = rows;
    this.rows = [...rows];
    this.sorted = undefined;
    this.heads.forEach((head) => head.removeAttribute("aria-sort"));
    this.list.active = -1;
    this.list.setCount(rows.length);
  }

  // Sort by a column: first the direction that is natural for it, then the other, then as it was.
  sort(k) {
    const { value, text, number } = this.columns[k];
    const steps = number ? ["descending", "ascending"] : ["ascending", "descending"];
    const at = this.sorted === k ? steps.indexOf(this.direction) + 1 : 0;
    this.heads.forEach((head) => head.removeAttribute("aria-sort"));
    this.rows = [...this.all];
    this.sorted = at < steps.length ? k : undefined;
    if (this.sorted !== undefined) {
      this.direction = steps[at];
      const key = value ?? text;
      const sign = this.direction === "ascending" ? 1 : -1;
      this.rows.sort((a, b) => {
        const [x, y] = [key(a) ?? -Infinity, key(b) ?? -Infinity];
        return (x < y ? -1 : x > y ? 1 : 0) * sign;
      });
      this.heads[k].setAttribute("aria-sort", this.direction);
    }
    this.list.active = -1;
    this.list.refresh();
  }

  draw(row) {
    const mark = this.mark(row);
    const element = make("div", { class: `columns ${mark}`, "aria-selected": mark === "exact" }, this.columns.map((column) => {
      const text = column.text(row);
      const cell = make("span", { role: "gridcell", class: `${column.number ? "number" : ""} ${column.class ?? ""}`, title: text, text });
      const part = column.bar?.(row);
      if (part > 0) {
        const bar = make("span", { class: "fill" });
        bar.style.width = `${Math.min(100, part * 100).toFixed(1)}%`;
        cell.classList.add("with-bar");
        cell.prepend(bar);
      }
      return cell;
    }));
    element.style.gridTemplateColumns = this.template;
    return element;
  }

  scrollToFirst(matches) {
    if (this.rows.some((row, k) => matches(row) && this.list.inView(k))) return;
    const at = this.rows.findIndex(matches);
    if (at >= 0) this.list.scrollTo(at);
  }
}
