"use strict";
// Buttons that copy the command before them, if the browser lets pages write to the clipboard.

function copyButtons(within) {
  if (!navigator.clipboard) return;
  for (const button of within.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
}

copyButtons(document);
