// Charts of the live page: plain SVG elements, made anew from numbers. Words go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an SVG element with attributes and children; a string among the children becomes text. */
function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Return an HTML element with properties and children. */
export function html(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Format a number in few characters: 950, 12,345, 1.2 M. */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 10 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toFixed(1);
}

/** Format a share as a percentage; nothing is not the same as 0. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** Format seconds: 0.42 s, 12 s, 3 min, 5 h. */
export function seconds(value) {
  if (value < 10) return `${Number(value.toPrecision(2))} s`;
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return `${Math.round(value / 3600)} h`;
}

/** Return the value below which a share of a distribution lies; Infinity if that is beyond its last edge. */
export function quantile({ edges, counts }, share) {
  const wanted = counts.reduce((sum, count) => sum + count, 0) * share;
  let sum = 0;
  for (const [i, count] of counts.entries()) {
    if (count && sum + count >= wanted) {
      if (i + 1 >= edges.length) return Infinity;
      return edges[i] + (edges[i + 1] - edges[i]) * ((wanted - sum) / count);
    }
    sum += count;
  }
  return NaN;
}

function frame(width, height, label, ...marks) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...marks);
}

function words(x, y, text, kind = "", anchor = "start") {
  return svg("text", { x, y, class: kind, "text-anchor": anchor }, text);
}

/** Draw the delays of the last minute as columns under the bound; what came later stands behind it, in red. */
export function delays(distribution, bound, width) {
  const height = 210, top = 26, bottom = height - 26, room = width - 14;
  const { edges, counts } = distribution;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const inside = counts.slice(0, edges.length - 1), late = bound === null ? 0 : counts.at(-1);
  const most = Math.max(...counts, 1), end = edges.at(-1), at = (value) => (value / end) * (room * 0.92);
  const marks = [];
  for (const [i, count] of inside.entries()) {
    const high = ((bottom - top) * count) / most, left = at(edges[i]);
    const bar = svg("rect", { x: left + 1, y: bottom - high, width: at(edges[i + 1]) - left - 2, height: high, rx: 2, class: "bar" });
    bar.append(svg("title", {}, `${edges[i].toFixed(2)} to ${edges[i + 1].toFixed(2)} s: ${short(count)}`));
    marks.push(bar);
  }
  if (late) {
    const high = Math.max(((bottom - top) * late) / most, 3);
    marks.push(svg("rect", { x: at(end) + 5, y: bottom - high, width: room * 0.06, height: high, rx: 2, class: "late" }));
  }
  marks.push(svg("line", { x1: 0, x2: room, y1: bottom, y2: bottom, class: "grid-line" }));
  for (const share of [0, 0.25, 0.5, 0.75]) marks.push(words(at(end * share), height - 6, `${Number((end * share).toPrecision(3))}`));
  if (bound !== null) {
    marks.push(svg("line", { x1: at(end) + 1, x2: at(end) + 1, y1: 10, y2: bottom, class: "bound-line" }));
    marks.push(words(at(end) - 6, 18, `bound ${seconds(bound)}`, "strong bound", "end"));
  }
  const share = total ? `${percent((total - late) / total)} of ${short(total)} records` : "no records";
  return frame(width, height, `Delays of the last minute: ${share} within the bound`, ...marks);
}

/** Draw two curves over the same time: records in and out per second. */
export function rates({ consumed, published, step }, width) {
  const height = 210, top = 26, bottom = height - 26, left = 56, room = width - left - 8;
  const inward = smooth(consumed.slice(0, -1)), outward = smooth(published.slice(0, -1)); // the last step is not over yet
  const most = nice(Math.max(...inward, ...outward, 1));
  const line = (values) => values.map((value, i) =>
    `${(left + (room * i) / Math.max(values.length - 1, 1)).toFixed(1)},${(bottom - ((bottom - top) * value) / most).toFixed(1)}`).join(" ");
  const marks = [];
  for (const share of [0, 0.5, 1]) {
    const y = bottom - (bottom - top) * share;
    marks.push(svg("line", { x1: left, x2: left + room, y1: y, y2: y, class: "grid-line" }));
    marks.push(words(left - 8, y + 4, short(most * share), "", "end"));
  }
  marks.push(svg("polyline", { points: line(inward), class: "in" }), svg("polyline", { points: line(outward), class: "out" }));
  marks.push(words(left, height - 6, `${seconds(inward.length * step)} ago`), words(left + room, height - 6, "now", "", "end"));
  const last = `${short(inward.at(-1) ?? 0)} in, ${short(outward.at(-1) ?? 0)} out`;
  return frame(width, height, `Records per second; now ${last}`, ...marks);
}

/** Draw one value per minute as a small curve; minutes without any leave a gap. */
export function trend(values, label) {
  const width = 64, height = 20, parts = [[]];
  for (const [i, value] of values.entries()) {
    if (value === null) { if (parts.at(-1).length) parts.push([]); continue; }
    parts.at(-1).push(`${((width * i) / (values.length - 1)).toFixed(1)},${(height - 2 - (height - 4) * Math.min(value, 1)).toFixed(1)}`);
  }
  const lines = parts.filter((part) => part.length > 1).map((part) => svg("polyline", { points: part.join(" "), class: "trend" }));
  return frame(width, height, label, ...lines);
}

/** Return rows of label, bar and figure; `tone` colours the bar. */
export function bars(rows) {
  const made = html("div", { className: rows.some((row) => row.trend) ? "bars trended" : "bars" });
  for (const row of rows) {
    const bar = html("i");
    bar.style.width = `${Math.min(Math.max(row.share || 0, 0), 1) * 100}%`;
    const track = html("div", { className: row.tone === "bad" ? "track bad" : "track" }, bar);
    made.append(html("span", { title: row.label }, row.label), track, ...(row.trend ? [row.trend] : []), html("b", {}, row.text));
  }
  return made;
}

/** Return a table; a cell is a text, a number (set right), or an element. */
export function table(head, rows) {
  const cell = (tag, content) => {
    const made = html(tag, typeof content === "number" ? { className: "n" } : {});
    if (tag === "th") made.scope = "col";
    made.append(typeof content === "number" ? short(content) : content);
    return made;
  };
  const body = html("tbody");
  for (const row of rows) body.append(html("tr", {}, ...row.map((content) => (content instanceof HTMLTableCellElement ? content : cell("td", content)))));
  return html("table", {}, html("thead", {}, html("tr", {}, ...head.map((name) => cell("th", name)))), body);
}

/** Return each value as the mean of it and up to two before: records come and go in batches. */
function smooth(values) {
  return values.map((_, i) => {
    const near = values.slice(Math.max(i - 2, 0), i + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value - 1e-9);
}
