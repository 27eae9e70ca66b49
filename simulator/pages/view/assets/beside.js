"use strict";
// A test as played by two agents: their lanes, one below the other. A lane links to its agent's report.

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
