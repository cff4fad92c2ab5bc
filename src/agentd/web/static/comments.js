// Comments are written beside the text and saved as they are typed.
import { change, json, tell } from "./asking.js";
import { Draft, forget, kept } from "./drafts.js";
import { choose, highlight, place } from "./margin.js";

const around = 40;
const patience = 3000;
let pick = null;
let count = 0;

const paper = () => document.querySelector(".paper");
const base = `/changes/${encodeURIComponent(change)}/comments`;

// ---- one after the other

// Until the text is there as the server has it; an answer that does not come is not waited for.
function renewed() {
  return new Promise((done) => {
    const settled = ({ detail: { elt } }) => {
      if (elt.id !== "desk") return;
      document.body.removeEventListener("htmx:afterSettle", settled);
      done();
    };
    document.body.addEventListener("htmx:afterSettle", settled);
    setTimeout(done, window.htmx ? patience : 0);
    tell("agentd-text");
  });
}

// Words that are gone altogether: to take them away is another button.
function emptied(note) {
  return `a comment cannot be empty: ${note.querySelector("[data-act=remove], [data-discard]") ? "remove" : "resolve"} it instead`;
}

// Brings the text up to date under what is being written: that is saved, and open again beside the new text.
export async function renew() {
  const spots = [];
  for (const note of document.querySelectorAll(".note.draft")) {
    const spot = await note.finish();
    if (!spot) return note.querySelector("textarea").focus(); // it says why
    spots.push(spot);
  }
  await renewed();
  for (const { id, number } of spots) {
    const entry = document.querySelector(`#note-${CSS.escape(id)} [data-number="${number}"]`);
    if (entry?.querySelector("[data-act=edit]")) edit(entry.closest(".note"), entry);
  }
}

// Another one is begun: what was being written stands there as said, and is saved meanwhile.
function leave() {
  for (const note of document.querySelectorAll(".note.draft")) {
    const area = [...note.querySelectorAll("textarea")].find((one) => one.draft && !one.hidden && !one.closest("form.reply"));
    const { draft } = area;
    const said = document.createElement("p");
    said.className = "said";
    said.textContent = draft.isBlank ? draft.taken : area.value;
    if (!said.textContent) {
      draft.end();
      note.remove();
      continue;
    }
    if (draft.isBlank) draft.sign.textContent = emptied(note);
    area.before(said);
    [area, ...draft.sign.parentElement.querySelectorAll("select, button")].forEach((one) => { one.hidden = true; });
    note.classList.remove("draft");
    draft.now();
  }
}

// ---- a new one

function selected() {
  const selection = getSelection();
  if (selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  const text = paper();
  if (!text || !text.contains(range.commonAncestorContainer)) return null;
  if (range.startContainer.parentElement?.closest(".note")) return null;
  return selection.toString().trim() ? range.cloneRange() : null;
}

export function ofBlock(one) {
  const range = document.createRange();
  range.selectNodeContents(one);
  return range;
}

function words(from, to) {
  const range = document.createRange();
  range.setStart(...from);
  range.setEnd(...to);
  return range.toString();
}

function anchor(range) {
  const start = range.startContainer;
  const holder = (start.nodeType === Node.TEXT_NODE ? start.parentElement : start).closest("[data-line]") || paper();
  const before = words([paper(), 0], [range.startContainer, range.startOffset]).slice(-around);
  const after = words([range.endContainer, range.endOffset], [paper(), paper().childNodes.length]).slice(0, around);
  return {
    document: document.querySelector(".desk").dataset.document,
    quote: range.toString().trim(),
    before,
    after,
    line: holder.dataset.line || "1",
  };
}

// By the keyboard alone.
function closing(area, done) {
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    event.stopPropagation();
    done.click();
  });
}

// A note to write in; `had` is what was kept of one that the server has not taken yet.
function compose(where, had = {}) {
  const note = document.querySelector("#composer").content.firstElementChild.cloneNode(true);
  Object.assign(note.dataset, { line: where.line, quote: where.quote });
  const [area, weight, sign] = ["textarea", "select", ".saved"].map((one) => note.querySelector(one));
  document.querySelector("#margin").append(note);
  let id = had.id || "";
  let given = had.weight || weight.value;
  weight.value = given;
  const draft = new Draft(area, sign, `new:${Date.now()}-${count++}`, async (text, was, late) => {
    const wished = weight.value;
    if (!id) {
      id = (await json(base, { ...where, text, weight: wished }, late)).id;
      given = wished;
    } else {
      await json(`${base}/${id}/edit`, { number: 0, text, was }, late);
    }
  }, () => ({ where, id, weight: weight.value }));
  area.draft = draft;
  const weigh = async () => {
    if (!id || given === weight.value) return;
    await json(`${base}/${id}/weight`, { weight: weight.value });
    given = weight.value;
  };
  const told = (work) => work().catch((error) => { sign.textContent = error.message; });
  const over = () => {
    draft.end();
    note.remove();
    highlight("drafting", []);
  };
  note.finish = () => told(async () => {
    if (id && draft.isBlank) throw new Error(emptied(note));
    if (!await draft.now()) return null;
    await weigh();
    over();
    return { id, number: 0 };
  });
  weight.addEventListener("change", () => told(() => draft.going.then(weigh)));
  note.querySelector("[data-done]").addEventListener("click", async () => {
    if (await note.finish()) tell("agentd-text");
  });
  note.querySelector("[data-discard]").addEventListener("click", () => told(async () => {
    clearTimeout(draft.timer);
    await draft.going;
    if (id) await json(`${base}/${id}/remove`, {});
    over();
    tell("agentd-text");
  }));
  closing(area, note.querySelector("[data-done]"));
  choose(note, false);
  if (had.text) {
    area.value = had.text;
    draft.soon();
  }
  return area;
}

export function write(range) {
  leave();
  const area = compose(anchor(range));
  getSelection().removeAllRanges();
  hide();
  highlight("drafting", [range]);
  area.focus({ preventScroll: true });
  area.closest(".note").scrollIntoView({ block: "nearest" });
}

export function here() {
  const range = selected();
  if (range) write(range);
  return range !== null;
}

function hide() {
  pick?.remove();
  pick = null;
}

function offer() {
  const range = selected();
  if (!range) return hide();
  if (!pick) {
    pick = document.createElement("button");
    pick.className = "pick";
    pick.textContent = "Comment";
    pick.addEventListener("mousedown", (event) => event.preventDefault());
    pick.addEventListener("click", here);
    document.body.append(pick);
  }
  const at = range.getBoundingClientRect();
  pick.style.top = `${scrollY + at.bottom + 6}px`;
  pick.style.left = `${scrollX + Math.min(at.left, innerWidth - 120)}px`;
}

// ---- those that are there

function reply(note, form) {
  const area = form.querySelector("textarea");
  if (area.draft) return area;
  const id = note.dataset.comment;
  let number = "";
  const save = async (text, was, late) => {
    if (number !== "") await json(`${base}/${id}/edit`, { number, text, was }, late);
    else number = (await json(`${base}/${id}/reply`, { text }, late)).comment.thread.length - 1;
  };
  area.draft = new Draft(area, form.querySelector(".saved"), `reply:${id}`, save);
  return area;
}

function edit(note, entry) {
  leave();
  const [id, { number }] = [note.dataset.comment, entry.dataset];
  const said = entry.querySelector(".said");
  const form = document.querySelector("#rewording").content.firstElementChild.cloneNode(true);
  const area = form.querySelector("textarea");
  area.value = said.textContent;
  said.replaceWith(form);
  note.classList.add("draft");
  note.finish = async () => {
    if (draft.isBlank) draft.sign.textContent = emptied(note);
    if (draft.isBlank || !await draft.now()) return null;
    draft.end();
    area.blur(); // nobody writes here any more
    note.classList.remove("draft");
    return { id, number };
  };
  const save = (text, was, late) => json(`${base}/${id}/edit`, { number, text, was }, late);
  const draft = new Draft(area, form.querySelector(".saved"), `edit:${id}:${number}`, save);
  area.draft = draft;
  form.querySelector("[data-done]").addEventListener("click", async () => {
    if (await note.finish()) tell("agentd-text");
  });
  closing(area, form.querySelector("[data-done]"));
  area.focus();
  place();
  return area;
}

// What the server had not taken when the page was left.
function restore() {
  const put = (area, text) => {
    area.value = text;
    area.draft.soon();
  };
  for (const [name, had] of kept()) {
    const [kind, id, number] = name.split(":");
    const note = document.querySelector(`.note[data-comment="${CSS.escape(id || "")}"]`);
    if (kind === "new" && had.where?.document === document.querySelector(".desk").dataset.document) {
      forget(name);
      compose(had.where, had);
    } else if (kind === "reply" && note?.querySelector("form.reply")) {
      note.querySelector("form.reply details").open = true;
      put(reply(note, note.querySelector("form.reply")), had.text);
    } else if (kind === "edit" && note?.querySelector(`[data-number="${number}"] [data-act=edit]`)) {
      put(edit(note, note.querySelector(`[data-number="${number}"]`)), had.text);
    }
  }
}

// What was done to a note is seen at once, also while another is being written.
function show() {
  if (document.querySelector(".note.draft")) renew();
  else tell("agentd-text");
}

async function act(button) {
  const note = button.closest(".note");
  const doing = button.dataset.act;
  if (doing === "edit") return edit(note, button.closest("[data-number]"));
  try {
    await json(`${base}/${note.dataset.comment}/${doing}`, {});
    if (doing === "remove") {
      note.querySelectorAll("textarea").forEach((area) => area.draft?.end());
      note.remove();
    }
    show();
  } catch (error) {
    button.textContent = error.message;
  }
}

export function start() {
  if (!document.querySelector("#composer")) return;
  document.addEventListener("selectionchange", () => { if (getSelection().isCollapsed) hide(); });
  document.addEventListener("mouseup", () => setTimeout(offer));
  document.addEventListener("touchend", () => setTimeout(offer, 50));
  document.addEventListener("focusin", (event) => {
    const form = event.target.closest("form.reply");
    if (form) reply(form.closest(".note"), form);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form.reply");
    if (!form) return;
    event.preventDefault();
    const area = form.querySelector("textarea");
    if (!area.draft || area.draft.isBlank) return;
    area.draft.now().then((isSaved) => {
      if (!isSaved) return;
      area.draft.end();
      area.value = "";
      area.blur();
      tell("agentd-text");
    });
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button) return;
    event.preventDefault();
    act(button);
  });
  document.addEventListener("change", (event) => {
    const select = event.target.closest("select[data-weight]");
    if (!select) return;
    json(`${base}/${select.closest(".note").dataset.comment}/weight`, { weight: select.value }).then(
      show,
      (error) => { select.title = error.message; },
    );
  });
  restore();
}
