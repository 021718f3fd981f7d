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
