// The live part of a page is fetched again only while someone could see it change, and never from under a finger or a key.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  const live = event.target;
  if (!live.matches("[data-live]")) return;
  if (document.hidden || live.contains(document.activeElement)) event.preventDefault();
});

// What was unfolded stays unfolded, and a table scrolled sideways stays where it was.
let unfolded = [];
let scrolled = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  unfolded = [...event.target.querySelectorAll("details[open][id]")].map((details) => details.id);
  scrolled = [...event.target.querySelectorAll(".scroll")].map((box) => [box.getAttribute("aria-label"), box.scrollLeft, box.scrollTop]);
});
document.addEventListener("htmx:afterSwap", (event) => {
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  for (const [label, left, top] of scrolled) {
    const box = event.target.querySelector(`.scroll[aria-label="${label}"]`);
    if (box) [box.scrollLeft, box.scrollTop] = [left, top];
  }
});
