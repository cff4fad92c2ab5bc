// Which documents were read, and as what: a decision counts for those, and not for what they became since.
import { change } from "./asking.js";

const key = `read:${change}`;
const first = document.querySelector("input[name=shown]");
const loaded = first ? JSON.parse(first.value) : {};
const desk = document.querySelector(".desk");
const code = "the code";
let hasDecided = false;

function known() {
  try {
    return JSON.parse(localStorage.getItem(key) || "{}");
  } catch {
    return {};
  }
}

function keep(seen) {
  localStorage.setItem(key, JSON.stringify({ ...known(), ...seen }));
}

export function mark() {
  const seen = known();
  const rows = [...document.querySelectorAll(".documents a[data-hash]")];
  for (const row of rows) {
    const hash = seen[row.dataset.document];
    row.dataset.state = hash === undefined ? "" : hash === row.dataset.hash ? "read" : "changed";
  }
  const left = rows.filter((row) => row.dataset.plan && row.dataset.state === "").length;
  for (const place of document.querySelectorAll("[data-unread]")) {
    place.textContent = left ? ` · ${left} of the plan's documents not opened yet` : "";
  }
}

// What this person has seen of each document: as it was when it was last opened, or when the page was loaded.
function shown(form) {
  const given = JSON.parse(form.elements.shown.value);
  if (form.dataset.fresh) return given;
  const seen = known();
  const all = { ...given, ...loaded };
  return Object.fromEntries(Object.keys(all).map((name) => [name, seen[name] || all[name]]));
}

export function start() {
  if (!change) return;
  if (desk && desk.dataset.hash) keep({ [desk.dataset.document]: desk.dataset.hash });
  if (document.querySelector("[data-is-code]") && loaded[code]) keep({ [code]: loaded[code] });
  // One's own comment is no news; what others did in the meantime is.
  document.body.addEventListener("agentd-shown", ({ detail: { shown: now, before } }) => {
    for (const name of Object.keys(now)) if (loaded[name] === before[name]) loaded[name] = now[name];
  });
  // One's own decision is no news either: what the page says after it is what counts.
  document.body.addEventListener("htmx:afterSwap", ({ detail: { target } }) => {
    if (target.id === "told") hasDecided = target.querySelector("[data-ok=yes]") !== null;
  });
  document.body.addEventListener("htmx:afterSettle", ({ detail: { elt } }) => {
    const now = elt.id === "bar" && hasDecided && elt.querySelector("input[name=shown]");
    if (!now) return;
    hasDecided = false;
    for (const [name, value] of Object.entries(JSON.parse(now.value))) {
      if (name !== code && !name.endsWith(".md")) loaded[name] = value;
    }
  });
  document.body.addEventListener("submit", (event) => {
    if (event.target.elements.shown) event.target.elements.shown.value = JSON.stringify(shown(event.target));
  }, true);
  document.body.addEventListener("htmx:configRequest", (event) => {
    const form = event.detail.elt.closest("form");
    if (!form || !form.elements.shown) return;
    const seen = shown(form);
    event.detail.parameters.shown = JSON.stringify(seen);
    if (!form.dataset.fresh) return;
    keep(Object.fromEntries(Object.entries(seen).filter(([name]) => name === code || name.endsWith(".md"))));
    Object.assign(loaded, seen);
  });
}
