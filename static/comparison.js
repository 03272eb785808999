// The slider beside the threshold's number. Without script the number alone does; with it, they follow each other, and the
// form's own input event (htmx, in the page) refreshes the results.
const number = document.getElementById("threshold");
const slide = document.getElementById("slide");
slide.hidden = false;
slide.addEventListener("input", () => { number.value = slide.value; });
number.addEventListener("input", () => { slide.value = number.value; });
