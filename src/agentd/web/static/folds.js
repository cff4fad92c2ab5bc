// What somebody has folded, unfolded or written stays so when a part of the page is made anew.
const known = new Map();
const reasons = new Map();

function name(one) {
  return `${one.parentElement.closest("[id]")?.id}/${one.dataset.fold || one.querySelector("summary").textContent}`;
}

export function again() {
  for (const one of document.querySelectorAll("main details")) {
    if (known.has(name(one))) one.open = known.get(name(one));
  }
  for (const area of document.querySelectorAll("#bar textarea")) area.value ||= reasons.get(area.form.elements.choice.value) || "";
}

export function start() {
  document.addEventListener("input", (event) => {
    if (event.target.matches("#bar textarea")) reasons.set(event.target.form.elements.choice.value, event.target.value);
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.detail.elt.matches(".bar form")) reasons.clear();
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("main details")) known.set(name(event.target), event.target.open);
  }, true);
}
