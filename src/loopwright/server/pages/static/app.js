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
    localStorage.setItem("theme", next);
  }
});

document.addEventListener("submit", (event) => {
  const sentence = event.target.dataset.confirm;
  if (sentence && !confirm(sentence)) event.preventDefault();
});

// Fields that are sent as soon as they change.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-autosubmit]") && event.target.form.reportValidity()) event.target.form.requestSubmit();
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

document.addEventListener("DOMContentLoaded", () => localTimes(document));
