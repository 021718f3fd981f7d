"use strict";

// Comments on lines of a change: kept in this tab until they are sent with the form below the change.
class Comments {
  constructor(box) {
    this.box = box;
    this.key = `comments:${box.dataset.comments}`;
    this.form = document.getElementById("review");
    this.list = document.getElementById("drafts");
    this.drafts = JSON.parse(sessionStorage.getItem(this.key) || "[]");
    this.box.addEventListener("click", (event) => {
      const button = event.target.closest(".line-no");
      if (button) this.write(button);
    });
    this.box.addEventListener("keydown", (event) => this.move(event));
    // Comments that are still being written go along; all of them stay until the daemon has taken them.
    this.form.addEventListener("submit", () => {
      for (const one of this.box.querySelectorAll(".writing .primary")) one.click();
    }, true);
    this.form.addEventListener("taken", () => sessionStorage.removeItem(this.key));
    this.draw();
  }

  // The arrow keys go from line to line; Tab leaves the lines.
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".line-no")) return;
    event.preventDefault();
    const all = [...this.box.querySelectorAll("details[open] .line-no")];
    all[all.indexOf(event.target) + step]?.focus();
  }

  write(button) {
    const row = button.closest("tr");
    const place = `${button.closest("[data-file]").dataset.file}:${button.dataset.line}`;
    if (row.nextElementSibling?.matches(".writing")) {
      row.nextElementSibling.querySelector("textarea").focus();
      return;
    }
    // While you write, live updates leave the change as it is.
    this.box.setAttribute("hx-morph-skip", "");
    const made = row.parentElement.insertRow(row.sectionRowIndex + 1);
    made.className = "writing";
    const cell = made.insertCell();
    cell.colSpan = 4;
    const text = document.createElement("textarea");
    text.rows = 3;
    text.maxLength = 4000;
    text.setAttribute("aria-label", `Comment on ${place}`);
    text.value = this.drafts.find((one) => one.at === place)?.text || "";
    const keep = this.button("Add comment", "primary", () => {
      this.drafts = this.drafts.filter((one) => one.at !== place);
      if (text.value.trim()) this.drafts.push({ at: place, text: text.value.trim() });
      this.close(made, button);
    });
    const drop = this.button("Cancel", "", () => this.close(made, button));
    text.addEventListener("keydown", (event) => {
      if (event.key === "Escape") drop.click();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep.click();
    });
    const buttons = document.createElement("div");
    buttons.className = "actions";
    buttons.append(keep, drop);
    cell.append(text, buttons);
    text.focus();
  }

  close(row, button) {
    row.remove();
    if (!this.box.querySelector(".writing")) this.box.removeAttribute("hx-morph-skip");
    button.focus();
    this.draw();
  }

  draw() {
    sessionStorage.setItem(this.key, JSON.stringify(this.drafts));
    document.getElementById("review-count").textContent = this.drafts.length
      ? `with ${this.drafts.length} ${this.drafts.length === 1 ? "comment" : "comments"}` : "";
    this.list.replaceChildren(...this.drafts.map((one) => this.draft(one)));
  }

  draft(one) {
    const made = document.createElement("div");
    made.className = "draft";
    const place = document.createElement("code");
    place.textContent = one.at;
    const text = document.createElement("span");
    text.className = "said-text grow";
    text.textContent = one.text;
    const remove = this.button("Remove", "tiny", () => {
      this.drafts = this.drafts.filter((other) => other !== one);
      this.draw();
    });
    remove.setAttribute("aria-label", `Remove the comment on ${one.at}`);
    made.append(place, text, remove, this.hidden("at", one.at), this.hidden("text", one.text));
    return made;
  }

  hidden(name, value) {
    const made = document.createElement("input");
    Object.assign(made, { type: "hidden", name, value });
    return made;
  }

  button(label, style, work) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = `button ${style}`;
    made.textContent = label;
    made.addEventListener("click", work);
    return made;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const box = document.querySelector("[data-comments]");
  if (box) new Comments(box);
});
