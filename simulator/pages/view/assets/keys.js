"use strict";
// Keys that press a button, unless the user is typing.

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  document.querySelector(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`)?.click();
});
