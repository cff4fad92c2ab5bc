// Requests to the server that we came from.
export const change = document.body.dataset.change;

export function say(words) {
  document.querySelectorAll("[data-connection]").forEach((one) => { one.textContent = words; });
}

// After a restart the server has another secret; whoever came by its new link is let in again.
async function renew() {
  const answer = await fetch(location.href);
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.body.dataset.csrf = page.body.dataset.csrf;
  document.querySelectorAll("input[name=csrf]").forEach((one) => { one.value = page.body.dataset.csrf; });
  return true;
}

async function post(path, values, late) {
  const headers = { "X-CSRF-Token": document.body.dataset.csrf, "HX-Request": "true" };
  return fetch(path, { method: "POST", headers, body: new URLSearchParams(values), keepalive: late });
}

export async function json(path, values, late = false) {
  let answer = await post(path, values, late).catch(() => { throw new Error("not saved: agentd view does not answer"); });
  if (answer.status === 403 && await renew().catch(() => false)) answer = await post(path, values, late);
  if (answer.status === 403) {
    say("agentd view was restarted: open its new link; what you wrote is kept here");
    throw new Error("not saved yet");
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(said.error || `not saved (${answer.status})`), { text: said.text });
  if (said.shown) document.body.dispatchEvent(new CustomEvent("agentd-shown", { detail: said }));
  return said;
}

export function tell(name) {
  document.body.dispatchEvent(new CustomEvent(name));
}

// Whether somebody is in the middle of something that a new text would take away.
export function isBusy() {
  const here = document.activeElement;
  const isWriting = here && here.matches("textarea, input[type=text], input[type=number]") && here.value.trim() !== "";
  const isSelecting = !getSelection().isCollapsed && document.querySelector(".paper")?.contains(getSelection().anchorNode);
  return isWriting || isSelecting || document.querySelector(".bar details[open], .note.draft, [data-unsaved]") !== null;
}
