"use strict";
// The list of runs: filters apply when they are changed, all runs can be selected at once, and the compare button is disabled
// until a run is selected.

{
  const filters = document.getElementById("filters");
  filters.addEventListener("change", (event) => { if (event.target.matches("select")) filters.requestSubmit(); });

  const runs = document.getElementById("runs");
  const button = runs?.querySelector("button");
  const all = document.getElementById("all");
  const boxes = () => [...runs.querySelectorAll("[name=run]")];
  const update = () => {
    const checked = boxes().filter((box) => box.checked).length;
    button.disabled = !checked;
    all.hidden = !boxes().length;
    all.checked = checked > 0 && checked === boxes().length;
    all.indeterminate = checked > 0 && !all.checked;
  };
  all?.addEventListener("click", () => { for (const box of boxes()) box.checked = all.checked; });
  runs?.addEventListener("change", update);
  if (runs) update();
}
