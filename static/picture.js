// One picture to judge: cover, zoom, greyscale; window.assay.picture for the page's own script.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const [figure, frame, image] = [$("item"), $("frame"), $("picture")];
  if (!image) return;
  let looked = false;
  let gone = image.complete && !image.naturalWidth;
  for (const plain of frame.querySelectorAll("label.cover")) plain.remove();
  frame.style.setProperty("--w", frame.dataset.width);
  frame.style.setProperty("--h", frame.dataset.height);
  frame.dataset.sized = "";
  frame.toggleAttribute("data-tiny", Math.max(frame.dataset.width, frame.dataset.height) < 64); // as in label.js

  const isCovered = () => figure.classList.contains("is-covered");
  const isZoomed = () => figure.classList.contains("is-zoomed");
  const draw = () => {
    const covered = isCovered();
    image.hidden = gone;
    image.alt = `The disputed image, ${covered ? "covered" : "uncovered"}`;
    $("gone").hidden = !gone;
    $("uncover").hidden = !covered || gone;
    $("cover-button").hidden = $("zoom-button").hidden = covered || gone;
    if (!covered && !gone && image.complete) looked = true;
  };
  const zoom = (zoomed, at = { x: 0.5, y: 0.5 }) => {
    figure.classList.toggle("is-zoomed", zoomed);
    $("zoom-button").setAttribute("aria-pressed", String(zoomed));
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "The image, enlarged: the arrow keys move about"]]) {
      if (zoomed) frame.setAttribute(name, value); else frame.removeAttribute(name);
    }
    frame.scrollTo(zoomed ? frame.scrollWidth * at.x - frame.clientWidth / 2 : 0, zoomed ? frame.scrollHeight * at.y - frame.clientHeight / 2 : 0);
  };
  const toggleCover = () => {
    const hadFocus = frame.contains(document.activeElement) || document.activeElement === $("cover-button");
    figure.classList.toggle("is-covered");
    if (isCovered()) zoom(false);
    draw();
    if (hadFocus) figure.focus({ preventScroll: true });
  };
  const toggleZoom = () => { if (!isCovered() && !gone) { zoom(!isZoomed()); (isZoomed() ? frame : figure).focus({ preventScroll: true }); } };
  const toggleGrey = () => {
    const grey = figure.classList.toggle("is-grey");
    $("grey-button").setAttribute("aria-pressed", String(grey));
    const body = new FormData();
    body.append("csrfmiddlewaretoken", document.cookie.match(/(?:^|; )assay_csrf=([^;]*)/)?.[1] ?? "");
    if (grey) body.append("greyscale", "on");
    fetch(figure.dataset.greyscale, { method: "POST", body, headers: { Accept: "application/json" } }).catch(() => {});
  };
  const again = () => { gone = false; image.src = `${image.src.split("?")[0]}?again=${Date.now()}`; figure.focus({ preventScroll: true }); draw(); };

  image.draggable = false;
  image.addEventListener("load", draw);
  image.addEventListener("error", () => { gone = true; draw(); });
  $("uncover").addEventListener("click", toggleCover);
  $("cover-button").addEventListener("click", toggleCover);
  $("zoom-button").addEventListener("click", toggleZoom);
  $("grey-button").addEventListener("click", toggleGrey);
  $("again-load").addEventListener("click", again);
  image.addEventListener("click", (event) => {
    const box = image.getBoundingClientRect();
    zoom(!isZoomed(), { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height });
  });
  window.addEventListener("online", () => { if (gone) again(); });
  draw();
  window.assay.picture = { toggleCover, toggleZoom, toggleGrey, covered: isCovered, looked: () => looked };
})();
