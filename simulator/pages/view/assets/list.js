"use strict";
// The list of runs: filters apply when changed, text as it is typed, all runs or a whole group can be selected with one click, and the
// compare button shows the number of selected runs.

{
  const filters = document.getElementById("filters");
  const main = document.getElementById("main");
  const boxes = (within = main) => [...within.querySelectorAll("[name=run]")];
  const group = (box) => (box.id === "all" ? main : box.closest("tbody"));
  const PAUSE = 150; // milliseconds without a key before the list is requested
  let pending;
  const request = new XMLHttpRequest(); // it parses pages, which Trusted Types forbid DOMParser

  function update() {
    const button = document.getElementById("compare");
    if (!button) return;
    const chosen = boxes().filter((box) => box.checked).length;
    button.disabled = !chosen;
    button.textContent = chosen ? `Compare ${chosen} ${chosen === 1 ? "run" : "runs"}` : "Compare: choose runs";
    for (const box of main.querySelectorAll(".whole-group")) {
      const those = boxes(group(box));
      const checked = those.filter((one) => one.checked).length;
      box.hidden = !those.length;
      box.checked = checked > 0 && checked === those.length;
      box.indeterminate = checked > 0 && !box.checked;
    }
  }

  // Replaces all but the filters, so that the text keeps its cursor. Runs that are still listed stay selected.
  function narrow() {
    request.open("GET", `/?${new URLSearchParams([...new FormData(filters)].filter(([, value]) => value))}`); // ends an earlier request
    request.responseType = "document";
    request.send();
  }

  request.addEventListener("load", () => {
    const page = request.response;
    if (request.status !== 200 || !page) return;
    history.replaceState(null, "", request.responseURL);
    const chosen = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
    for (const id of ["folders-here", "found"]) document.getElementById(id).replaceWith(page.getElementById(id));
    for (const box of boxes()) box.checked = chosen.has(box.value);
    update();
    copyButtons(main);
  });

  filters.addEventListener("change", (event) => { if (event.target.matches("select, [type=checkbox]")) filters.requestSubmit(); });
  filters.elements.text.addEventListener("input", () => { clearTimeout(pending); pending = setTimeout(narrow, PAUSE); });
  main.addEventListener("click", ({ target }) => {
    if (target.matches(".whole-group")) for (const one of boxes(group(target))) one.checked = target.checked;
  });
  main.addEventListener("change", update);
  update();
}
