"use strict";
// The list of runs: a filter takes effect when it is chosen, and there is nothing to compare before something is ticked.

{
  const filters = document.getElementById("filters");
  filters.addEventListener("change", (event) => { if (event.target.matches("select")) filters.requestSubmit(); });

  const runs = document.getElementById("runs");
  const button = runs?.querySelector("button");
  const count = () => { button.disabled = !runs.querySelector(":checked"); };
  runs?.addEventListener("change", count);
  if (runs) count();
}
