"use strict";
// A run while it is played: turns, tests and figures as the server tells of them. Texts only ever become text.

{
  const MOST = 300; // turns that stay in the page; the report has all

  const main = document.getElementById("main");
  const stream = document.getElementById("stream");
  const state = document.getElementById("state");
  const filler = document.getElementById("filler");
  const signs = { full: "●", part: "◐", low: "○", none: "–", open: "…" };
  let over = false;

  const chip = (test) => document.getElementById(`test-${test}`);

  function tell(name, value, more = "") {
    document.querySelector(`[data-figure="${name}"]`).replaceChildren(value, Turns.make("small", {}, more));
  }

  function lasting(seconds) {
    if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
    if (seconds < 100) return `${seconds.toFixed(1)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  function stands(now) {
    const scored = now.scenarios === 1 ? "scenario that has a test graded" : "scenarios that have a test graded";
    if (now.scenarios) tell("score", `${now.score.toFixed(2)} of ${now.scenarios}`, scored);
    else tell("score", "–", "no test is graded yet");
    tell("tests", `${now.ended} of ${now.tests}`, `ended, ${now.open} open`);
    tell("tokens", Turns.number(now.tokens), `in ${Turns.number(now.turns)} turns${now.now ? `; virtual time ${now.now}` : ""}`);
    const cost = now.cost === null ? "unknown" : `$${now.cost.toFixed(4)}`;
    tell("cost", now.used ? cost : "–", now.used ? "at list prices" : "no use was reported");
    tell("time", lasting(now.seconds), "for the agent's replies");
    tell("left", now.closed ? "–" : now.left === null ? "?" : `about ${lasting(now.left)}`, now.closed ? "all is said" : "if it goes on like this");
    over = now.results;
    document.getElementById("report").hidden = !over;
    state.classList.toggle("over", over);
    if (over) state.textContent = now.closed ? "The run is over; the report has its results." : "The run was broken off; the report shows how far it came.";
    else state.textContent = now.closed ? "All is said; the results are being made." : "Being played, unless its process was killed.";
  }

  function graded(test) {
    const shown = chip(test.id);
    if (!shown) return;
    shown.className = test.grade;
    shown.title = test.reason;
    shown.querySelector(".sign").textContent = signs[test.grade];
    shown.querySelector(".score").textContent = test.score === null ? "" : test.score.toFixed(2);
  }

  function said(turn) {
    const item = Turns.item(turn.conversation, turn);
    if (turn.kinds.includes("filler")) item.classList.add("filler-turn");
    if (turn.waiting) item.classList.add("waiting-turn");
    const before = document.getElementById(item.id);
    if (before) before.replaceWith(item);
    else stream.append(item);
    while (stream.childElementCount > MOST) stream.firstElementChild.remove();
  }

  /** Do something to the list of turns, and stay at its end if that is where it was. */
  function keepUp(change) {
    const box = stream.parentElement;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 50;
    change();
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  const source = new EventSource(main.dataset.events);
  const on = (kind, heard) => source.addEventListener(kind, (event) => heard(JSON.parse(event.data)));
  source.addEventListener("open", () => stream.replaceChildren());
  source.addEventListener("error", () => {
    if (!over) state.textContent = source.readyState === EventSource.CLOSED ? "The server does not show this run." : "The server is away; trying again.";
  });
  on("standing", stands);
  on("test", graded);
  on("turn", (turn) => keepUp(() => said(turn)));
  on("damaged", ({ why }) => {
    source.close();
    state.textContent = `It cannot be followed: ${why}`;
  });

  filler.addEventListener("change", () => keepUp(() => stream.classList.toggle("plain", !filler.checked)));
}
