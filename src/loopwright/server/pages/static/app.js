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
  const earlier = event.target.closest(".earlier");
  if (earlier) showEarlier(earlier);
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

// Transcripts: pieces, not the whole. At most this many stay in the page.
const MOST_PIECES = 12;

async function fragment(url) {
  const reply = await fetch(url, { headers: { Accept: "text/html" } });
  if (!reply.ok) throw new Error(`transcript: ${reply.status}`);
  const made = document.createElement("template");
  made.innerHTML = await reply.text();
  return made.content;
}

async function showEarlier(button) {
  const box = button.closest(".transcript");
  button.disabled = true;
  const height = box.scrollHeight;
  const found = await fragment(`/runs/${box.dataset.run}/transcript?before=${button.dataset.before}`);
  button.remove();
  box.prepend(found);
  box.scrollTop += box.scrollHeight - height;
  const pieces = box.querySelectorAll(".piece");
  for (const piece of [...pieces].slice(MOST_PIECES)) piece.remove();
  if (pieces.length > MOST_PIECES) box.dataset.live = "";
}

async function follow(box) {
  if (!box.isConnected || !box.dataset.live) return;
  try {
    const found = await fragment(`/runs/${box.dataset.run}/transcript?after=${box.dataset.end}`);
    const piece = found.querySelector(".piece");
    const wasNew = piece && piece.dataset.end !== box.dataset.end;
    if (wasNew) {
      box.dataset.end = piece.dataset.end;
      box.querySelector(".nothing")?.remove();
      box.append(found);
      const pieces = box.querySelectorAll(".piece");
      for (const old of [...pieces].slice(0, Math.max(0, pieces.length - MOST_PIECES))) old.remove();
      if (document.getElementById("follow")?.checked) box.scrollTop = box.scrollHeight;
    }
  } catch (lost) {
    console.warn(lost);
  }
  setTimeout(() => follow(box), 1000);
}

function search(input) {
  const wanted = input.value.trim().toLowerCase();
  const box = document.querySelector(input.dataset.search);
  let first = null;
  for (const entry of box.querySelectorAll(".entry")) {
    const hit = wanted.length > 1 && entry.textContent.toLowerCase().includes(wanted);
    entry.classList.toggle("found", hit);
    if (hit && !first) first = entry;
  }
  if (first) first.scrollIntoView({ block: "center" });
}

document.addEventListener("input", (event) => {
  if (event.target.dataset.search) search(event.target);
});

document.addEventListener("DOMContentLoaded", () => {
  localTimes(document);
  const box = document.querySelector(".transcript");
  if (box) {
    box.scrollTop = box.scrollHeight;
    follow(box);
  }
});
