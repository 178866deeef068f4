// Numbers as text, and the words by which texts are coloured. Pure: no document.

const STEPS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function scaled(value, unit) {
  if (value === null || value === undefined || value < 0) return "";
  for (const [size, prefix] of STEPS) if (value >= size) return `${digits(value / size)} ${prefix}${unit}`;
  return `${Number.isInteger(value) ? value : digits(value)} ${unit}`;
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function bytesText(value) { return scaled(value, "B"); }

export function secondsText(value) {
  if (value === null || value === undefined) return "";
  if (value >= 1) return `${digits(value)} s`;
  return value >= 1e-3 ? `${digits(value * 1e3)} ms` : `${digits(value * 1e6)} µs`;
}

export function shareText(value) {
  if (value === null || value === undefined) return "";
  return `${(value * 100).toFixed(value < 0.0995 ? 1 : 0)}%`;
}

// A rate of bytes beside that of memory. Bytes that are still in a cache move faster than memory: there is no limit.
export function memoryText(value) { return value > 1 ? `${shareText(value)}, from a cache` : shareText(value); }

// [class or "", text] for a line of Python or of a kernel.
const PYTHON = /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|for|in|if|elif|else|while|import|from|as|with|lambda|and|or|not|None|True|False|class|range|yield|pass|break|continue)\b|\b(\d[\w.]*)/g;

export function pythonTokens(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(PYTHON)) {
    if (match.index > end) found.push(["", text.slice(end, match.index)]);
    const kind = match[1] ? "t-comment" : match[2] ? "t-text" : match[3] ? "t-word" : "t-number";
    found.push([kind, match[0]]);
    end = match.index + match[0].length;
  }
  if (end < text.length) found.push(["", text.slice(end)]);
  return found;
}
