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
