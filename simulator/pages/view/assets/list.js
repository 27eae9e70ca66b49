"use strict";
// The list of runs: filters apply when changed, all runs or a whole group can be selected with one click, and the compare button
// shows the number of selected runs.

{
  const filters = document.getElementById("filters");
  filters.addEventListener("change", (event) => { if (event.target.matches("select, [type=checkbox]")) filters.requestSubmit(); });

  const runs = document.getElementById("runs");
  const button = document.getElementById("compare");
  const boxes = (within = runs) => [...within.querySelectorAll("[name=run]")];
  const wholes = runs ? [...runs.querySelectorAll(".whole-group")] : [];
  const group = (box) => (box.id === "all" ? runs : box.closest("tbody"));

  function update() {
    const chosen = boxes().filter((box) => box.checked).length;
    button.disabled = !chosen;
    button.textContent = chosen ? `Compare ${chosen} ${chosen === 1 ? "run" : "runs"}` : "Compare: choose runs";
    for (const box of wholes) {
      const those = boxes(group(box));
      const checked = those.filter((one) => one.checked).length;
      box.hidden = !those.length;
      box.checked = checked > 0 && checked === those.length;
      box.indeterminate = checked > 0 && !box.checked;
    }
  }

  for (const box of wholes) box.addEventListener("click", () => { for (const one of boxes(group(box))) one.checked = box.checked; });
  runs?.addEventListener("change", update);
  if (runs) update();
}
