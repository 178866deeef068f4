// The buffers over time: x is the position in the schedule, y the offset. Padding is hatched, reuse has a colour of its
// own, the peak is marked. The wheel, + and - stretch the schedule, a drag moves it, 0 shows all of it.
import { choice, inFrame, make, makeSvg } from "./dom.js";
import { bytesText } from "./format.js";
import { liveness, memories, reused } from "./memory_model.js";
import { Pane } from "./pane.js";

const MARGIN = { left: 62, right: 14, top: 16, bottom: 20 };

export class BuffersPane extends Pane {
  constructor(state) {
    super(state, { name: "buffers", title: "Buffers", row: "bottom", weight: 1.4, help: "What lies where in memory, over the schedule of the program" });
    this.memories = memories(this.program).map((memory) => ({ ...memory, ...liveness(memory), again: memory.memory === "arena" ? reused(memory) : new Set() }));
    this.memory = this.memories[0];
    if (this.memories.length) {
      this.tools.append(this.choice = choice("Which memory", this.memories.map(({ key, label, size }) => [key, `${label} (${bytesText(size)})`]), this.memory.key, (key) => {
        this.memory = this.memories.find((memory) => memory.key === key);
        this.range = null;
        this.draw();
      }));
    }
    this.svg = makeSvg("svg", { class: "buffers", tabindex: 0, role: "listbox", "aria-label": "Buffers" });
    this.body.append(this.memories.length ? this.svg : make("p", { class: "empty", text: "This program has no buffers." }));
    this.range = null; // positions from, to; null: all
    this.redraw = inFrame(() => this.draw());
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.stretch(Math.exp(event.deltaY / 400), (event.clientX - this.svg.getBoundingClientRect().left - MARGIN.left) / this.wide);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    this.svg.addEventListener("click", (event) => {
      const box = event.target.closest("[data-buffer]");
      if (box && !this.dragged) this.choose(Number(box.dataset.buffer));
    });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => { if (this.shown) this.draw(); }).observe(this.body);
  }

  get shownRange() { return this.range ?? [0, this.memory.steps]; }

  // Show more or fewer positions; `at` is the part of the width that stays.
  stretch(factor, at) {
    const [from, to] = this.shownRange;
    const { steps } = this.memory;
    const length = Math.min(steps, Math.max(4, (to - from) * factor));
    this.moveTo(from + (to - from - length) * at, length);
  }

  moveTo(from, length) {
    const { steps } = this.memory;
    const start = Math.min(steps - length, Math.max(0, from));
    this.range = length >= steps ? null : [start, start + length];
    this.redraw();
  }

  drag(event) {
    const [from, to] = this.shownRange;
    this.dragged = false;
    const move = (at) => {
      if (Math.abs(at.clientX - event.clientX) < 4 && !this.dragged) return;
      this.dragged = true;
      this.moveTo(from - ((at.clientX - event.clientX) / this.wide) * (to - from), to - from);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => window.removeEventListener("pointermove", move), { once: true });
  }

  choose(index) {
    this.active = index;
    this.select({ kind: "buffer", id: index });
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !this.memory) return;
    if (step) {
      const order = [...this.memory.buffers].sort((a, b) => a.first - b.first || a.offset - b.offset).map(({ index }) => index);
      const at = order.indexOf(this.active);
      this.active = order[at < 0 ? 0 : (at + step + order.length) % order.length];
      this.mark();
    } else if (event.key === "+") this.stretch(0.7, 0.5);
    else if (event.key === "-") this.stretch(1 / 0.7, 0.5);
    else if (event.key === "0") this.moveTo(0, this.memory.steps);
    else if ((event.key === "Enter" || event.key === " ") && this.active !== undefined) this.choose(this.active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  update(changed, state) {
    if (!this.memory) return;
    const marked = [...state.related.buffers];
    if (changed.has("selection") && marked.length && this.scrolls && !this.memory.buffers.some(({ index }) => marked.includes(index))) {
      const other = this.memories.find(({ buffers }) => buffers.some(({ index }) => index === marked[0]));
      this.memory = other ?? this.memory;
      this.range = null;
      this.choice.value = this.memory.key;
      this.draw();
    } else if (changed.has("selection") && this.range && this.scrolls && marked.length && !marked.some((index) => this.boxes.has(index))) {
      this.range = null;
      this.draw();
    } else if (this.boxes) this.mark();
    else this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.body;
    if (!this.memory || width < 60 || height < 40) return;
    const { buffers, steps, size, arena, live, peak, bytes, again } = this.memory;
    const wide = width - MARGIN.left - MARGIN.right;
    const high = height - MARGIN.top - MARGIN.bottom;
    const top = Math.max(size, arena?.limit ?? 0, 1);
    this.wide = wide;
    const [from, to] = this.shownRange;
    const x = (at) => MARGIN.left + (Math.min(1, Math.max(0, (at - from) / (to - from)))) * wide;
    const y = (offset) => MARGIN.top + high - (offset / top) * high;
    const made = [makeSvg("defs", {}, [makeSvg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, [makeSvg("line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "hatch" })])])];
    for (const part of [0, 0.5, 1]) {
      made.push(makeSvg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(part * top), y2: y(part * top) }));
      made.push(makeSvg("text", { class: "axis", x: MARGIN.left - 6, y: y(part * top) + 4, "text-anchor": "end", text: bytesText(part * top) }));
    }
    made.push(makeSvg("text", { class: "axis", x: MARGIN.left, y: height - 5, text: String(Math.ceil(from)) }));
    made.push(makeSvg("text", { class: "axis", x: width - MARGIN.right, y: height - 5, "text-anchor": "end", text: `position ${Math.floor(to) - (to === steps ? 1 : 0)}` }));
    if (arena?.limit) made.push(makeSvg("line", { class: "limit", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(arena.limit), y2: y(arena.limit) }));
    this.boxes = new Map();
    for (const buffer of buffers) {
      if (buffer.last + 1 <= from || buffer.first >= to) continue;
      const box = this.box(buffer, again.has(buffer.index), x, y);
      this.boxes.set(buffer.index, box);
      made.push(box);
    }
    if (live.length > 1 && this.memory.memory === "arena") {
      const [start, end] = [Math.floor(from), Math.min(steps, Math.ceil(to))];
      const points = live.slice(start, end).flatMap((value, k) => [start + k].flatMap((at) => [`${x(at).toFixed(1)} ${y(value).toFixed(1)}`, `${x(at + 1).toFixed(1)} ${y(value).toFixed(1)}`]));
      made.push(makeSvg("path", { class: "live", d: `M${points.join("L")}` }));
      const left = x(peak + 0.5);
      const inRange = peak >= from && peak < to;
      if (inRange) made.push(makeSvg("line", { class: "peak", x1: left, x2: left, y1: MARGIN.top - 2, y2: MARGIN.top + high }));
      const before = left > width / 2;
      if (inRange) made.push(makeSvg("text", { class: "peak-text", x: left + (before ? -5 : 5), y: MARGIN.top - 4, "text-anchor": before ? "end" : "start", text: `most live: ${bytesText(bytes)} at ${peak}` }));
    }
    this.svg.replaceChildren(...made);
    this.note.textContent = `${buffers.length} buffers, ${bytesText(size)}`;
    this.mark();
  }

  box(buffer, again, x, y) {
    const { index, first, last, offset, size, logical, reason } = buffer;
    const [left, right] = [x(Math.max(0, first)), x(last + 1)];
    const [above, below] = [y(offset + size), y(offset)];
    const padding = logical >= 0 && logical < size ? y(offset + logical) - above : 0;
    const names = buffer.values.map((value) => (typeof value === "number" ? this.program.name(value) : value));
    const title = [
      names.join(", "), `${bytesText(size)} at ${offset}${padding ? `, ${bytesText(size - logical)} of it padding` : ""}`,
      `positions ${first} to ${last}${again ? ", in memory that was used before" : ""}`, reason,
    ].filter(Boolean).join("\n");
    const wide = Math.max(1, right - left - 0.6);
    const high = Math.max(1, below - above - 0.6);
    return makeSvg("g", { class: `buffer${again ? " again" : ""}`, "data-buffer": index, id: `buffer-${index}`, role: "option", "aria-label": title.replace(/\n/g, "; ") }, [
      makeSvg("rect", { class: "box", x: left, y: above, width: wide, height: high }),
      padding > 0.5 ? makeSvg("rect", { class: "padding", fill: "url(#hatch)", x: left, y: above, width: wide, height: padding }) : null,
      high > 10.5 && wide > 40 ? makeSvg("text", { class: "name", x: left + 4, y: (above + below) / 2 + 4, text: short(names[0] ?? "", wide - 6) }) : null,
      makeSvg("title", { text: title }),
    ]);
  }

  mark() {
    const { related: found, selection } = this.state;
    for (const box of this.marked ?? []) {
      box.classList.remove("exact", "related", "active");
      box.removeAttribute("aria-selected");
    }
    this.marked = [];
    for (const index of this.active === undefined ? found.buffers : [...found.buffers, this.active]) {
      const box = this.boxes.get(index);
      if (!box) continue;
      const exact = selection?.kind === "buffer" && selection.id === index;
      if (found.buffers.has(index)) box.classList.add(exact ? "exact" : "related");
      if (exact) box.setAttribute("aria-selected", true);
      if (index === this.active) box.classList.add("active");
      this.marked.push(box);
    }
    this.svg.classList.toggle("chosen", found.buffers.size > 0);
    if (this.active !== undefined) this.svg.setAttribute("aria-activedescendant", `buffer-${this.active}`);
  }
}

function short(text, width) {
  const count = Math.floor(width / 6.4);
  return text.length <= count ? text : count < 4 ? "" : `${text.slice(0, count - 1)}…`;
}
