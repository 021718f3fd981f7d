"use strict";

// A transcript in pieces: only a window of a recording of any size is in the page.
const MOST_BYTES = 1200000;
const MOST_NODES = 4000;

async function fragment(url) {
  const reply = await fetch(url, { headers: { Accept: "text/html" } });
  if (!reply.ok) throw new Error(`transcript: ${reply.status}`);
  const made = document.createElement("template");
  made.innerHTML = await reply.text();
  return made.content;
}

class Pieces {
  constructor(box) {
    this.box = box;
    this.address = `/runs/${box.dataset.run}/transcript`;
    this.busy = false;
    this.showButtons();
    box.querySelector(".earlier").addEventListener("click", () => this.earlier());
    box.querySelector(".later").addEventListener("click", () => this.later());
    if (box.dataset.fromEnd) box.scrollTop = box.scrollHeight;
  }

  get all() { return [...this.box.querySelectorAll(".piece")]; }
  get begin() { return Number(this.all[0].dataset.begin); }
  get end() { return Number(this.all.at(-1).dataset.end); }
  get size() { return Math.max(...this.all.map((one) => Number(one.dataset.size))); }
  get follows() { return Boolean(document.getElementById("follow")?.checked); }

  async once(work) {
    if (this.busy) return;
    this.busy = true;
    try {
      await work();
    } catch (lost) {
      console.warn(lost);
    } finally {
      this.busy = false;
      this.showButtons();
    }
  }

  earlier() {
    return this.once(async () => {
      const found = await fragment(`${this.address}?before=${this.begin}`);
      const height = this.box.scrollHeight;
      this.all[0].before(found);
      this.box.scrollTop += this.box.scrollHeight - height;
      this.shorten(false);
    });
  }

  later() {
    return this.once(async () => {
      const found = (await fragment(`${this.address}?after=${this.end}`)).querySelector(".piece");
      if (Number(found.dataset.end) > this.end) this.append(found);
    });
  }

  append(piece) {
    if (this.all.at(-1).dataset.begin === this.all.at(-1).dataset.end) this.all.at(-1).replaceChildren();
    this.all.at(-1).after(piece);
    this.shorten(true);
  }

  // Remove pieces from one end, so that the tab does not grow.
  shorten(fromStart) {
    const heavy = () => {
      const all = this.all;
      return all.length > 1
        && (this.end - this.begin > MOST_BYTES || this.box.getElementsByTagName("*").length > MOST_NODES * 4);
    };
    while (heavy()) {
      const height = this.box.scrollHeight;
      const top = this.box.scrollTop;
      (fromStart ? this.all[0] : this.all.at(-1)).remove();
      if (fromStart) this.box.scrollTop = top - (height - this.box.scrollHeight);
    }
  }

  async follow() {
    if (!this.box.isConnected) return;
    if (this.follows && !document.hidden) {
      await this.once(async () => {
        let found = (await fragment(`${this.address}?after=${this.end}`)).querySelector(".piece");
        const behind = Number(found.dataset.size) - Number(found.dataset.end);
        if (behind > MOST_BYTES) {
          // Too far behind: show the end instead of everything in between.
          found = (await fragment(this.address)).querySelector(".piece");
          for (const old of this.all.slice(1)) old.remove();
          this.all[0].replaceWith(found);
        } else if (Number(found.dataset.end) > this.end) {
          this.append(found);
        } else {
          return;
        }
        this.box.scrollTop = this.box.scrollHeight;
      });
    }
    setTimeout(() => this.follow(), 1000);
  }

  showButtons() {
    this.box.querySelector(".earlier").hidden = this.begin === 0;
    this.box.querySelector(".later").hidden = this.end >= this.size || this.follows;
  }
}

document.addEventListener("submit", async (event) => {
  const address = event.target.dataset.search;
  if (!address) return;
  event.preventDefault();
  const box = document.getElementById("hits");
  const wanted = event.target.elements.q.value.trim();
  box.hidden = !wanted;
  if (wanted) box.replaceChildren(await fragment(`${address}?q=${encodeURIComponent(wanted)}`));
});

document.addEventListener("input", (event) => {
  if (event.target.closest("[data-search]") && !event.target.value) document.getElementById("hits").hidden = true;
});

document.addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector(".transcript");
  if (!box) return;
  const pieces = new Pieces(box);
  document.getElementById("follow")?.addEventListener("change", () => pieces.showButtons());
  if (box.dataset.live) pieces.follow();
});
