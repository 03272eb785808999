// The labelling page. One key or tap answers: the next item, already here, is shown at once, and the response brings the one after it.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const { outbox, singleKey, inText } = window.assay;
  const $ = (id) => document.getElementById(id);
  const form = $("task");
  const LONG_TEXT = 280; // as in views/labelling.py
  const BOUNCE_MS = 300; // the second click of a double click is not an answer to the next item
  const SLOW_MS = 1000;
  const DRAFT = `assay:draft:${data.person}:`;
  const DRAFT_DAYS = 2;

  const buttons = new Map([...form.querySelectorAll(".choice")].map((button) => [button.value, button]));
  const boxes = [...form.querySelectorAll("input[name=tag]")];
  const comment = $("comment");
  const note = $("note");

  // What is held, first the one on screen; what was answered from here, newest first.
  let held = data.work;
  let review = data.review;
  const answers = data.answers;
  const answered = new Set(outbox.unsent().map((entry) => entry.body.token).filter(Boolean));
  held = held.filter((work) => !answered.has(work.token));
  let back = review ? answers.findIndex((answer) => answer.vote === review.vote) : -1;
  let opened = null; // the choice whose tags are open
  let shownAt = 0;
  let shown = "";
  let slow = null;
  let undoWhenSent = false;

  const current = () => review ?? held[0] ?? null;
  const idOf = (task) => task.vote ? `vote:${task.vote}` : task.token;
  const choiceOf = (value) => data.choices.find((choice) => choice.value === value);

  // ---------------------------------------------------------------- drafts: what is typed or half chosen, until it is sent
  const draftKey = () => DRAFT + idOf(current());
  const readDraft = () => { try { return JSON.parse(localStorage.getItem(draftKey())); } catch { return null; } };
  const keepDraft = () => {
    if (!current()) return;
    const draft = { comment: comment.value, note: note.value, choice: opened, tags: chosenTags(), at: Date.now() };
    if (draft.comment || draft.note || draft.choice || review) {
      try { localStorage.setItem(draftKey(), JSON.stringify(draft)); } catch { /* the storage is full; the field still has it */ }
    } else localStorage.removeItem(draftKey());
  };
  const forgetOldDrafts = () => {
    for (const key of Object.keys(localStorage).filter((one) => one.startsWith(DRAFT))) {
      let at = 0;
      try { at = JSON.parse(localStorage.getItem(key)).at; } catch { /* not ours to keep */ }
      if (!(Date.now() - at < DRAFT_DAYS * 86400000)) localStorage.removeItem(key);
    }
  };

  // ---------------------------------------------------------------- showing
  const open = (id, isOpen) => {
    const panel = $(id);
    if (!panel) return;
    panel.toggleAttribute("data-closed", !isOpen);
    const button = { abstain: "abstain-button", flag: "flag-button", "comment-field": "comment-button" }[id];
    if (button) $(button).setAttribute("aria-expanded", String(isOpen));
    if (isOpen) panel.scrollIntoView({ block: "nearest" });
  };
  const isOpen = (id) => Boolean($(id)) && !("closed" in $(id).dataset);
  const chosenTags = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const say = (words, strong = "", icon = false) => {
    const line = document.createElement("span");
    line.append(words);
    if (strong) { const b = document.createElement("b"); b.append(strong); line.append(b); }
    $("status").replaceChildren(...(icon ? [check.cloneNode(true)] : []), line);
  };
  const check = form.querySelector(".choice .check").cloneNode(true);
  check.setAttribute("class", "icon");

  const openTags = (choice) => {
    opened = choice?.value ?? null;
    for (const [value, button] of buttons) {
      if (value === (opened ?? review?.choice)) button.setAttribute("aria-pressed", "true"); else button.removeAttribute("aria-pressed");
      if (choiceOf(value).tags !== "none") button.setAttribute("aria-expanded", String(value === opened));
    }
    open("tags", Boolean(opened));
    if (!$("tags")) return;
    $("tags-error").hidden = true;
    if (choice) {
      $("send-what").textContent = `: ${choice.label}`;
      $("tags-hint").textContent = choice.tags === "required" ? "one or more" : "if any";
    }
  };

  const setSeed = (visible) => {
    if (!$("seed")) return;
    $("seed").open = visible;
    open("seed", visible);
    $("seed-button").setAttribute("aria-expanded", String(visible));
    $("seed-button").querySelector("span").textContent = visible ? "Hide seed" : "Show seed";
  };

  const show = ({ focus = true } = {}) => {
    const task = current();
    const waits = !task && outbox.unsent().length > 0;
    form.dataset.state = task ? "work" : waits ? "waiting" : "nothing";
    $("ask").disabled = !task;
    $("again").hidden = $("keep").hidden = !review;
    $("abstain-button").hidden = Boolean(review);
    showUndo();
    showAddress();
    if (!task) { shown = ""; if (focus && !waits) $("nothing").querySelector("h2").focus(); return; }
    if (shown === idOf(task)) return;
    shown = idOf(task);
    const long = (task.text ?? "").length > LONG_TEXT;
    $("text").textContent = task.text ?? "";
    $("item-id").textContent = task.item;
    for (const text of form.querySelectorAll(".item__text")) text.classList.toggle("item__text--long", long);
    if ($("seed")) { $("origin").textContent = task.origin ?? ""; $("seed").hidden = $("seed-button").hidden = !task.origin; setSeed(false); }
    form.elements.token.value = task.token ?? "";
    form.elements.task.value = task.task;
    form.elements.vote.value = task.vote ?? "";
    $("version-note").hidden = !task.version || task.version === data.question.version;

    const draft = readDraft() ?? { comment: task.comment ?? "", note: "", choice: null, tags: task.tags ?? [] };
    comment.value = draft.comment;
    note.value = draft.note;
    for (const box of boxes) box.checked = draft.tags.includes(box.value);
    for (const radio of form.elements.flag_reason) radio.checked = false;
    open("abstain", false);
    open("flag", Boolean(draft.note));
    open("comment-field", Boolean(draft.comment));
    const mine = choiceOf(draft.choice ?? task.choice);
    openTags(mine && mine.tags !== "none" ? mine : null);
    shownAt = performance.now();
    window.scrollTo(0, 0);
    if (focus) $("item").focus({ preventScroll: true });
  };
  // The address says which answer is open, so that a reload, or showing it again after Esc, opens it too.
  const showAddress = () => {
    const here = location.pathname + (review ? `?answer=${review.vote}` : "");
    if (here !== location.pathname + location.search) history.replaceState(null, "", here);
    const exit = document.querySelector("a[data-exit]");
    exit.href = `${exit.pathname}?back=${encodeURIComponent(here)}`;
  };
  const showUndo = () => {
    const next = answers[back + 1];
    $("undo").hidden = !next;
    if (next) $("undo").href = `?answer=${next.vote}`;
    $("undo").querySelector("span").textContent = review ? "Further back" : "Undo";
  };

  // ---------------------------------------------------------------- answering
  const press = (choice) => {
    if (!current()) return;
    if (choice.tags === "none") send(choice);
    else { openTags(choice); keepDraft(); $("tags").querySelector("input").focus({ preventScroll: true }); }
  };
  const sendOpened = () => send(choiceOf(opened));
  const send = (choice) => {
    const task = current();
    if (choice.tags === "required" && !chosenTags().length) { $("tags-error").hidden = false; return; }
    if (review && isAsBefore(choice)) {
      localStorage.removeItem(DRAFT + idOf(review));
      leaveReview();
      say("Kept as it was: ", choice.label);
      show();
      return;
    }
    const body = { person: data.person, choice: choice.value, tags: choice.tags === "none" ? [] : chosenTags(), comment: comment.value.trim() };
    const entry = task.vote
      ? { id: `vote:${task.vote}`, kind: "revise", url: data.urls.votes.replace("/0/", `/${task.vote}/`), body }
      : { id: `task:${task.token}`, kind: "vote", url: data.urls.vote, body: { ...body, token: task.token, elapsed_ms: Math.round(performance.now() - shownAt) } };
    hand(task, { ...entry, label: choice.label });
  };
  const abstain = (reason, label) => {
    const task = current();
    hand(task, { id: `task:${task.token}`, kind: "abstain", url: data.urls.abstain, label: `abstain, ${label.toLowerCase()}`, body: { person: data.person, token: task.token, reason } });
  };
  // The answer is kept first, then the screen moves on, then it is sent.
  const hand = (task, entry) => {
    outbox.put(entry);
    localStorage.removeItem(DRAFT + idOf(task));
    if (task.token) { answered.add(task.token); held.shift(); }
    leaveReview();
    say("");
    clearTimeout(slow);
    slow = setTimeout(() => { if (outbox.unsent().length) say("Sending"); }, SLOW_MS);
    show();
  };
  const isAsBefore = (choice) => choice.value === review.choice && comment.value.trim() === review.comment.trim()
    && (choice.tags === "none" || chosenTags().sort().join() === [...review.tags].sort().join());
  const leaveReview = () => { review = null; back = -1; };

  const flag = () => {
    const reason = form.elements.flag_reason.value;
    $("flag-error").hidden = Boolean(reason);
    if (!reason) return;
    const task = current();
    const label = form.querySelector("input[name=flag_reason]:checked").closest("label").textContent.replace(/^\s*\d\s*/, "").trim();
    outbox.put({ id: `flag:${task.task}:${reason}`, kind: "flag", url: data.urls.flag, label: `flag, ${label.toLowerCase()}`, body: { person: data.person, task: task.task, reason, note: note.value.trim() } });
    note.value = "";
    keepDraft();
    open("flag", false);
    $("item").focus({ preventScroll: true });
  };

  // What the server says we hold. The one on screen stays there.
  const take = (work) => {
    const onScreen = held[0];
    const others = work.filter((one) => !answered.has(one.token) && one.token !== onScreen?.token);
    held = onScreen ? [work.find((one) => one.token === onScreen.token) ?? onScreen, ...others] : others;
    show({ focus: !onScreen && !inText(document.activeElement) });
  };
  const refill = async () => {
    try {
      const response = await fetch(data.urls.next, { headers: { Accept: "application/json" }, redirect: "manual" });
      if (response.ok) take((await response.json()).work); else show({ focus: false });
    } catch { /* the connection is gone; the outbox says so when there is something to send */ }
  };

  outbox.listen((what, entry, received) => {
    if (what === "waiting") { undoWhenSent = false; say(""); show({ focus: false }); return; }
    if (what === "sent elsewhere") { if (form.dataset.state === "waiting") refill(); return; }
    clearTimeout(slow);
    if (what === "refused") { say("Not taken"); if (entry.body.token) refill(); else show({ focus: false }); return; }
    if (entry.kind === "flag") {
      say("Flagged", "", true);
      if (entry.body.reason === "illegal") { held = held.filter((one) => one.task !== entry.body.task); leaveReview(); shown = ""; refill(); }
      return;
    }
    if (entry.kind === "abstain") say("Abstained", "", true);
    if (entry.kind === "revise") { say("Changed: ", entry.label, true); const mine = answers.find((answer) => answer.vote === received.vote); if (mine) mine.label = entry.label; }
    if (entry.kind === "vote") {
      answers.unshift({ vote: received.vote, label: entry.label });
      if (back >= 0) back += 1;
      if ($("today")) $("today").textContent = Number($("today").textContent) + 1;
      if (received.choice === entry.body.choice) say("Saved: ", entry.label, true);
      else say("You had already answered this one elsewhere: ", choiceOf(received.choice)?.label ?? received.choice, true);
    }
    if (received.work) take(received.work); else show({ focus: false });
    if (undoWhenSent && !outbox.unsent().length) { undoWhenSent = false; undo(); }
  });

  // ---------------------------------------------------------------- going back
  const undo = async () => {
    if (back < 0 && outbox.unsent().length) { undoWhenSent = true; say("Your last answer opens as soon as it is through."); return; }
    const answer = answers[back + 1];
    if (!answer) { say("There is nothing further back that can be changed."); return; }
    let response;
    try {
      response = await fetch(data.urls.votes.replace("/0/", `/${answer.vote}/`), { headers: { Accept: "application/json" }, redirect: "manual" });
    } catch { say("It cannot be opened now: the connection is gone."); return; }
    if (response.type === "opaqueredirect") { location.href = `?answer=${answer.vote}`; return; }
    if (!response.ok) { say("It cannot be opened now. Try again in a moment."); return; }
    if (current()) keepDraft();
    back += 1;
    review = await response.json();
    say("Your answer was: ", choiceOf(review.choice)?.label ?? review.choice);
    show();
  };
  const keep = () => send(choiceOf(review.choice));

  // ---------------------------------------------------------------- the controls
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const [value, button] of buttons) {
    button.addEventListener("click", (event) => {
      if (event.detail > 1 && performance.now() - shownAt < BOUNCE_MS) return;
      press(choiceOf(value));
    });
  }
  for (const button of form.querySelectorAll("[data-abstain]")) button.addEventListener("click", () => abstain(button.dataset.abstain, button.dataset.label));
  $("send")?.addEventListener("click", sendOpened);
  $("flag-send").addEventListener("click", flag);
  $("undo").addEventListener("click", (event) => { event.preventDefault(); undo(); });
  $("keep").addEventListener("click", (event) => { event.preventDefault(); keep(); });
  $("seed-button")?.addEventListener("click", () => setSeed(!isOpen("seed")));
  form.addEventListener("input", keepDraft);

  const toggleAbstain = () => { if (review || !current()) return; open("flag", false); open("abstain", !isOpen("abstain")); };
  const toggleFlag = () => { if (!current()) return; open("abstain", false); open("flag", !isOpen("flag")); };
  const toggleComment = () => {
    if (!current()) return;
    open("comment-field", !isOpen("comment-field"));
    if (isOpen("comment-field")) comment.focus(); else $("item").focus({ preventScroll: true });
  };
  $("abstain-button").addEventListener("click", toggleAbstain);
  $("flag-button").addEventListener("click", toggleFlag);
  $("comment-button").addEventListener("click", toggleComment);

  const guide = $("guideline");
  if (localStorage.getItem("assay:guide") === "closed") guide.open = false;
  guide.addEventListener("toggle", () => localStorage.setItem("assay:guide", guide.open ? "open" : "closed"));

  // ---------------------------------------------------------------- the keys
  const onEnter = (event) => {
    if (event.target.closest("button, a, summary")) return false;
    if (isOpen("flag") && form.elements.flag_reason.value) flag();
    else if (opened) sendOpened();
    else if (review) keep();
    else return false;
    return true;
  };
  const panelKey = (key) => {
    const number = Number(key);
    if (!(number >= 1)) return false;
    if (isOpen("abstain")) { form.querySelectorAll("[data-abstain]")[number - 1]?.click(); return true; }
    if (isOpen("flag")) { const radio = form.elements.flag_reason[number - 1]; if (radio) { radio.checked = true; $("flag-error").hidden = true; } return true; }
    return false;
  };
  const tagKey = (key) => {
    const tag = opened && data.tags.find((one) => one.key === key);
    if (!tag) return false;
    const box = boxes.find((one) => one.value === tag.value);
    box.checked = !box.checked;
    $("tags-error").hidden = true;
    keepDraft();
    return true;
  };
  const choiceKey = (key) => {
    const choice = current() && data.choices.find((one) => one.key === key);
    if (choice) press(choice);
    return Boolean(choice);
  };
  const named = {
    z: undo, a: toggleAbstain, f: toggleFlag, c: toggleComment,
    g: () => { guide.open = !guide.open; },
    p: () => { location.href = data.urls.home; },
    s: () => { if ($("seed") && !$("seed-button").hidden) setSeed(!isOpen("seed")); },
    "?": () => $("keys").togglePopover(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey && inText(event.target)) {
      event.preventDefault();
      if (event.target === note) flag();
      else if (opened) sendOpened();
      else if (review) keep();
      else $("item").focus({ preventScroll: true }); // written: now the answer's key
      return;
    }
    const key = singleKey(event);
    if (key === null) return;
    if (document.querySelector(":popover-open")) { if (key === "?") named["?"](); return; }
    const done = key === "enter" ? onEnter(event) : panelKey(key) || tagKey(key) || choiceKey(key) || (named[key]?.(), Boolean(named[key]));
    if (done) event.preventDefault();
  });

  forgetOldDrafts();
  show({ focus: false });
  if (!held.length && !review && !answered.size) $("nothing").querySelector("h2").focus({ preventScroll: true });
  if (answered.size) refill();
})();
