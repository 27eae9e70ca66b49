"use strict";
// A run while it is played: turns, tests and figures from the server's events. Untrusted text only ever becomes text nodes.

{
  const MAX_TURNS = 300; // turns kept in the page; the report has all of them

  const main = document.getElementById("main");
  const stream = document.getElementById("stream");
  const state = document.getElementById("state");
  const filler = document.getElementById("filler");
  const story = document.getElementById("story");
  const far = document.getElementById("far");
  const panel = new Timeline.Panel(JSON.parse(document.querySelector("#lanes script").textContent), false);
  let finished = false;
  let chosen = null; // the test with an open story

  function setFigure(name, value, note = "") {
    document.querySelector(`[data-figure="${name}"]`).replaceChildren(value, Turns.make("small", {}, note));
  }

  /** A duration in its largest unit, as on the terminal. */
  function duration(seconds) {
    for (const [unit, size] of [["d", 86400], ["h", 3600]]) if (seconds / size >= 0.95) return `${(seconds / size).toFixed(1)} ${unit}`;
    return Math.round(seconds) >= 60 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`;
  }

  function showStatus(now) {
    const scored = now.scenarios === 1 ? "scenario with a graded test" : "scenarios with a graded test";
    if (now.scenarios) setFigure("score", Timeline.score(now.score / now.scenarios), `${now.score.toFixed(2)} points of ${now.scenarios} ${scored}`);
    else setFigure("score", "–", "no test graded yet");
    setFigure("tests", `${now.ended} of ${now.tests}`, `ended, ${now.open} open`);
    setFigure("tokens", Turns.number(now.tokens), `in ${Turns.number(now.turns)} turns${now.now ? `; virtual time ${now.now}` : ""}`);
    const cost = now.cost === null ? "unknown" : `$${now.cost.toFixed(4)}`;
    setFigure("cost", now.used ? cost : "–", now.used ? "at list prices" : "no usage reported");
    setFigure("time", duration(now.seconds), "for the agent's replies");
    const known = now.share !== null && now.left !== null;
    const share = now.closed ? 1 : now.share ?? now.ended / now.tests;
    setFigure("left", now.closed || !known ? "–" : `about ${duration(now.left)}`, now.closed ? "conversation finished" : known ? `${Math.floor(100 * now.share)}% done` : "not known yet");
    far.value = share;
    finished = now.results;
    document.getElementById("report").hidden = !finished;
    state.classList.toggle("finished", finished);
    if (finished) state.textContent = now.closed ? "Finished: the report has the results." : "Interrupted: the report has what was played.";
    else if (now.running) state.textContent = now.closed ? "Conversation finished, grading." : "Running.";
    else state.textContent = "Stopped: no process is playing it.";
    document.getElementById("resume").hidden = now.running || (finished && now.closed);
  }

  /** Explain a test's score, as far as it was played. */
  function tell() {
    const lane = panel.data.lanes.find(({ id }) => id === chosen);
    story.hidden = !lane;
    if (!lane) return;
    const score = lane.score === undefined ? lane.status ?? lane.grade : Timeline.score(lane.score);
    story.replaceChildren(Turns.make("h3", {}, lane.id, " ", Turns.make("span", { class: `badge ${lane.grade}` }, score || lane.grade)),
      Turns.make("p", { class: "why", dir: "auto" }, lane.story?.sentence ?? "It has not begun."), Turns.make("p", { class: "soft" }, lane.reason ?? ""));
  }

  function showLane(lane) {
    panel.update(lane);
    if (lane.id === chosen) tell();
  }

  function showTurn(turn) {
    const item = Turns.item({ id: turn.conversation, first: turn.first, trunk: turn.trunk && { id: turn.trunk } }, turn);
    if (turn.kinds.includes("filler")) item.classList.add("filler-turn");
    if (turn.waiting) item.classList.add("waiting-turn");
    const before = document.getElementById(item.id);
    if (before) before.replaceWith(item);
    else stream.append(item);
    while (stream.childElementCount > MAX_TURNS) stream.firstElementChild.remove();
  }

  /** Change the list of turns, and keep it scrolled to the end if it was there. */
  function keepAtEnd(change) {
    const box = stream.parentElement;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 50;
    change();
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  const source = new EventSource(main.dataset.events);
  const on = (kind, handle) => source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  source.addEventListener("open", () => stream.replaceChildren());
  source.addEventListener("error", () => {
    if (finished) return;
    const closed = source.readyState === EventSource.CLOSED;
    state.textContent = closed ? "The server does not have this run." : "No connection to the server, trying again.";
  });
  on("status", showStatus);
  on("lane", showLane);
  on("turn", (turn) => keepAtEnd(() => showTurn(turn)));
  on("damaged", ({ why }) => {
    source.close();
    state.textContent = `This run cannot be followed: ${why}`;
  });

  document.getElementById("lanes").replaceChildren(panel.element);
  for (const button of panel.list.querySelectorAll("button.name")) button.tabIndex = 0;
  panel.list.addEventListener("click", (event) => {
    const head = panel.at(event.target.closest("li"));
    if (!head || event.target.closest(".more-lanes")) return;
    if (head.toggle) {
      head.toggle();
      for (const button of panel.list.querySelectorAll("button.name")) button.tabIndex = 0;
      return;
    }
    chosen = head.data.id;
    tell();
  });
  filler.addEventListener("change", () => keepAtEnd(() => stream.classList.toggle("plain", !filler.checked)));
}
