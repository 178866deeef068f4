// Elements of the page. Text always goes in by textContent: nothing that the data says becomes markup.

const SVG = "http://www.w3.org/2000/svg";

// make("button", {class: "x", on: {click: f}, text: "y", ...attributes}, children)
export function make(tag, given = {}, children = []) {
  return fill(document.createElement(tag), given, children);
}

export function makeSvg(tag, given = {}, children = []) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, { on = {}, text, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  if (text !== undefined) element.textContent = text;
  for (const child of children) if (child) element.append(child);
  return element;
}

export function tokenSpans(tokens) {
  return tokens.map(([kind, text]) => (kind ? make("span", { class: kind, text }) : document.createTextNode(text)));
}

// A button that chooses one of the values of a select, with a label before it.
export function choice(label, options, value, change) {
  const select = make("select", { "aria-label": label, title: label, on: { change: () => change(select.value) } },
    options.map(([key, text]) => make("option", { value: key, text })));
  select.value = value;
  return select;
}

// A function that calls another once in the next frame, however often it is called before.
export function inFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}
