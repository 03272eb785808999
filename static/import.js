// The mapping of an import: the list of metadata columns shows only when it counts.
(() => {
  "use strict";
  const chosen = document.querySelector("[data-chosen]");
  if (!chosen) return;
  const radios = [...document.querySelectorAll('input[name="keep"]')];
  const show = () => { chosen.hidden = !radios.some((radio) => radio.checked && radio.value === "chosen"); };
  for (const radio of radios) radio.addEventListener("change", show);
  show();
})();

// The votes that come with it: only the fields that count for the chosen form and question show.
(() => {
  "use strict";
  for (const part of document.querySelectorAll("[data-votes]")) {
    const form = part.querySelector("[data-form]");
    const question = part.querySelector('select[name$="_question"]');
    const policy = part.querySelector('select[name$="_policy"]').closest(".field");
    const show = () => {
      for (const field of part.querySelectorAll("[data-long]")) field.hidden = !form || form.value !== "long";
      for (const field of part.querySelectorAll("[data-new]")) field.hidden = question.value !== "make:answers";
      policy.hidden = !question.value.startsWith("make:");
    };
    if (form) form.addEventListener("change", show);
    question.addEventListener("change", show);
    show();
  }
})();
