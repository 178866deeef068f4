// A list of which only the rows in view are elements. The list itself has the focus; aria-activedescendant names the
// active row, which arrows, Page Up and Down, Home and End move. Enter or Space act on it, left and right fold it.
import { inFrame, make } from "./dom.js";

let listsMade = 0;
const SPARE = 6; // rows that are there above and below what is in view

export class VirtualList {
  // render(index): the element of a row; act(index, event): it is chosen; fold(index, open): it is folded or unfolded
  constructor({ label, role = "listbox", rowRole = "option", height = 20, render, act, fold = () => {}, header = null }) {
    Object.assign(this, { render, act, fold, rowRole, height, header });
    this.prefix = `v${listsMade++}-`;
    this.count = 0;
    this.active = -1;
    this.sizer = make("div", { class: "sizer", role: "presentation" });
    this.element = make("div", { class: "list", role, tabindex: 0, "aria-label": label }, [header, this.sizer]);
    this.wide = 0;
    this.draw = inFrame(() => this.refresh());
    this.scrolled = 0;
    this.element.addEventListener("scroll", () => {
      this.scrolled = this.element.scrollTop;
      this.draw();
    }, { passive: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.sizer.addEventListener("click", (event) => {
      const row = event.target.closest("[data-index]");
      if (!row || !getSelection().isCollapsed) return;
      this.active = Number(row.dataset.index);
      this.act(this.active, event);
      this.refresh();
    });
    new ResizeObserver(([{ contentRect }]) => this.resized(contentRect.height)).observe(this.element);
  }

  get top() { return this.header ? this.header.offsetHeight : 0; }

  // A list that was taken out of the page is back where it was scrolled to.
  resized(height) {
    if (height > 0 && this.gone) this.element.scrollTop = this.scrolled;
    this.gone = height === 0;
    this.draw();
  }

  setCount(count) {
    this.count = count;
    this.active = Math.min(this.active, count - 1);
    this.wide = 0;
    this.sizer.style.minWidth = "";
    this.sizer.style.height = `${count * this.height}px`;
    this.refresh();
  }

  refresh() {
    const { scrollTop, clientHeight } = this.element;
    if (clientHeight === 0) return;
    const from = Math.max(0, Math.floor(scrollTop / this.height) - SPARE);
    const to = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / this.height) + SPARE);
    const shown = [];
    for (let index = from; index < to; index++) shown.push(this.row(index));
    if (this.active >= 0 && (this.active < from || this.active >= to)) shown.push(this.row(this.active));
    this.sizer.replaceChildren(...shown);
    if (this.active >= 0) this.element.setAttribute("aria-activedescendant", this.prefix + this.active);
    else this.element.removeAttribute("aria-activedescendant");
    const { scrollWidth, clientWidth } = this.element;
    if (scrollWidth > this.wide && scrollWidth > clientWidth) {
      this.wide = scrollWidth;
      this.sizer.style.minWidth = `${scrollWidth}px`;
    }
  }

  row(index) {
    const row = this.render(index);
    row.id = this.prefix + index;
    row.dataset.index = index;
    row.setAttribute("role", this.rowRole);
    row.setAttribute("aria-setsize", this.count);
    row.setAttribute("aria-posinset", index + 1);
    row.classList.add("row");
    row.classList.toggle("active", index === this.active);
    row.style.top = `${index * this.height}px`;
    return row;
  }

  inView(index) {
    const { scrollTop, clientHeight } = this.element;
    return index * this.height >= scrollTop && (index + 1) * this.height <= scrollTop + clientHeight - this.top;
  }

  // Bring a row into view: in the middle, unless it is already there.
  scrollTo(index) {
    if (index < 0 || this.element.clientHeight === 0) return;
    if (!this.inView(index)) {
      this.element.scrollTop = index * this.height - (this.element.clientHeight - this.top - this.height) / 2;
    }
    this.refresh();
  }

  // Make a row the active one, without acting on it.
  activate(index) {
    this.active = Math.max(0, Math.min(this.count - 1, index));
    if (!this.inView(this.active)) {
      const above = this.active * this.height < this.element.scrollTop;
      const space = this.element.clientHeight - this.top - this.height;
      this.element.scrollTop = this.active * this.height - (above ? 0 : space);
    }
    this.refresh();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return;
    const page = Math.max(1, Math.floor((this.element.clientHeight - this.top) / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.key in steps && this.count) this.activate(this.active + steps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && this.active >= 0) this.act(this.active, event);
    else if (event.key === "ArrowRight" && this.active >= 0) this.fold(this.active, true);
    else if (event.key === "ArrowLeft" && this.active >= 0) this.fold(this.active, false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
