// Findings and comments beside the text that they concern; between its lines where there is no room beside it.
const narrow = matchMedia("(max-width: 54rem)");
const gap = 10;
let chosen = null;
let order = [];

const paper = () => document.querySelector(".paper");
const aside = () => document.querySelector("#margin");
export const notes = () => [...document.querySelectorAll(".note[data-line]")];

// The innermost block that holds the line.
export function block(line) {
  let best = null;
  for (const one of paper()?.querySelectorAll("[data-line]") || []) {
    const start = Number(one.dataset.line);
    if (start <= line && line <= Number(one.dataset.end) && (!best || start >= Number(best.dataset.line))) best = one;
  }
  return best;
}

function outermost(one) {
  while (one.parentElement !== paper()) one = one.parentElement;
  return one;
}

export function place() {
  const text = paper();
  const column = aside();
  if (!text || !column) return;
  if (!order.length || !order[0].isConnected) order = notes();
  order = [...new Set([...order.filter((one) => one.isConnected), ...notes()])];
  order.sort((one, other) => Number(one.dataset.line) - Number(other.dataset.line));
  if (narrow.matches) between(column);
  else beside(column);
  paint();
}

function between(column) {
  column.classList.remove("placed");
  for (const note of [...order].reverse()) {
    note.style.top = "";
    if (note.contains(document.activeElement)) continue; // moved, it would lose what is being written in it
    const here = Number(note.dataset.line) > 0 && block(Number(note.dataset.line));
    if (here) outermost(here).after(note);
    else column.prepend(note);
  }
}

function beside(column) {
  column.classList.add("placed");
  const there = column.querySelectorAll(":scope > .note");
  if (order.some((note, i) => note !== there[i])) order.forEach((note) => column.append(note));
  const top = column.getBoundingClientRect().top;
  const wanted = order.map((note) => {
    const here = Number(note.dataset.line) > 0 && block(Number(note.dataset.line));
    return here ? here.getBoundingClientRect().top - top : 0;
  });
  const at = Math.max(0, order.indexOf(chosen));
  const tops = [...wanted];
  for (let i = at + 1, low = wanted[at] + order[at]?.offsetHeight + gap; i < order.length; i++) {
    tops[i] = Math.max(wanted[i], low);
    low = tops[i] + order[i].offsetHeight + gap;
  }
  for (let i = at - 1, high = wanted[at] - gap; i >= 0; i--) {
    tops[i] = Math.min(wanted[i], high - order[i].offsetHeight);
    high = tops[i] - gap;
  }
  const above = Math.min(0, ...tops);
  let low = 0;
  order.forEach((note, i) => {
    note.style.top = `${tops[i] - above}px`;
    low = Math.max(low, tops[i] - above + note.offsetHeight);
  });
  column.style.minHeight = `${low + 40}px`;
}

// ---- the words themselves

const skipped = /[\s*_`~#>|\\[\]-]/;

function letters(text) {
  return [...text].filter((sign) => !skipped.test(sign)).join("");
}

function find(note) {
  const quote = letters(note.dataset.quote || "");
  if (!quote) return null;
  const first = Number(note.dataset.line);
  const last = Number(note.dataset.end || first);
  const spots = [];
  let key = "";
  const walk = document.createTreeWalker(paper(), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const holder = node.parentElement.closest("[data-line]");
    if (!holder || node.parentElement.closest(".note")) continue;
    if (Number(holder.dataset.end) < first || Number(holder.dataset.line) > last) continue;
    for (let i = 0; i < node.data.length; i++) {
      if (skipped.test(node.data[i])) continue;
      key += node.data[i];
      spots.push([node, i]);
    }
  }
  const at = key.indexOf(quote);
  if (at < 0) return null;
  const range = document.createRange();
  range.setStart(...spots[at]);
  const [node, end] = spots[Math.min(at + quote.length, spots.length) - 1];
  range.setEnd(node, end + 1);
  return range;
}

export function highlight(name, ranges) {
  if (!globalThis.CSS?.highlights) return;
  if (ranges.length) CSS.highlights.set(name, new Highlight(...ranges));
  else CSS.highlights.delete(name);
}

function paint() {
  const found = { finding: [], comment: [], chosen: [] };
  for (const note of order) {
    note.words = find(note);
    if (!note.words) continue;
    if (note === chosen) found.chosen.push(note.words);
    else if (!note.classList.contains("settled")) found[note.classList.contains("comment") ? "comment" : "finding"].push(note.words);
  }
  Object.entries(found).forEach(([name, ranges]) => highlight(name, ranges));
}

export function choose(note, isScrolled = true) {
  chosen?.classList.remove("chosen");
  chosen = note;
  note?.classList.add("chosen");
  place();
  if (note && isScrolled) (block(Number(note.dataset.line)) || note).scrollIntoView({ block: "center", behavior: "smooth" });
}

function pointed(event) {
  const at = document.caretPositionFromPoint?.(event.clientX, event.clientY);
  const spot = at ? [at.offsetNode, at.offset] : null;
  const range = !spot && document.caretRangeFromPoint?.(event.clientX, event.clientY);
  const [node, offset] = spot || [range?.startContainer, range?.startOffset];
  return node && order.find((note) => note.words?.isPointInRange(node, offset));
}

// A line of the address: `#L12`.
export function toLine() {
  const line = Number(/^#L(\d+)$/.exec(location.hash)?.[1]);
  const here = line && paper() && block(line);
  document.querySelectorAll(".paper .target").forEach((one) => one.classList.remove("target"));
  if (!here) return;
  here.classList.add("target");
  here.scrollIntoView({ block: "center" });
}

export function start() {
  if (!paper()) return;
  addEventListener("resize", place);
  addEventListener("hashchange", toLine);
  narrow.addEventListener("change", place);
  document.addEventListener("toggle", (event) => event.target.closest?.(".note") && place(), true);
  document.addEventListener("click", (event) => {
    const note = event.target.closest(".note[data-line]");
    if (note) {
      if (note !== chosen) choose(note, false);
    } else if (event.target.closest(".paper") && getSelection().isCollapsed) {
      const under = pointed(event);
      if (under) choose(under, false);
    }
  });
  const entries = new Map();
  const seen = new IntersectionObserver((found) => {
    found.forEach((one) => entries.set(one.target.id, one.isIntersecting));
    const first = [...entries].find(([, is]) => is)?.[0];
    if (!first) return;
    document.querySelectorAll(".contents a").forEach((one) => one.classList.toggle("here", one.hash === `#${first}`));
  }, { rootMargin: "-110px 0px -60% 0px" });
  paper().querySelectorAll("h1[id], h2[id], h3[id]").forEach((one) => seen.observe(one));
  toLine();
  const wished = /^#note-\w+$/.test(location.hash) && document.querySelector(location.hash);
  if (wished) choose(wished);
}
