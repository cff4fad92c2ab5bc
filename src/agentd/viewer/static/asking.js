// Requests to the server that we came from.
export const change = document.body.dataset.change;

export async function post(path, values, late = false) {
  const headers = { "X-CSRF-Token": document.body.dataset.csrf, "HX-Request": "true" };
  const body = new URLSearchParams(values);
  return fetch(path, { method: "POST", headers, body, keepalive: late });
}

export async function json(path, values, late = false) {
  const answer = await post(path, values, late);
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error || `not saved (${answer.status})`);
  return said;
}

export function tell(name) {
  document.body.dispatchEvent(new CustomEvent(name));
}

// Whether somebody is in the middle of something that a new text would take away.
export function isBusy() {
  const here = document.activeElement;
  const isWriting = here && here.matches("textarea, input[type=text], input[type=number]") && here.value.trim() !== "";
  return isWriting || document.querySelector(".bar details[open], .note.draft") !== null;
}
