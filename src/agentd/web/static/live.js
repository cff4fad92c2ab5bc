// What happens on disk reaches the page; nothing is taken from under somebody's hands.
import { change, isBusy, say, tell } from "./asking.js";
import { renew } from "./comments.js";

const patience = 3000;
const waiting = new Set();
let hasNews = false; // the text itself is another one: a comment beside it is not worth a word while one writes
let timer = 0;
let lost = 0;
let going = 0;

function show() {
  timer = 0;
  if (!window.htmx) return;
  if (going) { // what is asked of an element that is being replaced is never answered
    timer = setTimeout(show, 100);
    return;
  }
  const bar = document.querySelector("#changed");
  if (isBusy()) {
    if (bar && hasNews) bar.hidden = false;
    timer = setTimeout(show, 700);
    return;
  }
  const names = [...waiting];
  waiting.clear();
  names.forEach(tell);
}

// The bar knows of what was written before anybody listened.
function compare() {
  const [bar, desk] = ["#bar", "#desk"].map((one) => document.querySelector(one));
  if (going) setTimeout(compare, 200);
  else if (bar && desk && bar.dataset.stamp !== desk.dataset.stamp) soon("agentd-text");
}

function renewed() {
  hasNews = false;
  const bar = document.querySelector("#changed");
  if (bar) bar.hidden = true;
}

function soon(...names) {
  names.forEach((name) => waiting.add(name));
  timer = timer || setTimeout(show, 150);
}

export function refresh() {
  document.activeElement?.blur();
  soon("agentd-text", "agentd-run");
}

function hear({ type, about = [] }) {
  const [whose, ...names] = type === "changed" || type === "run" ? about : [];
  if (type === "open") {
    clearTimeout(lost);
    say("");
    soon("agentd-run"); // what happened since the page was made, and before it was heard
  } else if (type === "lost") {
    clearTimeout(lost);
    lost = setTimeout(() => say("disconnected: run agentd view again and open its link"), patience);
  } else if (type === "unwatched") {
    say("live updates are paused: reload the page to see what is new");
  } else if (type === "watched") {
    say("");
    hasNews = true; // nobody knows
    refresh();
  } else if (!change || whose === change) {
    hasNews ||= names.includes(document.querySelector("#desk")?.dataset.document);
    soon("agentd-run", ...(type === "changed" ? ["agentd-text"] : []));
  }
}

async function listen() {
  if (!globalThis.SharedWorker) {
    const { join } = await import("./listening.js");
    join({ postMessage: hear });
    return;
  }
  const worker = new SharedWorker("/static/listening.js", { type: "module" });
  worker.onerror = () => hear({ type: "lost" }); // the server went before it could be heard
  const { port } = worker;
  port.onmessage = (event) => hear(event.data);
  addEventListener("pagehide", (event) => { if (!event.persisted) port.postMessage("left"); });
}

const isAtWork = () => document.querySelector("#bar[data-running], #inbox .chip.live") !== null;

export function start() {
  let wasAtWork = isAtWork();
  listen();
  // A run that is killed writes nothing: it is looked after.
  setInterval(() => { if (isAtWork()) soon("agentd-run"); }, 5000);
  document.body.addEventListener("htmx:beforeSend", ({ detail: { xhr } }) => {
    going += 1;
    xhr.addEventListener("loadend", () => { going -= 1; });
  });
  document.body.addEventListener("htmx:afterSettle", ({ detail: { elt } }) => {
    if (elt.id === "bar") {
      compare();
      if (wasAtWork && !isAtWork()) soon("agentd-run"); // other parts may have been asked for just before its end
      wasAtWork = isAtWork();
    }
    if (elt.id === "desk") renewed();
  });
  // Asked for while nobody wrote, answered while somebody does: it waits.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr } = event.detail;
    if (target.id === "told") return;
    if (xhr.status >= 300) { // what is there stays
      event.detail.shouldSwap = false;
      const isShut = xhr.status === 403;
      say(isShut ? "agentd view was restarted: open its new link" : "this cannot be updated right now and may be out of date");
      return;
    }
    if (!["desk", "bar"].includes(target.id) || !isBusy()) return;
    event.detail.shouldSwap = false;
    soon(target.id === "desk" ? "agentd-text" : "agentd-run");
  });
  // The parts of a change come with what there is to show; which of them this page is, only the page knows.
  document.body.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const { target, fragment } = detail;
    if (target.id !== "tabs") return;
    const here = target.querySelector("[aria-current]")?.textContent;
    const [now] = fragment.querySelectorAll("#tabs");
    now.querySelectorAll("a").forEach((one) => { if (one.textContent === here) one.setAttribute("aria-current", "page"); });
    if (now.innerHTML === target.innerHTML) detail.shouldSwap = false; // the keyboard may be at one of them
  });
  // Decided, or shown what changed instead: the panel has done its part.
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id !== "told" || !event.detail.target.querySelector("[data-ok=yes], form")) return;
    document.querySelectorAll(".bar details[open]").forEach((one) => one.removeAttribute("open"));
    refresh();
  });
  document.querySelector("#changed button")?.addEventListener("click", () => {
    document.querySelectorAll(".bar details[open]").forEach((one) => one.removeAttribute("open"));
    getSelection().removeAllRanges();
    if (document.querySelector(".note.draft")) renew();
    else refresh();
  });
}
