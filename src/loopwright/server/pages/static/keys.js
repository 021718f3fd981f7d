"use strict";

// The keyboard: a palette of pages and actions, and single keys where nothing is being typed.
class Palette {
  constructor(box) {
    this.box = box;
    this.text = document.getElementById("palette-text");
    this.list = document.getElementById("palette-list");
    this.asked = 0;
    this.text.addEventListener("input", () => this.fill());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("click", (event) => {
      const line = event.target.closest("[role=option]");
      if (line) this.take(line, event);
    });
  }

  open() {
    if (this.box.open) return;
    this.text.value = "";
    this.box.showModal();
    this.fill();
  }

  get lines() { return [...this.list.querySelectorAll("[role=option]")]; }

  // What this page offers: its navigation, its views, and the buttons of its forms.
  here() {
    const found = [];
    const add = (element, kind, label) => found.push({ element, kind, label: label.replace(/\s+/g, " ").trim() });
    const buttons = "main .actions form button, main .actions > button[popovertarget], main .inline form button";
    for (const one of document.querySelectorAll(buttons)) {
      // What is in a dialog belongs to the button that opens it.
      if (one.textContent.trim().length > 1 && !one.closest("[popover]")) add(one, "do", one.textContent);
    }
    for (const one of document.querySelectorAll("main .tabs a")) add(one, "view", one.textContent);
    for (const one of document.querySelectorAll("nav[aria-label=Main] a")) add(one, "page", one.textContent);
    add(document.querySelector("[data-theme-switch]"), "do", "Switch between light and dark");
    return found;
  }

  async fill() {
    const wanted = this.text.value.trim().toLowerCase();
    const number = ++this.asked;
    const own = this.here().filter((one) => one.label.toLowerCase().includes(wanted)).slice(0, wanted ? 6 : 8);
    const reply = await fetch(`/find?q=${encodeURIComponent(wanted)}`, { headers: { Accept: "text/html" } });
    if (number !== this.asked || !reply.ok) return;
    const made = document.createElement("template");
    made.innerHTML = await reply.text();
    this.list.replaceChildren(...own.map((one, n) => this.line(one, n)), made.content);
    if (!this.lines.length) {
      const none = document.createElement("p");
      none.className = "muted nothing";
      none.textContent = "Nothing has this name.";
      this.list.append(none);
    }
    this.choose(0);
  }

  line(one, n) {
    const made = document.createElement("div");
    made.className = "choice-line";
    made.setAttribute("role", "option");
    made.id = `here-${n}`;
    made.target = one.element;
    const label = document.createElement("span");
    label.className = "grow";
    label.textContent = one.label;
    const kind = document.createElement("span");
    kind.className = "muted small";
    kind.textContent = one.kind;
    made.append(label, kind);
    return made;
  }

  choose(at) {
    const lines = this.lines;
    if (!lines.length) return;
    this.at = (at + lines.length) % lines.length;
    lines.forEach((one, n) => one.setAttribute("aria-selected", String(n === this.at)));
    lines[this.at].scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", lines[this.at].id);
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.choose(this.at + step);
    } else if (event.key === "Enter" && this.lines[this.at]) {
      event.preventDefault();
      this.take(this.lines[this.at]);
    }
  }

  take(line, event) {
    if (line.target instanceof HTMLElement) {
      this.box.close();
      line.target.click();
    } else if (!event) {
      line.click();
    }
  }
}

// Items of a list, in the order of the page.
const ITEMS = "main a.row, main .card-head .title, main .board-card, main tbody tr td:first-child a, main .answer .button";

function step(by) {
  const all = [...document.querySelectorAll(ITEMS)].filter((one) => one.offsetParent);
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  all[Math.min(Math.max(next, 0), all.length - 1)]?.focus();
}

function nextView(by) {
  const all = [...document.querySelectorAll("main .tabs a")];
  all[all.findIndex((one) => one.hasAttribute("aria-current")) + by]?.click();
}

let going = false;

function goTo(letter) {
  const links = [...document.querySelectorAll("nav[aria-label=Main] a")];
  links.find((one) => one.textContent.trim().toLowerCase().startsWith(letter))?.click();
}

const KEYS = {
  "/": () => palette.open(),
  "?": () => document.getElementById("keys").showModal(),
  j: () => step(1),
  k: () => step(-1),
  "[": () => nextView(-1),
  "]": () => nextView(1),
  s: () => document.getElementById("search")?.focus(),
  f: () => document.getElementById("follow")?.click(),
  t: () => document.querySelector("[data-theme-switch]").click(),
};

// What scrolls by itself can be reached with Tab, so that the arrow keys scroll it.
function reachable() {
  for (const one of document.querySelectorAll("main .scroll, main pre, main .question-text, main .canvas, main .gantt")) {
    const scrolls = one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight;
    if (scrolls && !one.hasAttribute("tabindex")) one.tabIndex = 0;
  }
}

document.addEventListener("htmx:after:settle", reachable);
document.addEventListener("toggle", reachable, true);

let palette;

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette.open();
    return;
  }
  // The field of a sheet that was just closed may have the focus for a moment: nothing is typed there.
  const closed = event.target.closest?.("dialog:not([open])");
  const typing = !closed && event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) {
    going = false;
    event.preventDefault();
    goTo(event.key);
  } else if (event.key === "g") {
    going = true;
  } else if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

document.addEventListener("DOMContentLoaded", () => {
  reachable();
  palette = new Palette(document.getElementById("palette"));
  document.querySelector("[data-palette]").addEventListener("click", () => palette.open());
  // A click beside a sheet closes it.
  for (const sheet of document.querySelectorAll("dialog.sheet")) {
    sheet.addEventListener("click", (event) => { if (event.target === sheet) sheet.close(); });
  }
});
