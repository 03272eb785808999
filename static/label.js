// The labelling page. One key or tap answers: the next item, already here, is shown at once, and the response brings the one after it.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("data").remove(); // what is held is known here; the page keeps no second copy of an item
  const { outbox, singleKey, inText } = window.assay;
  const $ = (id) => document.getElementById(id);
  const form = $("task");
  const LONG_TEXT = 280; // as in views/labelling.py
  const BOUNCE_MS = 300; // the second click of a double click is not an answer to the next item
  const SLOW_MS = 1000;
  const TINY = 64; // pixels; a smaller picture is shown with its pixels sharp
  const DRAFT = `assay:draft:${data.person}:`;
  const DRAFT_DAYS = 2;
  const FEEDBACK = `assay:feedback:${data.person}:${location.pathname}`;

  const buttons = new Map([...form.querySelectorAll(".choice")].map((button) => [button.value, button]));
  const boxes = [...form.querySelectorAll("input[name=tag]")];
  const comment = $("comment");
  const note = $("flag-note");

  // What is held, first the one on screen; what was answered from here, newest first.
  let held = data.work;
  let review = data.review;
  delete data.work;
  delete data.review;
  const gone = outbox.takenAway(); // items that this person flagged as possibly illegal: never shown again, whatever the server still says
  const answers = data.answers;
  const answered = new Set(outbox.unsent().map((entry) => entry.body.token).filter(Boolean));
  held = held.filter((work) => !answered.has(work.token) && !gone.has(work.item));
  if (review && gone.has(review.item)) review = null;
  const sent = new Map(); // by the outbox's id: the task an answer was for, until the server has the answer
  let back = review ? answers.findIndex((answer) => answer.vote === review.vote) : -1;
  let opened = null; // the choice whose tags are open
  let shownAt = 0;
  let shown = "";
  let slow = null;
  let undoWhenSent = false;
  let stop = data.stop; // why there is no work, when something stands between this person and the next task
  let practised = null; // the practice task that was answered, until its feedback is read
  let feedback = null;

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

  // ---------------------------------------------------------------- pictures
  // One <img> for each task that is held: the one ahead is loaded hidden, and shown by showing it. No cache takes part in this.
  const makePictures = () => {
    const [figure, frame, gone] = [$("item"), $("frame"), $("gone")];
    const images = new Map(); // by task
    const looked = new Set(); // tasks whose picture was there uncovered
    let on = null; // the task on screen
    for (const plain of frame.querySelectorAll("label.cover")) plain.remove();
    let first = $("picture"); // came with the page, for the task on screen
    const begin = (task) => {
      const came = first && current() === task;
      const image = came ? first : document.createElement("img");
      if (came) first = null;
      image.width = task.width;
      image.height = task.height;
      image.draggable = false;
      image.addEventListener("load", () => { if (on === task) { shownAt = performance.now(); draw(); } });
      image.addEventListener("error", () => { image.dataset.gone = ""; if (on === task) draw(); });
      if (!came) { image.hidden = true; image.alt = ""; image.src = task.picture; frame.prepend(image); }
      else if (image.complete && !image.naturalWidth) image.dataset.gone = "";
      images.set(idOf(task), image);
      return image;
    };
    const imageOf = (task) => images.get(idOf(task)) ?? begin(task);
    const again = (image, task) => { delete image.dataset.gone; image.src = `${task.picture}?again=${Date.now()}`; };
    const isCovered = () => figure.classList.contains("is-covered");
    const draw = () => {
      const image = on && imageOf(on);
      for (const other of images.values()) if (other !== image) { other.hidden = true; other.alt = ""; }
      if (!image) return;
      const [isGone, covered] = ["gone" in image.dataset, isCovered()];
      image.hidden = isGone;
      image.alt = `The image to judge, ${covered ? "covered" : "uncovered"}`;
      gone.hidden = !isGone;
      $("uncover").hidden = !covered || isGone;
      $("cover-button").hidden = $("zoom-button").hidden = covered || isGone;
      if (!covered && !isGone && image.complete) looked.add(idOf(on));
    };
    const cover = (covered) => {
      figure.classList.toggle("is-covered", covered);
      if (covered) zoom(false);
      draw();
    };
    const zoom = (zoomed, at = { x: 0.5, y: 0.5 }) => {
      figure.classList.toggle("is-zoomed", zoomed);
      $("zoom-button").setAttribute("aria-pressed", String(zoomed));
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "The image, enlarged: the arrow keys move about"]]) {
        if (zoomed) frame.setAttribute(name, value); else frame.removeAttribute(name);
      }
      frame.scrollTo(zoomed ? frame.scrollWidth * at.x - frame.clientWidth / 2 : 0, zoomed ? frame.scrollHeight * at.y - frame.clientHeight / 2 : 0);
    };
    const isZoomed = () => figure.classList.contains("is-zoomed");
    const toggleCover = () => {
      if (!on) return;
      const hadFocus = frame.contains(document.activeElement) || document.activeElement === $("cover-button");
      cover(!isCovered());
      if (hadFocus) figure.focus({ preventScroll: true });
      say(isCovered() ? "Covered" : "Uncovered");
    };
    const toggleZoom = () => { if (on && !isCovered()) { zoom(!isZoomed()); (isZoomed() ? frame : figure).focus({ preventScroll: true }); } };
    const toggleGrey = () => {
      const grey = figure.classList.toggle("is-grey");
      $("grey-button").setAttribute("aria-pressed", String(grey));
      const body = new FormData();
      body.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
      if (grey) body.append("greyscale", "on");
      fetch(data.urls.greyscale, { method: "POST", body, headers: { Accept: "application/json" } }).catch(() => {});
    };
    $("uncover").addEventListener("click", toggleCover);
    $("cover-button").addEventListener("click", toggleCover);
    $("zoom-button").addEventListener("click", toggleZoom);
    $("grey-button").addEventListener("click", toggleGrey);
    $("again-load").addEventListener("click", () => { again(imageOf(on), on); figure.focus({ preventScroll: true }); draw(); });
    $("broken").addEventListener("click", () => form.querySelector("[data-abstain=broken]").click());
    frame.addEventListener("click", (event) => {
      if (event.target.tagName !== "IMG") return;
      const box = event.target.getBoundingClientRect();
      zoom(!isZoomed(), { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height });
    });
    window.addEventListener("online", () => { for (const [id, image] of images) { const task = [review, ...held].find((one) => one && idOf(one) === id); if (task && "gone" in image.dataset) { again(image, task); draw(); } } });
    window.addEventListener("pagehide", () => { for (const image of images.values()) image.remove(); images.clear(); });
    return {
      // These tasks' pictures are here or on their way; others are dropped.
      keep(tasks) {
        const wanted = new Set(tasks.map(idOf));
        if (practised) wanted.add(idOf(practised));
        for (const [id, image] of images) if (!wanted.has(id)) { image.remove(); images.delete(id); }
        for (const task of tasks) imageOf(task);
      },
      show(task) {
        on = task;
        if (!task) { draw(); return; }
        frame.style.setProperty("--w", task.width);
        frame.style.setProperty("--h", task.height);
        frame.dataset.sized = "";
        frame.toggleAttribute("data-tiny", Math.max(task.width, task.height) < TINY);
        $("size").textContent = `, ${task.width} by ${task.height}`;
        zoom(false);
        cover(task.covered);
      },
      seen: (task) => looked.has(idOf(task)),
      covered: isCovered,
      toggleCover, toggleGrey, toggleZoom,
    };
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

  const pictures = data.question.kind === "image" ? makePictures() : null;

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

  const stateNow = (task) => {
    if (feedback) return "feedback";
    if (task || practised) return "work";
    if (outbox.unsent().length) return "waiting";
    return stop ? "stop" : "nothing";
  };
  const show = ({ focus = true } = {}) => {
    const task = current();
    const state = stateNow(task);
    form.dataset.state = state;
    $("ask").disabled = state !== "work" || Boolean(practised);
    $("again").hidden = $("keep").hidden = !review;
    $("abstain-button").hidden = Boolean(review);
    showUndo();
    showAddress();
    if (practised) return; // it stays on screen until its feedback is read
    pictures?.keep(review ? [review, ...held] : held);
    if (state === "stop") showStop();
    if (!task) { shown = ""; clear(); pictures?.show(null); if (focus && state !== "waiting") $(state).querySelector("h2").focus(); return; }
    if (shown === idOf(task)) return;
    shown = idOf(task);
    const long = (task.text ?? "").length > LONG_TEXT;
    if ($("text")) $("text").textContent = task.text ?? "";
    $("item-id").textContent = task.item;
    $("practice").hidden = !task.practice;
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
    pictures?.show(task);
    window.scrollTo(0, 0);
    if (focus) $("item").focus({ preventScroll: true });
  };
  // Nothing of an item stays in the page when none is shown.
  const clear = () => {
    for (const id of ["text", "origin", "item-id", "size"]) $(id)?.replaceChildren();
    for (const name of ["token", "task", "vote"]) form.elements[name].value = "";
    comment.value = note.value = "";
    for (const box of boxes) box.checked = false;
    for (const id of ["abstain", "flag", "comment-field"]) open(id, false);
    openTags(null);
  };
  // The address says which answer is open, so that a reload, or showing it again after Esc, opens it too.
  const showAddress = () => {
    const here = location.pathname + (review ? `?answer=${review.vote}` : "");
    if (here !== location.pathname + location.search) history.replaceState(null, "", here);
    const exit = document.querySelector("a[data-exit]");
    exit.href = `${exit.pathname}?back=${encodeURIComponent(here)}`;
  };
  const barred = () => !current() && Boolean(stop?.bars); // no consent, a break, a pause: nothing is shown, not even what was answered
  const showUndo = () => {
    const next = barred() ? null : answers[back + 1];
    $("undo").hidden = !next;
    if (next) $("undo").href = `?answer=${next.vote}`;
    $("undo").querySelector("span").textContent = review ? "Further back" : "Undo";
  };

  // ---------------------------------------------------------------- why it does not go on, and when it does
  const minutesTo = (at) => Math.ceil((Date.parse(at) - Date.now()) / 60000);
  const inWords = (minutes) => minutes === 1 ? "1 minute" : minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  const clock = (at) => new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const showStop = () => {
    $("stop-title").textContent = stop.title;
    $("stop-message").textContent = stop.message;
    $("stop-until").hidden = !stop.until;
    if (stop.until) { $("stop-time").dateTime = stop.until; $("stop-time").textContent = clock(stop.until); }
    $("stop-act").textContent = stop.act.label;
    $("stop-act").href = stop.act.url;
    countDown();
  };
  // Once a minute, and never more than words: when the time has come, a button says so and waits.
  const countDown = () => {
    showBreak();
    if (!stop?.until || form.dataset.state !== "stop") return;
    const minutes = minutesTo(stop.until);
    $("stop-in").textContent = minutes > 0 ? `, in ${inWords(minutes)}` : "";
    if (minutes > 0 || $("stop-act").href === $("stop-look").href) return;
    $("stop-until").hidden = true;
    $("stop-message").textContent = "You can go on now, whenever you like.";
    $("stop-act").textContent = "Go on";
    $("stop-act").href = $("stop-look").href;
  };
  let care = data.care;
  const showCare = () => {
    const meter = $("care-meter");
    if (!meter || !care) return;
    meter.value = meter.dataset.span === "day" ? care.day : care.hour;
    meter.textContent = `${meter.value} of ${meter.max}`;
    $("care-count").textContent = meter.value;
    if (meter.value > 0) $("care").hidden = false;
    showBreak();
  };
  const showBreak = () => {
    if (!$("break-text") || !care) return;
    const minutes = care.break_at ? minutesTo(care.break_at) : null;
    const [wide, short] = minutes === null ? ["", "Break"] : minutes > 0 ? ["Break in ", `${minutes} min`] : ["", "Break due"];
    $("break-wide").textContent = wide;
    $("break-short").textContent = short;
  };
  setInterval(countDown, 60000);

  const showFeedback = (given) => {
    feedback = given;
    const tags = given.tags.map((value) => data.tags.find((tag) => tag.value === value)?.label ?? value);
    $("feedback-h").replaceChildren(...(given.correct ? [check.cloneNode(true)] : []), given.correct ? "That is right" : "Not quite");
    const answer = document.createElement("b");
    answer.append(given.label + (tags.length ? `: ${tags.join(", ")}` : ""));
    $("feedback-answer").replaceChildren("The answer is ", answer, ".");
    $("feedback-why").textContent = given.why;
    sessionStorage.setItem(FEEDBACK, JSON.stringify(given)); // a reload shows it again, until it was read
    form.toggleAttribute("data-item-gone", !practised); // answered before a reload
    show({ focus: false });
    $("feedback-h").focus();
  };
  const goOn = () => {
    feedback = practised = null;
    sessionStorage.removeItem(FEEDBACK);
    shown = "";
    show();
  };

  // ---------------------------------------------------------------- answering
  const press = (choice) => {
    if (!current() || practised) return;
    if (pictures && !review && !pictures.seen(current())) {
      say(pictures.covered() ? "Uncover the picture first, with U. Or abstain, with A." : "The picture is not there yet. Wait for it, or abstain, with A.");
      return;
    }
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
      : { id: `task:${task.token}`, kind: "vote", url: data.urls.vote, body: { ...body, question: data.question.slug, token: task.token, elapsed_ms: Math.round(performance.now() - shownAt) } };
    hand(task, { ...entry, label: choice.label });
  };
  const abstain = (reason, label) => {
    const task = current();
    hand(task, { id: `task:${task.token}`, kind: "abstain", url: data.urls.abstain, label: `abstain, ${label.toLowerCase()}`, body: { person: data.person, question: data.question.slug, token: task.token, reason } });
  };
  // The answer is kept first, then the screen moves on, then it is sent.
  const hand = (task, entry) => {
    sent.set(entry.id, task);
    outbox.put(entry);
    localStorage.removeItem(DRAFT + idOf(task));
    $("comment-error").hidden = true;
    if (task.token) { answered.add(task.token); held.shift(); }
    if (task.practice && entry.kind === "vote") { practised = task; openTags(null); buttons.get(entry.body.choice)?.setAttribute("aria-pressed", "true"); }
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
    outbox.put({ id: `flag:${task.task}:${reason}`, kind: "flag", url: data.urls.flag, item: task.item, label: `flag, ${label.toLowerCase()}`, body: { person: data.person, task: task.task, reason, note: note.value.trim() } });
    if (reason === "illegal") { takeAway(task.item); say("Taken out of sight"); return; }
    note.value = "";
    keepDraft();
    open("flag", false);
    $("item").focus({ preventScroll: true });
  };

  // Text, picture, draft and all: off this screen now, whether the server has heard of it or not.
  const takeAway = (item) => {
    gone.add(item);
    const has = (task) => task?.item === item;
    if (![review, practised, ...held, ...sent.values()].some(has)) return;
    for (const task of [review, practised, ...held, ...sent.values()].filter(has)) localStorage.removeItem(DRAFT + idOf(task));
    for (const [id, task] of sent) if (has(task)) sent.delete(id);
    if (has(review)) { answers.splice(back, 1); leaveReview(); }
    if (has(practised)) { practised = feedback = null; sessionStorage.removeItem(FEEDBACK); }
    held = held.filter((task) => !has(task));
    clear();
    shown = "";
    show();
  };

  // What the server says we hold. The one on screen stays there, unless something stops the work.
  const take = (received) => {
    const { work } = received;
    care = received.care ?? care;
    stop = received.stop ?? null;
    showCare();
    if (stop) held = held.filter((one) => work.some((other) => other.token === one.token));
    if (stop?.bars) leaveReview();
    const onScreen = held[0];
    const others = work.filter((one) => !answered.has(one.token) && !gone.has(one.item) && one.token !== onScreen?.token);
    held = onScreen ? [work.find((one) => one.token === onScreen.token) ?? onScreen, ...others] : others;
    show({ focus: !onScreen && !inText(document.activeElement) });
  };
  const refill = async () => {
    try {
      const response = await fetch(data.urls.next, { headers: { Accept: "application/json" }, redirect: "manual" });
      if (response.ok) take(await response.json()); else show({ focus: false });
    } catch { /* the connection is gone; the outbox says so when there is something to send */ }
  };

  outbox.listen((what, entry, received) => {
    if (what === "waiting") { undoWhenSent = false; say(""); show({ focus: false }); return; }
    if (what === "kept elsewhere") { if (outbox.takesAway(entry)) takeAway(entry.item); return false; }
    if (what === "sent elsewhere") { if (form.dataset.state === "waiting") refill(); return; }
    clearTimeout(slow);
    const task = sent.get(entry.id);
    sent.delete(entry.id);
    if (what === "refused" && task && received.fields.comment) { giveBack(task, entry, received.message); return true; }
    if (what === "refused") { if (practised?.token === entry.body.token) { practised = null; shown = ""; } say("Not taken"); if (entry.body.token) refill(); else show({ focus: false }); return; }
    if (entry.kind === "flag") {
      say("Flagged", "", true);
      if (outbox.takesAway(entry)) { takeAway(entry.item); refill(); }
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
    if (received.feedback) showFeedback(received.feedback);
    else if (practised?.token === entry.body.token) practised = null;
    if (received.work) take(received); else show({ focus: false });
    if (undoWhenSent && !outbox.unsent().length) { undoWhenSent = false; undo(); }
  });

  // A comment that cannot be kept: its item is on screen again, with the words in their field and what is wrong beside it.
  const giveBack = (task, entry, message) => {
    if (current()) keepDraft();
    if (practised === task) practised = null;
    const draft = { comment: entry.body.comment, note: "", choice: entry.body.choice, tags: entry.body.tags, at: Date.now() };
    localStorage.setItem(DRAFT + idOf(task), JSON.stringify(draft));
    if (task.vote) { review = task; back = answers.findIndex((answer) => answer.vote === task.vote); }
    else { answered.delete(task.token); leaveReview(); held = [task, ...held.filter((one) => one.token !== task.token)]; }
    shown = "";
    show({ focus: false });
    open("comment-field", true);
    $("comment-error").textContent = `Not taken. ${message}`;
    $("comment-error").hidden = false;
    comment.focus();
  };

  // ---------------------------------------------------------------- going back
  let undone = Promise.resolve(); // one after the other: two presses go back two answers
  const undo = () => { undone = undone.then(() => undoOnce()); };
  const undoOnce = async (skipped = "") => {
    if (practised || barred()) return;
    if (back < 0 && outbox.unsent().length) { undoWhenSent = true; say("Your last answer opens as soon as it is through."); return; }
    const answer = answers[back + 1];
    if (!answer) { say(`${skipped}There is nothing further back that can be changed.`); showUndo(); return; }
    let response;
    try {
      response = await fetch(data.urls.votes.replace("/0/", `/${answer.vote}/`), { headers: { Accept: "application/json" }, redirect: "manual" });
    } catch { say("It cannot be opened now: the connection is gone."); return; }
    if (response.type === "opaqueredirect") { location.href = `?answer=${answer.vote}`; return; }
    if (response.status === 404) { // its item was taken out, or a researcher struck the answer out
      answers.splice(back + 1, 1);
      await undoOnce("One answer cannot be opened any more. ");
      return;
    }
    if (response.status === 409) { say((await response.json().catch(() => null))?.message ?? "It cannot be opened now."); refill(); return; }
    if (!response.ok) { say("It cannot be opened now. Try again in a moment."); return; }
    if (current()) keepDraft();
    back += 1;
    review = await response.json();
    say(`${skipped}Your answer was: `, choiceOf(review.choice)?.label ?? review.choice);
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

  const toggleAbstain = () => { if (review || practised || !current()) return; open("flag", false); open("abstain", !isOpen("abstain")); };
  const toggleFlag = () => { if (practised || !current()) return; open("abstain", false); open("flag", !isOpen("flag")); };
  const toggleComment = () => {
    if (practised || !current()) return;
    open("comment-field", !isOpen("comment-field"));
    if (isOpen("comment-field")) comment.focus(); else $("item").focus({ preventScroll: true });
  };
  $("abstain-button").addEventListener("click", toggleAbstain);
  $("flag-button").addEventListener("click", toggleFlag);
  $("comment-button").addEventListener("click", toggleComment);

  const guide = $("guideline");
  const GUIDE = data.question.kind === "image" ? "assay:guide:image" : "assay:guide";
  if (localStorage.getItem(GUIDE)) guide.open = localStorage.getItem(GUIDE) === "open";
  guide.querySelector("summary").addEventListener("click", () => localStorage.setItem(GUIDE, guide.open ? "closed" : "open")); // it opens or closes after this
  $("go-on").addEventListener("click", goOn);

  // ---------------------------------------------------------------- the keys
  const onEnter = (event) => {
    if (event.target.closest("button, a, summary")) return false;
    if (feedback) goOn();
    else if (isOpen("flag") && form.elements.flag_reason.value) flag();
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
    g: () => guide.querySelector("summary").click(),
    p: () => { location.href = data.urls.home; },
    s: () => { if ($("seed") && !$("seed-button").hidden) setSeed(!isOpen("seed")); },
    ...(pictures ? { u: () => pictures.toggleCover(), b: () => pictures.toggleGrey(), "+": () => pictures.toggleZoom() } : {}),
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
  showCare();
  if (!held.length && !review && !answered.size) $(form.dataset.state).querySelector("h2").focus({ preventScroll: true });
  const unread = sessionStorage.getItem(FEEDBACK);
  if (unread && !barred()) showFeedback(JSON.parse(unread));
  if (answered.size) refill();
})();
