// What somebody has folded or unfolded stays so when a part of the page is made anew.
const known = new Map();

function name(one) {
  return `${one.parentElement.closest("[id]")?.id}/${one.dataset.fold || one.querySelector("summary").textContent}`;
}

export function again() {
  for (const one of document.querySelectorAll("main details")) {
    if (known.has(name(one))) one.open = known.get(name(one));
  }
}

export function start() {
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("main details")) known.set(name(event.target), event.target.open);
  }, true);
}
