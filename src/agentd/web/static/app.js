// Everything here adds to pages that can be read, and decided upon, without it.
import * as ages from "./ages.js";
import * as comments from "./comments.js";
import * as diagrams from "./diagrams.js";
import * as folds from "./folds.js";
import * as keys from "./keys.js";
import * as lines from "./lines.js";
import * as live from "./live.js";
import * as margin from "./margin.js";
import * as read from "./read.js";

function dress() {
  folds.again();
  lines.again();
  margin.place();
  read.mark();
  ages.tick();
  diagrams.draw();
  keys.again();
}

// On a phone there are more parts than have room: the one that is shown is among those that are seen.
function reach() {
  const strip = document.querySelector("#tabs");
  const here = strip?.querySelector("[aria-current]");
  if (here) strip.scrollLeft = here.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
}

// The frame is made anew every few seconds of a run; the text that it stands around is as it was.
function settled({ target }) {
  if (!target.closest(".top, .bar")) return dress();
  folds.again();
  read.mark();
  ages.tick();
  if (target.id === "tabs") reach();
}

comments.start();
folds.start();
keys.start();
lines.start();
read.start();
margin.start();
live.start();
ages.start();
document.body.addEventListener("htmx:afterSettle", settled);
dress();
reach();
