"use strict";
// The list of runs: a filter takes effect when it is chosen, there is nothing to compare before something is ticked, and all
// can be ticked at once.

{
  const filters = document.getElementById("filters");
  filters.addEventListener("change", (event) => { if (event.target.matches("select")) filters.requestSubmit(); });

  const runs = document.getElementById("runs");
  const button = runs?.querySelector("button");
  const all = document.getElementById("all");
  const boxes = () => [...runs.querySelectorAll("[name=run]")];
  const count = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    button.disabled = !ticked;
    all.hidden = !boxes().length;
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && !all.checked;
  };
  all?.addEventListener("click", () => { for (const box of boxes()) box.checked = all.checked; });
  runs?.addEventListener("change", count);
  if (runs) count();
}
