// Comments are written beside the text and saved as they are typed.
import { change, json, tell } from "./asking.js";
import { block, choose, highlight, place } from "./margin.js";

const around = 40;
const pause = 400;
let pick = null;

const paper = () => document.querySelector(".paper");
const base = `/changes/${encodeURIComponent(change)}/comments`;

// Words on their way to the server, one request after the other; `save` gets the last ones.
class Draft {
  constructor(area, sign, save) {
    Object.assign(this, { area, sign, save, timer: 0, last: area.value, going: Promise.resolve() });
    area.addEventListener("input", () => this.soon());
    area.addEventListener("blur", () => this.now());
    addEventListener("pagehide", () => this.now(true));
  }

  soon() {
    this.sign.textContent = "…";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), pause);
  }

  now(late = false) {
    clearTimeout(this.timer);
    const text = this.area.value;
    if (text === this.last || (!text.trim() && !this.last.trim())) return this.going;
    this.last = text;
    this.going = this.going.then(() => this.save(text, late)).then(
      () => { if (this.area.value === this.last) this.sign.textContent = "saved"; },
      (error) => {
        this.last = "";
        this.sign.textContent = error.message;
      },
    );
    return this.going;
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

export function write(range) {
  if (document.querySelector(".note.draft")) return;
  const where = anchor(range);
  const note = document.querySelector("#composer").content.firstElementChild.cloneNode(true);
  note.dataset.line = where.line;
  const [area, weight, sign] = ["textarea", "select", ".saved"].map((one) => note.querySelector(one));
  document.querySelector("#margin").append(note);
  let id = "";
  const draft = new Draft(area, sign, async (text, late) => {
    if (id) await json(`${base}/${id}/edit`, { number: 0, text }, late);
    else id = (await json(base, { ...where, text, weight: weight.value }, late)).id;
  });
  weight.addEventListener("change", () => { if (id) draft.going.then(() => json(`${base}/${id}/weight`, { weight: weight.value })); });
  const over = () => {
    note.remove();
    highlight("drafting", []);
    tell("agentd-text");
  };
  note.querySelector("[data-done]").addEventListener("click", () => draft.now().then(() => { if (id || !area.value.trim()) over(); }));
  note.querySelector("[data-discard]").addEventListener("click", async () => {
    clearTimeout(draft.timer);
    await draft.going;
    if (id) await json(`${base}/${id}/remove`, {}).catch(() => {});
    over();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      event.stopPropagation();
      note.querySelector("[data-done]").click();
    }
  });
  getSelection().removeAllRanges();
  hide();
  highlight("drafting", [range]);
  choose(note, false);
  area.focus({ preventScroll: true });
  note.scrollIntoView({ block: "nearest" });
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
  if (area.draft) return;
  let number = "";
  area.draft = new Draft(area, form.querySelector(".saved"), async (text, late) => {
    if (number !== "") await json(`${base}/${note.dataset.comment}/edit`, { number, text }, late);
    else number = (await json(`${base}/${note.dataset.comment}/reply`, { text }, late)).comment.thread.length - 1;
  });
}

function edit(note, entry) {
  const said = entry.querySelector(".said");
  const form = document.querySelector("#rewording").content.firstElementChild.cloneNode(true);
  const area = form.querySelector("textarea");
  area.value = said.textContent;
  said.replaceWith(form);
  note.classList.add("draft");
  const draft = new Draft(area, form.querySelector(".saved"), (text, late) =>
    json(`${base}/${note.dataset.comment}/edit`, { number: entry.dataset.number, text }, late));
  form.querySelector("[data-done]").addEventListener("click", () => draft.now().then(() => {
    note.classList.remove("draft");
    tell("agentd-text");
  }));
  area.focus();
  place();
}

async function act(button) {
  const note = button.closest(".note");
  const doing = button.dataset.act;
  if (doing === "edit") return edit(note, button.closest("[data-number]"));
  try {
    await json(`${base}/${note.dataset.comment}/${doing}`, {});
    tell("agentd-text");
  } catch (error) {
    button.textContent = error.message;
  }
}

export function start() {
  if (!paper()) return;
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
    area.draft?.now().then(() => {
      area.value = "";
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
    if (select) json(`${base}/${select.closest(".note").dataset.comment}/weight`, { weight: select.value }).then(() => tell("agentd-text"));
  });
}
