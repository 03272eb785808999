// Rows of choices, tags and examples: added and taken away without a page load. Without this script the same
// buttons ask the server for one more row, and an emptied row is left out.
"use strict";

for (const rows of document.querySelectorAll("fieldset.rows")) {
  const all = () => rows.querySelectorAll("[data-row]");

  rows.querySelector("[data-add]").addEventListener("click", (event) => {
    event.preventDefault();
    const last = [...all()].at(-1);
    const number = 1 + Math.max(...[...last.querySelectorAll("[name]")].map((field) => Number(field.name.split("-")[1])));
    const row = last.cloneNode(true);
    for (const element of row.querySelectorAll("[id], [name], [for]")) {
      for (const attribute of ["id", "name", "for"]) {
        if (element.hasAttribute(attribute)) element.setAttribute(attribute, element.getAttribute(attribute).replace(/-\d+-/, `-${number}-`));
      }
    }
    for (const field of row.querySelectorAll("input, textarea, select")) {
      field.removeAttribute("aria-invalid");
      if (field.type === "checkbox") field.checked = false;
      else if (field.tagName === "SELECT") field.selectedIndex = 0;
      else field.value = "";
    }
    for (const message of row.querySelectorAll(".error")) message.remove();
    last.after(row);
    row.querySelector("input").focus();
    show();
  });

  rows.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (!button) return;
    const row = button.closest("[data-row]");
    const next = row.nextElementSibling?.querySelector("input, button") ?? row.previousElementSibling?.querySelector("input");
    row.remove();
    next?.focus();
    show();
  });

  function show() {
    for (const button of rows.querySelectorAll("[data-remove]")) button.hidden = all().length < 2;
  }
  show();
}

document.getElementById("problem")?.focus();
