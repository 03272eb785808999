// A ruling: keys, the draft that survives reload and Esc, and a sending that never loses what was typed.
(() => {
  "use strict";
  const { outbox, singleKey, inText } = window.assay;
  const $ = (id) => document.getElementById(id);
  const court = document.querySelector(".court");
  const form = $("ruling");
  const CHOICES = "[name=choice]";
  const togglePop = (id) => $(id).togglePopover();
  // After a ruling, a screen reader begins at what came next: the votes, the next item, or that there is none.
  const MOVED_ON = "assay:moved-on";
  if (sessionStorage.getItem(MOVED_ON) !== null) {
    sessionStorage.removeItem(MOVED_ON);
    (form ? $(court.dataset.blind === "" ? "item" : "votes-h") : document.querySelector("h1"))?.focus({ preventScroll: true });
  }
  const shared = { g: () => togglePop("guideline"), "?": () => togglePop("keys"), p: () => { document.querySelector("a[data-break]").click(); } };

  if (!form) {
    document.addEventListener("keydown", (event) => { shared[singleKey(event)]?.(); });
    return;
  }
  const blind = "blind" in court.dataset;
  const choices = [...form.querySelectorAll(CHOICES)];
  const boxes = [...form.querySelectorAll("[name=tag]")];
  const reasons = [...form.querySelectorAll("[name=reason]")];
  const note = $("note");
  const picture = window.assay.picture; // where the item is one
  let opened = null; // in the blind step: the choice whose tags are open

  // ---------------------------------------------------------------- the draft, by the hold's token
  const KEY = `assay:ruling:${document.body.dataset.person}:${court.dataset.token}:${blind ? "blind" : "open"}`;
  const picked = (inputs) => inputs.filter((input) => input.checked).map((input) => input.value);
  const KEYS = ["blind", "open"].map((step) => `assay:ruling:${document.body.dataset.person}:${court.dataset.token}:${step}`);
  const keepDraft = () => localStorage.setItem(KEY, JSON.stringify({ choice: picked(choices)[0] ?? null, tags: picked(boxes), reason: picked(reasons)[0] ?? null, note: note?.value ?? "", at: Date.now() }));
  const readDraft = () => { try { return JSON.parse(localStorage.getItem(KEY)); } catch { return null; } };
  const forgetOldDrafts = () => {
    for (const key of Object.keys(localStorage).filter((one) => one.startsWith("assay:ruling:"))) {
      let at = 0;
      try { at = JSON.parse(localStorage.getItem(key)).at; } catch { /* not ours to keep */ }
      if (!(Date.now() - at < 2 * 86400000)) localStorage.removeItem(key);
    }
  };

  // ---------------------------------------------------------------- showing
  const chosen = () => opened ?? choices.find((choice) => choice.checked) ?? null;
  const show = () => {
    const choice = chosen();
    $("tags")?.toggleAttribute("data-closed", !choice || choice.dataset.tags === "none");
    if (blind) for (const button of choices) { if (button === opened) button.setAttribute("aria-pressed", "true"); else button.removeAttribute("aria-pressed"); }
    if (blind) return;
    const label = $("confirm").querySelector("span");
    label.textContent = label.textContent.split(":")[0] + (choice ? `: ${choice.dataset.label}` : "");
    $("note-label").textContent = picked(reasons)[0] === "guideline_gap" ? "What must the guideline learn?" : "Note";
  };
  const notice = (kind, strong, words, link) => {
    const box = document.createElement("div");
    box.className = `notice notice--${kind}`;
    const text = document.createElement("p");
    const b = document.createElement("b");
    b.append(strong);
    text.append(b, ` ${words} `);
    if (link) { const a = document.createElement("a"); a.href = link; a.append("Sign in again"); text.append(a); }
    box.append(text);
    $("said").replaceChildren(box);
    box.scrollIntoView({ block: "nearest" });
  };

  // ---------------------------------------------------------------- sending
  let sending = false;
  let again = null;
  const send = async (action, choice) => {
    if (sending) return;
    // To confirm what one ruled blind takes no second look; to rule, or to change it, does.
    const changes = (choice ?? chosen())?.value !== court.dataset.ruled;
    if (action !== "back" && changes && picture && !picture.looked()) {
      notice("warn", picture.covered() ? "Uncover the picture first." : "The picture is not there yet.", "A ruling says what somebody saw. If it does not come, give the dispute back.");
      return;
    }
    sending = true;
    again = null;
    const body = new FormData(form);
    body.set("do", action);
    if (choice) body.set("choice", choice.value);
    if (picture?.looked() && !picture.covered()) body.set("looked", "on");
    body.set("csrfmiddlewaretoken", document.cookie.match(/(?:^|; )assay_csrf=([^;]*)/)?.[1] ?? "");
    let response = null;
    try {
      response = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" }, redirect: "manual", signal: AbortSignal.timeout(15000) });
    } catch { /* below */ }
    sending = false;
    const data = response && response.type !== "opaqueredirect" ? await response.json().catch(() => null) : null;
    if (response?.ok && data) { localStorage.removeItem(KEY); sessionStorage.setItem(MOVED_ON, ""); location.replace(data.next); return; }
    if (data?.message) { notice("danger", "Not taken.", [data.message, ...Object.values(data.fields ?? {})].join(" ")); return; }
    if (response && (response.type === "opaqueredirect" || response.status === 401 || response.status === 403)) {
      notice("warn", "Not sent yet.", "You are signed out. Your ruling is kept here.", `/sign-in/?next=${encodeURIComponent(location.pathname)}`);
      return;
    }
    again = () => send(action, choice);
    notice("warn", "Not sent yet.", "The connection dropped. Your ruling is kept here and goes out by itself.");
    setTimeout(() => again?.(), 5000);
  };
  window.addEventListener("online", () => again?.());

  const pick = (choice) => {
    if (!blind) { choice.checked = true; keepDraft(); show(); return; }
    if (choice.dataset.tags === "none") { send("blind", choice); return; }
    opened = choice;
    show();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const by = event.submitter;
    if (by?.id === "back") send("back");
    else if (by?.matches(CHOICES)) pick(by);
    else if (by?.id === "flag-send") flag();
    else if (by?.id === "confirm") rule();
  });
  form.noValidate = true; // what is missing is written beside its field
  const rule = () => {
    $("choice-error").hidden = Boolean(chosen());
    $("reason-error").hidden = picked(reasons).length > 0;
    if (!chosen()) choices[0].focus();
    else if (!picked(reasons).length) reasons[0].focus();
    else send("rule");
  };

  // ---------------------------------------------------------------- flags: kept, then sent, as where people label
  const { task, item } = court.dataset;
  const flagNote = $("flag-note");
  const flagReasons = [...form.querySelectorAll("[name=flag_reason]")];
  const isFlagOpen = () => !("closed" in $("flag").dataset);
  const toggleFlag = () => {
    const opens = $("flag").toggleAttribute("data-closed") === false;
    $("flag-button").setAttribute("aria-expanded", String(opens));
    if (opens) $("flag").scrollIntoView({ block: "nearest" });
  };
  const flag = () => {
    const reason = picked(flagReasons)[0];
    $("flag-error").hidden = Boolean(reason);
    if (!reason) return;
    const label = flagReasons.find((one) => one.checked).closest("label").textContent.replace(/^\s*\d\s*/, "").trim();
    const body = { person: Number(document.body.dataset.person), task: Number(task), reason, note: flagNote.value.trim() };
    flagNote.value = "";
    toggleFlag();
    outbox.put({ id: `flag:${task}:${reason}`, kind: "flag", url: court.dataset.flag, item: Number(item), label: `flag, ${label.toLowerCase()}`, body });
    if (reason === "illegal") takeAway();
  };
  // Text, picture, votes, draft: off this screen now, whether the server has heard of it or not.
  let taken = false;
  const takeAway = () => {
    if (taken) return;
    taken = true;
    again = null;
    for (const key of KEYS) localStorage.removeItem(key);
    for (const part of [...court.children]) if (part.id !== "notices") part.remove();
    notice("warn", "Taken out of sight.", "Nobody is shown this item any more as soon as the flag is through.");
    const next = document.createElement("a");
    next.className = "btn";
    next.href = location.pathname;
    next.append("Go on");
    $("said").firstElementChild.append(next);
    next.focus();
  };
  outbox.listen((what, entry) => {
    if (what === "kept elsewhere" && outbox.takesAway(entry) && entry.item === Number(item)) takeAway();
    if (what === "sent" && entry.kind === "flag" && !taken && entry.body.task === Number(task)) notice("ok", "Flagged.", "A researcher is told. Go on as usual.");
  });
  $("flag-button").addEventListener("click", toggleFlag);
  $("send")?.addEventListener("click", () => send("blind", opened));
  form.addEventListener("input", () => {
    keepDraft();
    show();
    if (chosen()) $("choice-error")?.setAttribute("hidden", "");
    if (picked(reasons).length) $("reason-error")?.setAttribute("hidden", "");
  });
  const setSeed = () => {
    const closed = $("seed").toggleAttribute("data-closed");
    $("seed").open = !closed;
    $("seed-button").setAttribute("aria-expanded", String(!closed));
    $("seed-button").querySelector("span").textContent = closed ? "Show seed" : "Hide seed";
  };
  $("seed-button")?.addEventListener("click", setSeed);

  // ---------------------------------------------------------------- keys
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey && !blind && !taken && event.target !== flagNote) { event.preventDefault(); form.requestSubmit($("confirm")); return; }
    const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
    if (digit && event.shiftKey && !event.repeat && !event.ctrlKey && !event.altKey && !event.metaKey && !inText(event.target) && "singleKeysOn" in document.body.dataset) {
      const reason = reasons[Number(digit) - 1];
      if (reason) { reason.checked = true; keepDraft(); show(); event.preventDefault(); }
      return;
    }
    if (taken) return;
    if (event.key === "Enter" && event.ctrlKey && event.target === flagNote) { event.preventDefault(); flag(); return; }
    const key = singleKey(event);
    if (key === null || (document.querySelector(":popover-open") && key !== "?" && key !== "g")) return;
    const choice = choices.find((one) => one.dataset.key === key);
    const box = $("tags") && !("closed" in $("tags").dataset) && boxes.find((one) => one.dataset.key === key);
    const wrong = isFlagOpen() && flagReasons[Number(key) - 1];
    if (wrong) { wrong.checked = true; $("flag-error").hidden = true; }
    else if (isFlagOpen() && key === "enter" && picked(flagReasons).length && !event.target.closest("button, a, summary")) flag();
    else if (box) { box.checked = !box.checked; keepDraft(); show(); }
    else if (choice) pick(choice);
    else if (key === "enter" && opened && !event.target.closest("button, a, summary")) send("blind", opened);
    else if (key === "a") send("back");
    else if (key === "f") toggleFlag();
    else if (key === "c" && note) note.focus();
    else if (key === "s" && $("seed")) setSeed();
    else if (key === "u" && picture) picture.toggleCover();
    else if (key === "b" && picture) picture.toggleGrey();
    else if (key === "+" && picture) picture.toggleZoom();
    else if (shared[key]) shared[key]();
    else return;
    event.preventDefault();
  });

  forgetOldDrafts();
  const draft = readDraft();
  if (draft) {
    const restore = (inputs, values) => { if (values.length) for (const input of inputs) input.checked = values.includes(input.value); };
    restore(boxes, draft.tags);
    if (!blind) { restore(choices, draft.choice ? [draft.choice] : []); restore(reasons, draft.reason ? [draft.reason] : []); }
    if (note && !note.value) note.value = draft.note;
  }
  show();
  if (outbox.takenAway().has(Number(item))) takeAway();
})();
