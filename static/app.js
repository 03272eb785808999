// On every page, before anything is drawn: the theme, the way out, local times, the keys switch.
(() => {
  "use strict";
  const root = document.documentElement;
  root.dataset.js = "";

  // ---------------------------------------------------------------- theme, kept in this browser
  const theme = () => localStorage.getItem("assay:theme") ?? "system";
  const paint = () => { if (theme() === "system") delete root.dataset.theme; else root.dataset.theme = theme(); };
  paint();

  // ---------------------------------------------------------------- hide everything
  // Esc leaves for /hidden/ and takes the page out of the history. Should a content page come up again by another way
  // than "Show it again" (the Back button over some older page), it leads back to /hidden/ before it is drawn.
  const HIDDEN = "assay:hidden";
  const exit = () => document.querySelector("a[data-exit]");
  // A form marked data-keep is as it was when the page is shown again; only this tab keeps it, and only until then.
  const KEPT = "assay:form:" + location.pathname;
  const kept = () => document.querySelector("form[data-keep]");
  const fieldsOf = (form) => [...form.elements].filter((field) => field.name && !["hidden", "file", "submit"].includes(field.type));
  const keepForm = () => {
    const fields = kept() && fieldsOf(kept()).map((field) => [field.name, field.value, /checkbox|radio/.test(field.type) ? field.checked : null]);
    if (fields) sessionStorage.setItem(KEPT, JSON.stringify(fields));
  };
  const bringBackForm = () => {
    const before = kept() && JSON.parse(sessionStorage.getItem(KEPT));
    if (!before) return;
    sessionStorage.removeItem(KEPT);
    const named = (name) => fieldsOf(kept()).filter((field) => field.name === name);
    const seen = {};
    for (const [name, value, checked] of before) {
      if (!named(name).length) kept().querySelector("fieldset.rows [data-add]")?.click(); // a row that was added
      const field = named(name)[(seen[name] = (seen[name] ?? -1) + 1)];
      if (!field) continue;
      if (checked !== null) field.checked = checked;
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value)) field.value = value;
      if (checked) field.dispatchEvent(new Event("change", { bubbles: true }));
    }
  };
  const hide = ({ keeping = true } = {}) => {
    const out = exit().href;
    sessionStorage.setItem(HIDDEN, out);
    if (keeping) keepForm();
    document.title = "Assay";
    root.hidden = true;
    location.replace(out);
  };
  if (sessionStorage.getItem(HIDDEN)) root.hidden = true;
  const stayHidden = () => {
    const out = sessionStorage.getItem(HIDDEN);
    if (out && exit()) { location.replace(out); return; }
    if (out && !("away" in document.body.dataset)) sessionStorage.removeItem(HIDDEN);
    root.hidden = false;
  };
  window.addEventListener("pageshow", (event) => {
    if (event.persisted && exit()) { root.hidden = true; location.reload(); }
  });
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing && exit()) { event.preventDefault(); event.stopPropagation(); hide(); }
  }, { capture: true });

  // ---------------------------------------------------------------- other tabs of this browser
  // Whoever signs out, or withdraws their consent, in one tab wants no item left on screen in another; nor does whoever signs in after them.
  const PERSON = "assay:person"; // who is signed in in this browser
  const WITHDRAWN = "assay:withdrawn"; // the project's pages, and when
  const person = root.dataset.person;
  if (person && localStorage.getItem(PERSON) !== person) localStorage.setItem(PERSON, person);
  window.addEventListener("storage", (event) => {
    const left = event.key === PERSON && event.newValue !== person;
    const withdrawn = event.key === WITHDRAWN && event.newValue && location.pathname.startsWith(event.newValue.split(" ")[0]);
    if (person && exit() && (left || withdrawn)) hide({ keeping: !left });
  });
  document.addEventListener("submit", ({ target, submitter }) => {
    if ("signsOut" in target.dataset) localStorage.removeItem(PERSON);
    if (submitter?.dataset.withdraws) localStorage.setItem(WITHDRAWN, `${submitter.dataset.withdraws} ${Date.now()}`);
  });

  // ---------------------------------------------------------------- small things
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const localTimes = () => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime()) && /^\d\d:\d\d UTC$/.test(time.textContent)) time.textContent = clock.format(at);
    }
  };
  const themeButtons = () => {
    const panel = document.getElementById("theme");
    if (!panel) return;
    panel.hidden = false;
    const buttons = [...panel.querySelectorAll("[data-theme-choice]")];
    const show = () => { for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme())); };
    for (const button of buttons) button.addEventListener("click", () => { localStorage.setItem("assay:theme", button.dataset.themeChoice); paint(); show(); });
    show();
  };
  const keysSwitch = () => {
    const form = document.querySelector("form[data-single-keys]");
    if (!form) return;
    form.addEventListener("change", () => {
      document.body.toggleAttribute("data-single-keys-on", form.elements.single_keys.checked);
      fetch(form.action, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" } }).catch(() => {});
    });
  };
  // A form that may take long says so after a second, in the words of its data-wait; its button takes no second press.
  const slowForms = () => {
    for (const form of document.querySelectorAll("form[data-wait]")) {
      const status = form.querySelector("[data-waiting]");
      let waits = false;
      let timer;
      form.addEventListener("submit", (event) => {
        if (event.submitter?.formMethod === "get") return;
        if (waits) { event.preventDefault(); return; }
        waits = true;
        event.submitter?.setAttribute("aria-disabled", "true");
        timer = setTimeout(() => { status.textContent = form.dataset.wait; }, 1000);
      });
      window.addEventListener("pageshow", () => {
        waits = false;
        clearTimeout(timer);
        status.textContent = "";
        form.querySelector("[aria-disabled]")?.removeAttribute("aria-disabled");
      });
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    stayHidden();
    slowForms();
    if (!root.hidden) bringBackForm();
    localTimes();
    themeButtons();
    keysSwitch();
    exit()?.addEventListener("click", (event) => { if (!event.metaKey && !event.ctrlKey) { event.preventDefault(); hide(); } });
    for (const link of document.querySelectorAll("a[data-show]")) link.addEventListener("click", () => sessionStorage.removeItem(HIDDEN));
    if ("away" in document.body.dataset) document.querySelector("h1")?.focus();
  });

  // ---------------------------------------------------------------- single keys, for the pages that take them
  // The key that a keydown means as a single key, or null: in a text field, with a modifier, on auto-repeat, switched off.
  const inText = (node) => node instanceof HTMLElement && (node.isContentEditable || node.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"));
  const singleKey = (event) => {
    if (event.repeat || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || inText(event.target)) return null;
    if (event.key === "?") return "?";
    if (event.key === "+" || event.key === "=") return "singleKeysOn" in document.body.dataset ? "+" : null; // one key, with Shift or without
    if (event.shiftKey || !("singleKeysOn" in document.body.dataset)) return null;
    // Digits by their place: on some keyboards the row gives them only with Shift. So with letters, where the layout has others.
    if (/^Digit\d$/.test(event.code) && !/^[a-z]$/i.test(event.key)) return event.code.slice(5);
    return /^Key[A-Z]$/.test(event.code) && !/^[\x00-\x7f]*$/.test(event.key) ? event.code.slice(3).toLowerCase() : event.key.toLowerCase();
  };
  window.assay = { singleKey, inText };
})();
