// Words on their way to the server. What it has not taken is kept in this browser, tried again, and there after a reload.
import { change } from "./asking.js";

const pause = 400;
const patience = 3000;

const key = (name) => `draft:${change}:${name}`;

export function kept() {
  const names = Object.keys(sessionStorage).filter((one) => one.startsWith(key("")));
  return names.map((one) => [one.slice(key("").length), JSON.parse(sessionStorage.getItem(one))]);
}

export function forget(name) {
  sessionStorage.removeItem(key(name));
}

// `save` gets the words and those that the server had before; `more` is kept beside them.
export class Draft {
  constructor(area, sign, name, save, more = () => ({})) {
    Object.assign(this, { area, sign, name, save, more, taken: area.value, timer: 0, going: Promise.resolve(true) });
    this.listening = new AbortController();
    const { signal } = this.listening;
    area.addEventListener("input", () => this.soon(), { signal });
    area.addEventListener("blur", () => this.now(), { signal });
    addEventListener("pagehide", () => this.now(true), { signal });
  }

  get isBlank() {
    return !this.area.value.trim();
  }

  soon(wait = pause) {
    this.sign.textContent = "…";
    this.area.toggleAttribute("data-unsaved", !this.isBlank);
    sessionStorage.setItem(key(this.name), JSON.stringify({ text: this.area.value, ...this.more() }));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), wait);
  }

  // Whether the server has the words as they stand; blank ones are never sent in place of others.
  now(late = false) {
    clearTimeout(this.timer);
    this.going = this.going.then(() => this.send(late));
    return this.going;
  }

  async send(late) {
    const text = this.area.value;
    if (this.listening.signal.aborted || this.isBlank || text === this.taken) {
      if (text === this.taken) {
        this.area.removeAttribute("data-unsaved");
        forget(this.name);
      }
      return true;
    }
    try {
      await this.save(text, this.taken, late);
      this.taken = text;
    } catch (error) {
      if (this.listening.signal.aborted) return false;
      this.sign.textContent = error.message;
      if (error.text !== undefined) this.taken = error.text; // written elsewhere: to replace that is for the writer to decide
      else this.timer = setTimeout(() => this.now(), patience);
      return false;
    }
    if (this.area.value !== text) return this.send(late);
    this.sign.textContent = "saved";
    this.area.removeAttribute("data-unsaved");
    forget(this.name);
    return true;
  }

  end() {
    clearTimeout(this.timer);
    this.listening.abort();
    forget(this.name);
  }
}
