// What happens on disk reaches the page; nothing is taken from under somebody's hands.
import { change, isBusy, tell } from "./asking.js";

const waiting = new Set();
let timer = 0;
let lost = 0;

function show() {
  timer = 0;
  if (!window.htmx) return;
  const bar = document.querySelector("#changed");
  if (isBusy()) {
    if (bar && waiting.has("agentd-text")) bar.hidden = false;
    timer = setTimeout(show, 700);
    return;
  }
  if (bar) bar.hidden = true;
  const names = [...waiting];
  waiting.clear();
  names.forEach(tell);
}

function soon(...names) {
  names.forEach((name) => waiting.add(name));
  timer = timer || setTimeout(show, 150);
}

export function refresh() {
  document.activeElement?.blur();
  soon("agentd-text", "agentd-run");
}

function connected(is) {
  clearTimeout(lost);
  const show = (words) => document.querySelectorAll("[data-connection]").forEach((one) => { one.textContent = words; });
  if (is) show("");
  else lost = setTimeout(() => show("not connected: start agentd view again"), 3000);
}

export function start() {
  const stream = new EventSource(`/events?change=${encodeURIComponent(change)}`);
  let wasLost = false;
  stream.addEventListener("changed", () => soon("agentd-text", "agentd-run"));
  stream.addEventListener("run", () => soon("agentd-run"));
  stream.onopen = () => {
    connected(true);
    if (wasLost) refresh();
    else soon("agentd-run"); // what happened since the page was made, and before it was heard
    wasLost = false;
  };
  stream.onerror = () => {
    wasLost = true;
    connected(false);
  };
  addEventListener("pagehide", () => stream.close());
  // Asked for while nobody wrote, answered while somebody does: it waits.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { target } = event.detail;
    if (!["desk", "bar"].includes(target.id) || !isBusy()) return;
    event.detail.shouldSwap = false;
    soon(target.id === "desk" ? "agentd-text" : "agentd-run");
  });
  // Decided, or shown what changed instead: the panel has done its part.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "told" || !event.detail.target.querySelector("[data-ok=yes], form")) return;
    document.querySelectorAll(".bar details[open]").forEach((one) => one.removeAttribute("open"));
    refresh();
  });
  document.querySelector("#changed button")?.addEventListener("click", () => {
    document.querySelectorAll(".bar details[open]").forEach((one) => one.removeAttribute("open"));
    refresh();
  });
}
