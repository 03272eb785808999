// Answers that the server has not acknowledged yet. Each is kept in this browser from the press until the server says
// that it has it, and sent again as often as needed: the lease's token makes the second sending harmless.
// Kept: the address, the token, the choice, tags, comment. Never an item's text.
(() => {
  "use strict";
  const PREFIX = `assay:out:${document.body.dataset.person}:`;
  const TIMEOUT_MS = 15000;
  const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [1000, 30000];
  const box = document.getElementById("outbox");
  const listeners = [];
  let trouble = null; // null, "offline" or "signed out"
  let wait = FIRST_WAIT_MS;
  let timer = null;
  let busy = false;

  const read = (key) => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } };
  const memory = new Map(); // for a browser whose storage is full: kept at least as long as the page is open
  const stored = () => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)).map(read).filter(Boolean);
  const all = () => [...stored(), ...memory.values()].sort((a, b) => a.at - b.at);
  const unsent = () => all().filter((entry) => !entry.refused);
  const drop = (entry) => { memory.delete(entry.id); localStorage.removeItem(PREFIX + entry.id); };
  const keep = (entry) => {
    drop(entry);
    try { localStorage.setItem(PREFIX + entry.id, JSON.stringify(entry)); } catch { memory.set(entry.id, entry); }
  };
  // Whether one of the listeners saw to it: then nothing more is shown here.
  const tell = (what, entry, data) => listeners.map((listener) => listener(what, entry, data)).includes(true);

  const csrf = () => document.cookie.match(/(?:^|; )assay_csrf=([^;]*)/)?.[1] ?? "";

  // -> ["sent", data] | ["refused", {message, fields}] | ["signed out"] | ["offline"] | ["failed"]
  const post = async (entry) => {
    let response;
    try {
      response = await fetch(entry.url, {
        method: "POST", body: JSON.stringify(entry.body), redirect: "manual", keepalive: true, signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": csrf() },
      });
    } catch { return ["offline"]; }
    if (response.type === "opaqueredirect" || response.status === 401) return ["signed out"];
    const data = await response.json().catch(() => null);
    if (response.ok && data) return ["sent", data];
    if (response.status === 403 && !data) return ["signed out"]; // the cookie of the form's protection went with the session
    if (data?.code === "other_person") return ["signed out"];
    if (data && response.status >= 400 && response.status < 500 && response.status !== 429) {
      return ["refused", { message: [data.message, ...Object.values(data.fields ?? {})].join(" "), fields: data.fields ?? {} }];
    }
    return ["failed"];
  };

  const pump = async () => {
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    let failed = null;
    const tried = new Set();
    for (;;) {
      const entry = unsent().find((one) => !tried.has(one.id));
      if (!entry) break;
      tried.add(entry.id);
      const [outcome, data] = await post(entry);
      if (outcome === "sent") { drop(entry); trouble = null; wait = FIRST_WAIT_MS; tell("sent", entry, data); continue; }
      if (outcome === "refused") { keep({ ...entry, refused: data.message }); if (tell("refused", entry, data)) drop(entry); continue; }
      failed = outcome === "signed out" ? outcome : "offline";
      if (outcome !== "failed") break; // no connection, no session: the others would fare no better
    }
    busy = false;
    trouble = failed;
    if (failed) { timer = setTimeout(pump, wait); wait = Math.min(wait * 2, LONGEST_WAIT_MS); tell("waiting"); }
    draw();
  };
  const now = () => { wait = FIRST_WAIT_MS; if (unsent().length) pump(); };

  // ---------------------------------------------------------------- what is shown about it
  const element = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const icon = (paths) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["class", "icon"], ["viewBox", "0 0 16 16"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    for (const d of paths) { const path = document.createElementNS("http://www.w3.org/2000/svg", "path"); path.setAttribute("d", d); svg.append(path); }
    return svg;
  };
  const CLOCK = ["M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2z", "M8 4.8V8l2.2 1.5"];
  const WARN = ["M8 2.3 14.5 13.5h-13z", "M8 6.5v3M8 11.5v.01"];
  const unsentNotice = (count) => {
    const text = element("p", {}, element("b", {}, "Not sent yet. "));
    const what = count === 1 ? "Your answer is" : `${count} answers are`;
    if (trouble === "signed out") {
      const next = encodeURIComponent(location.pathname + location.search);
      text.append(`You are signed out. ${what} kept here. `, element("a", { href: `/sign-in/?next=${next}` }, "Sign in again"), ` and ${count === 1 ? "it goes" : "they go"} out by ${count === 1 ? "itself" : "themselves"}.`);
    } else {
      text.append(`The connection dropped. ${what} kept here and ${count === 1 ? "goes" : "go"} out by ${count === 1 ? "itself" : "themselves"}.`);
    }
    return element("div", { class: "notice notice--warn" }, icon(CLOCK), text);
  };
  const refusedNotice = (entry) => {
    const text = element("p", {}, element("b", {}, "Not taken. "), entry.refused, ` Your answer was: ${entry.label}.`);
    const typed = entry.body.comment || entry.body.note;
    const close = element("button", { class: "btn btn--small push", type: "button" }, "Put away");
    close.addEventListener("click", () => { drop(entry); draw(); (box.querySelector("button") ?? box).focus(); });
    const body = element("div", { class: "stack stack--tight" }, text);
    if (typed) body.append(element("p", {}, "Your words, to copy if you need them: ", element("q", { class: "kept", dir: "auto" }, typed)));
    return element("div", { class: "notice notice--danger", role: "alert" }, icon(WARN), body, close);
  };
  const draw = () => {
    if (!box) return;
    const notices = all().filter((entry) => entry.refused).map(refusedNotice);
    const count = unsent().length;
    if (trouble && count) notices.unshift(unsentNotice(count));
    box.replaceChildren(...notices);
  };

  // The flag that takes an item away from everyone takes it off this person's screens at the press, also offline. `item` is its id.
  const takesAway = (entry) => entry?.kind === "flag" && entry.body.reason === "illegal";
  window.assay.outbox = {
    takesAway,
    takenAway: () => new Set(unsent().filter(takesAway).map((entry) => entry.item)),
    put(entry) { keep({ ...entry, at: performance.timeOrigin + performance.now() }); pump(); },
    unsent,
    listen(listener) { listeners.push(listener); },
  };
  window.addEventListener("online", now);
  window.addEventListener("storage", (event) => { // another tab of this person kept or sent something
    if (!event.key?.startsWith(PREFIX)) return;
    if (!unsent().length) trouble = null;
    draw();
    if (event.newValue === null) tell("sent elsewhere"); else if (event.oldValue === null) tell("kept elsewhere", read(event.key));
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) now(); });
  if (box) box.tabIndex = -1;
  draw();
  document.addEventListener("DOMContentLoaded", now); // not before the page's own script listens
})();
