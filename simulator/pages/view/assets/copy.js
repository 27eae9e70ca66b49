"use strict";
// Buttons that copy the command before them, if the browser lets pages write to the clipboard.

if (navigator.clipboard) {
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
}
