"use strict";
// A test as two agents played it: their lanes, one below the other. A lane leads to what is said in its report.

{
  const place = document.getElementById("lanes");
  const panel = new Timeline.Panel(JSON.parse(place.querySelector("script").textContent), false);
  for (const button of panel.list.querySelectorAll("button.name")) button.tabIndex = 0;
  panel.list.addEventListener("click", (event) => {
    const lane = panel.at(event.target.closest("li"));
    if (lane) location.href = lane.data.address;
  });
  place.replaceChildren(panel.element);
}
