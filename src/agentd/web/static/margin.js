// Findings and comments beside the text that they concern; between its lines where there is no room beside it.
const narrow = matchMedia("(max-width: 54rem)");
const gap = 10;
let chosen = null;
let order = [];
let lines = { text: null, held: [] };
let asked = 0;

const paper = () => document.querySelector(".paper");
const aside = () => document.querySelector("#margin");
export const notes = () => [...document.querySelectorAll(".note[data-line]")];

// The innermost block that holds the line; looked up once for a text.
export function block(line) {
  const text = paper();
  if (lines.text !== text) {
    lines = { text, held: [] };
    for (const one of text?.querySelectorAll("[data-line]:not(.note)") || []) {
      const start = Number(one.dataset.line);
      for (let i = start; i <= Number(one.dataset.end); i++) {
        if (!(Number(lines.held[i]?.dataset.line) > start)) lines.held[i] = one;
      }
    }
  }
  return lines.held[line] || null;
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
  const last = new Map();
  for (const note of order) {
    note.style.top = "";
    const here = block(Number(note.dataset.line));
    const spot = here ? outermost(here) : column;
    const before = last.get(spot) || (here && spot);
    if ((before ? before.nextElementSibling : column.firstElementChild) !== note) {
      if (note.contains(document.activeElement)) continue; // moved, it would lose what is being written in it
      if (before) before.after(note);
      else column.prepend(note);
    }
    last.set(spot, note);
  }
}

function beside(column) {
  column.classList.add("placed");
  const there = column.querySelectorAll(":scope > .note");
  if (order.some((note, i) => note !== there[i])) order.forEach((note) => column.append(note));
  const top = column.getBoundingClientRect().top;
  const wanted = order.map((note) => {
    const here = block(Number(note.dataset.line));
    return here ? here.getBoundingClientRect().top - top : 0;
  });
  const heights = order.map((note) => note.offsetHeight); // all before the first is moved: each look after that costs a layout
  const at = Math.max(0, order.indexOf(chosen));
  const tops = [...wanted];
  for (let i = at + 1, low = wanted[at] + heights[at] + gap; i < order.length; i++) {
    tops[i] = Math.max(wanted[i], low);
    low = tops[i] + heights[i] + gap;
  }
  for (let i = at - 1, high = wanted[at] - gap; i >= 0; i--) {
    tops[i] = Math.min(wanted[i], high - heights[i]);
    high = tops[i] - gap;
  }
  const above = Math.min(0, ...tops);
  let low = 0;
  order.forEach((note, i) => {
    note.style.top = `${tops[i] - above}px`;
    low = Math.max(low, tops[i] - above + heights[i]);
  });
  column.style.minHeight = `${low + 40}px`;
}

// ---- the words themselves

const skipped = /[\s*_`~#>|\\[\]-]/;

function letters(text) {
  return [...text].filter((sign) => !skipped.test(sign)).join("");
}

// The pieces of text that stand in these lines; blocks of other lines are not entered.
function* texts(first, last) {
  const isElsewhere = (one) => Number(one.dataset.end) < first || Number(one.dataset.line) > last;
  const seen = new Set();
  for (let line = first; line <= last; line++) {
    const here = block(line);
    if (here) seen.add(outermost(here));
  }
  for (const one of seen) {
    const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
      if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
      return node.matches(".note") || (node.dataset.line && isElsewhere(node)) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    for (let node = walk.nextNode(); node; node = walk.nextNode()) yield node;
  }
}

function find(note) {
  const quote = letters(note.dataset.quote || "");
  if (!quote) return null;
  const first = Number(note.dataset.line);
  const last = Number(note.dataset.end || first);
  const spots = [];
  let key = "";
  for (const node of texts(first, last)) {
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
    if (note.words === undefined || note.words?.collapsed) note.words = find(note); // collapsed: its text was moved
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
  addEventListener("resize", () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      place();
    });
  });
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
    document.querySelectorAll(".aside li > a[href^='#']").forEach((one) => one.classList.toggle("here", one.hash === `#${first}`));
  }, { rootMargin: "-110px 0px -60% 0px" });
  paper().querySelectorAll("h1[id], h2[id], h3[id]").forEach((one) => seen.observe(one));
  toLine();
  const wished = /^#note-\w+$/.test(location.hash) && document.querySelector(location.hash);
  if (wished) choose(wished);
}
