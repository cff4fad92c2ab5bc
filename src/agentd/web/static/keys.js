// The keyboard alone is enough: a key for each thing that a reader does.
import { say } from "./asking.js";
import * as comments from "./comments.js";
import { point } from "./lines.js";
import { choose, notes } from "./margin.js";

let at = -1;
let held = ""; // what is there, by its address or its words: it is found again where others came before it

const rows = () => [...document.querySelectorAll(".list > li")];
const blocks = () => [...document.querySelectorAll(".paper [data-line]")].filter(
  (one) => !one.querySelector("[data-line]") && !one.closest(".note, .frontmatter") && one.textContent.trim());

const known = (one) => one?.querySelector("a.entry")?.href || one?.textContent;

function step(list, by, name) {
  if (!list.length) return;
  list[at]?.classList.remove(name);
  at = Math.max(0, Math.min(list.length - 1, at < 0 && by < 0 ? 0 : at + by));
  held = known(list[at]);
  list[at].classList.add(name);
  list[at].scrollIntoView({ block: "nearest" });
  if (name === "target") point(list[at]);
}

function move(by) {
  if (document.querySelector(".paper")) step(blocks(), by, "target");
  else step(rows(), by, "chosen");
}

// The same place in a list that was made anew.
export function again() {
  if (at < 0) return;
  const isText = document.querySelector(".paper") !== null;
  const list = isText ? blocks() : rows();
  if (known(list[at]) !== held) {
    const now = list.findIndex((one) => known(one) === held);
    if (now >= 0) at = now;
  }
  list[at]?.classList.add(isText ? "target" : "chosen");
}

function nextNote(by) {
  const all = notes();
  if (!all.length) return;
  const now = all.findIndex((one) => one.classList.contains("chosen"));
  choose(all[(now + by + all.length) % all.length]);
}

function enter(where) {
  const link = rows()[at]?.querySelector("a.entry");
  if (link) location.href = link.href + where;
  return Boolean(link);
}

export function decide(name) {
  const wanted = name === "approve" ? ["approve", "approve-with-notes", "accept"] : ["send-back"];
  const panel = wanted.map((one) => document.querySelector(`#choice-${one}`)).find(Boolean);
  if (!panel) {
    say(name === "approve" ? "nothing can be approved now" : "nothing can be sent back now");
    return;
  }
  document.querySelectorAll(".bar details[open]").forEach((one) => { if (one !== panel) one.open = false; });
  panel.open = true;
  (panel.querySelector("textarea") || panel.querySelector("button"))?.focus();
}

// Where there is nothing to comment on, the way leads to the text, with its first block marked.
function comment() {
  const isHere = document.querySelector("#composer") !== null;
  const text = document.querySelector(".tabs a[href*='/read/']");
  if (isHere && comments.here()) return;
  const one = isHere && document.querySelector(".paper .target");
  if (one) comments.write(comments.ofBlock(one));
  else if (isHere) ready();
  else if (text && !text.hasAttribute("aria-current")) location.href = `${text.href}#comment`;
  else say("nothing can be commented on now");
}

function ready() {
  if (!document.querySelector("#composer")) return comment();
  move(1);
  say("j and k move the mark, c comments on it");
}

function close() {
  const open = document.querySelector("dialog[open]");
  if (open) open.close();
  document.querySelectorAll(".bar details[open]").forEach((one) => {
    one.open = false;
    one.querySelector("summary").focus();
  });
}

function neighbour(by) {
  const all = [...document.querySelectorAll(".documents a")];
  const now = all.findIndex((one) => one.hasAttribute("aria-current"));
  if (all[now + by]) location.href = all[now + by].href;
}

const doing = {
  j: () => move(1),
  k: () => move(-1),
  n: () => nextNote(1),
  p: () => nextNote(-1),
  a: () => enter("#approve") || decide("approve"),
  r: () => enter("#send-back") || decide("send-back"),
  c: () => enter("#comment") || comment(),
  u: () => { location.href = "/"; },
  "[": () => neighbour(-1),
  "]": () => neighbour(1),
  "?": () => document.querySelector("#keys")?.showModal(),
  Enter: () => enter(""),
};

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    const isTyping = event.target.matches("textarea, input, select");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !doing[event.key]) return;
    if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
    event.preventDefault();
    doing[event.key]();
  });
  document.querySelector("#keys button")?.addEventListener("click", () => document.querySelector("#keys").close());
  document.querySelectorAll("[data-keys]").forEach((one) => one.addEventListener("click", () => doing["?"]()));
  const wished = { "#approve": () => decide("approve"), "#send-back": () => decide("send-back"), "#comment": ready };
  wished[location.hash]?.();
}
