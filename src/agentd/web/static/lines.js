// A quiet link to the line of the block that somebody is at: to be copied, and to be sent to others.
const link = document.createElement("a");

export function point(one) {
  if (!one) return;
  const paper = one.closest(".paper");
  const room = paper.getBoundingClientRect().left + parseFloat(getComputedStyle(paper).paddingLeft);
  link.href = `#L${one.dataset.line}`;
  link.ariaLabel = `Link to line ${one.dataset.line}`;
  link.hidden = false;
  link.style.top = `${scrollY + one.getBoundingClientRect().top}px`;
  link.style.left = `${scrollX + room - link.offsetWidth - 2}px`; // beside the text: never over its first letter
}

// The text is another one.
export function again() {
  link.hidden = true;
}

export function start() {
  if (!document.querySelector(".desk")) return;
  Object.assign(link, { className: "line", textContent: "#", hidden: true });
  document.body.append(link);
  for (const name of ["mouseover", "focusin"]) {
    document.addEventListener(name, (event) => {
      if (!event.target.closest?.(".note")) point(event.target.closest?.(".paper [data-line]"));
    });
  }
}
