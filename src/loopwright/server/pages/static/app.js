"use strict";

// Times: the local one on hover; the relative one stays as the server wrote it.
function localTimes(root) {
  for (const one of root.querySelectorAll("time[datetime]")) {
    one.title = new Date(one.dateTime).toLocaleString();
  }
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) {
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark")
      && (document.documentElement.dataset.theme === "dark"
        || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches));
    const next = dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    // The server draws the next page in it: no script has to run before that.
    document.cookie = `loopwright_theme=${next}; path=/; max-age=31536000; samesite=lax`;
  }
});

document.addEventListener("submit", (event) => {
  const sentence = event.target.dataset.confirm;
  if (sentence && !confirm(sentence)) event.preventDefault();
});

// A live update loads the page without the refusal of a form: it stays beside the page until you close it.
function showRefusal(refused) {
  document.querySelector("body > .notice")?.remove();
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button tiny";
  close.textContent = "Close";
  close.addEventListener("click", () => refused.remove());
  // One box for the sentence, whatever is in it, and one for the button.
  const said = document.createElement("span");
  said.append(...refused.childNodes);
  refused.classList.add("notice");
  refused.append(said, close);
  document.body.append(refused);
}

function keepRefusal() {
  const refused = document.querySelector("main > p.refused");
  if (!refused) return;
  // The address is that of the form; a reload must show the page.
  const address = document.getElementById("main").getAttribute("hx-get");
  if (address) history.replaceState(null, "", address);
  showRefusal(refused);
}

// A form with text that you typed is sent from its page: if it is refused, the page stays, with the text and the reason.
async function sendAndKeep(form, submitter) {
  const main = document.getElementById("main");
  const fields = new URLSearchParams(new FormData(form, submitter));
  let reason = "The daemon does not answer. What you typed is still here: send it again.";
  // Nothing else is done here until the reply is known.
  main.inert = true;
  try {
    const reply = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "text/html" } });
    if (reply.redirected) {
      form.dispatchEvent(new Event("taken"));
      location.assign(reply.url);
      return;
    }
    const shown = new DOMParser().parseFromString(await reply.text(), "text/html");
    reason = reply.status === 401
      ? "You are signed out. Sign in in another tab, then send it again: what you typed is still here."
      : (shown.querySelector("main > .refused, .empty p")?.textContent ?? `It was refused: ${reply.status}.`);
  } catch (lost) {
    console.warn(lost);
  }
  main.inert = false;
  submitter?.focus();
  const refused = document.createElement("p");
  refused.className = "refused";
  refused.setAttribute("role", "alert");
  refused.textContent = reason;
  showRefusal(refused);
}

document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || !event.target.matches("[data-keep]")) return;
  event.preventDefault();
  sendAndKeep(event.target, event.submitter);
});

// Fields that are sent as soon as they change.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]") && event.target.form.reportValidity()) event.target.form.requestSubmit();
});

// A draft gets another task, or loses one that was not saved yet.
document.addEventListener("click", (event) => {
  event.target.closest("[data-remove-task]")?.closest("fieldset").remove();
  const add = event.target.closest("#add-task");
  if (!add) return;
  const made = document.getElementById("new-task").content.cloneNode(true);
  const used = [...add.form.elements].map((one) => Number.parseInt(one.name, 10)).filter((one) => one >= 0);
  const at = String(Math.max(-1, ...used) + 1);
  for (const one of made.querySelectorAll("[name], [id], [for]")) {
    for (const name of ["name", "id", "for"]) {
      if (one.hasAttribute(name)) one.setAttribute(name, one.getAttribute(name).replace("@", at));
    }
  }
  const first = made.querySelector("input");
  add.parentElement.before(made);
  first.focus();
});

// Rows that hold what was typed.
function filterRows(field) {
  const wanted = field.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(field.dataset.filter)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}

document.addEventListener("input", (event) => {
  if (event.target.dataset.filter) filterRows(event.target);
});
document.addEventListener("htmx:after:swap", () => document.querySelectorAll("[data-filter]").forEach(filterRows));

// A loop that is dragged onto another gets the same priority.
let dragged = null;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-reorder] tr[draggable]");
  if (!dragged) return;
  dragged.classList.add("dragged");
  event.dataTransfer.effectAllowed = "move";
});
document.addEventListener("dragover", (event) => {
  const over = dragged && event.target.closest("[data-reorder] tr[draggable]");
  for (const row of document.querySelectorAll("tr.drop")) row.classList.toggle("drop", row === over && row !== dragged);
  if (!over || over === dragged) return;
  over.classList.add("drop");
  event.preventDefault();
});
document.addEventListener("drop", (event) => {
  const over = event.target.closest("[data-reorder] tr[draggable]");
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  const field = dragged.querySelector("input.priority");
  field.value = over.querySelector("input.priority").value;
  field.form.requestSubmit();
});
document.addEventListener("dragend", () => {
  for (const row of document.querySelectorAll("tr.dragged, tr.drop")) row.classList.remove("dragged", "drop");
  dragged = null;
});

// A page that cannot be loaded again stays as it is; the next change tries again.
document.addEventListener("htmx:before:response", (event) => {
  const { sourceElement, response } = event.detail.ctx;
  if (sourceElement.id === "main" && !response.raw.ok) event.preventDefault();
});

// The stream: say so while it is lost.
document.addEventListener("htmx:sse:error", () => { document.getElementById("connection").hidden = false; });
document.addEventListener("htmx:after:sse:connection", () => { document.getElementById("connection").hidden = true; });
document.addEventListener("htmx:after:swap", () => localTimes(document));
document.addEventListener("htmx:after:settle", () => localTimes(document));

// Live updates keep what you opened or typed.
document.addEventListener("htmx:before:morph:node", (event) => {
  const { oldNode, newNode } = event.detail;
  if (oldNode instanceof HTMLDetailsElement && newNode instanceof HTMLDetailsElement && oldNode.id === newNode.id) {
    newNode.open = oldNode.open;
  }
});

document.addEventListener("DOMContentLoaded", () => {
  localTimes(document);
  keepRefusal();
  // On a narrow screen, the chosen view may be beyond the edge.
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
});
