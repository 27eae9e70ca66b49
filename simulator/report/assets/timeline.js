"use strict";
// The picture of the conversations: pointing at it shows the turn there, and so do the arrow keys.

{
  const NEAR = 8; // pixels within which a mark is meant rather than the turn at that token
  const LONGEST = 300; // characters of a text in the preview

  const preview = document.getElementById("preview");
  const conversation = (id) => Conversations.all.find((each) => each.id === id);

  const short = (text) => {
    if (text === undefined) return undefined;
    const { head } = Turns.parts(text);
    return head.length > LONGEST ? `${head.slice(0, LONGEST)} …` : head;
  };

  function show(of, turn) {
    const line = Turns.about(of.id, turn);
    preview.classList.add("filled");
    preview.replaceChildren(line, Turns.exchange({ text: short(turn.text), reply: short(turn.reply) }));
  }

  /** The turn of a conversation that token `at` lies in. */
  function turnAt(turns, at) {
    let low = 0;
    let high = turns.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (turns[middle].at <= at) low = middle + 1;
      else high = middle;
    }
    return turns[Math.max(0, low - 1)];
  }

  const placeOf = (mark) => Number.parseFloat(mark.querySelector("use").getAttribute("x")) / 100;
  const numberOf = (mark) => Number(/\d+$/.exec(mark.getAttribute("href"))[0]);
  const marksOf = (lane) => [...lane.querySelectorAll("svg a")];

  for (const panel of document.querySelectorAll(".panel")) {
    const lanes = panel.querySelector(".lanes");
    const ruler = panel.querySelector(".ruler");
    const cursor = ruler.querySelector(".cursor");
    const rows = [...lanes.children].filter((lane) => marksOf(lane).length);

    const point = (place) => {
      cursor.setAttribute("x1", `${100 * place}%`);
      cursor.setAttribute("x2", `${100 * place}%`);
      cursor.setAttribute("visibility", "visible");
    };

    /** The turn that a pointer points at: that of a mark of the lane nearby, else the one at its token. */
    const meant = (event) => {
      const lane = event.target.closest?.("li");
      const of = lane && conversation(lane.dataset.conversation);
      const box = ruler.getBoundingClientRect();
      const place = (event.clientX - box.left) / box.width;
      if (!of?.turns.length || place < -0.01 || place > 1.01) return null;
      const away = (mark) => Math.abs(placeOf(mark) - place) * box.width;
      const near = marksOf(lane).reduce((best, mark) => (best && away(best) <= away(mark) ? best : mark), null);
      const turn = near && away(near) <= NEAR ? of.turns[numberOf(near)] : turnAt(of.turns, place * Number(lane.dataset.tokens));
      return turn && { of, turn, place };
    };

    lanes.addEventListener("pointermove", (event) => {
      const found = meant(event);
      if (!found) return;
      point(found.place);
      show(found.of, found.turn);
    });
    lanes.addEventListener("pointerleave", () => cursor.setAttribute("visibility", "hidden"));
    lanes.addEventListener("click", (event) => {
      if (event.target.closest("a.name") || event.detail === 0) return; // a link of its own; Enter on a mark
      const found = meant(event);
      event.preventDefault();
      if (!found) return;
      if (event.pointerType === "mouse") location.hash = Turns.address(found.of.id, found.turn.number);
      else show(found.of, found.turn);
    });

    const enter = (mark) => {
      for (const other of lanes.querySelectorAll("a[tabindex='0']")) other.setAttribute("tabindex", "-1");
      mark.setAttribute("tabindex", "0");
      return mark;
    };
    lanes.addEventListener("focusin", (event) => {
      const mark = event.target.closest("svg a");
      if (!mark) return;
      const of = conversation(mark.closest("li").dataset.conversation);
      enter(mark);
      point(placeOf(mark));
      show(of, of.turns[numberOf(mark)]);
    });
    lanes.addEventListener("keydown", (event) => {
      const mark = event.target.closest("svg a");
      if (!mark) return;
      const lane = mark.closest("li");
      const row = rows.indexOf(lane);
      const marks = marksOf(lane);
      const nearest = (to) => to && marksOf(to).reduce((best, each) =>
        (Math.abs(placeOf(each) - placeOf(mark)) < Math.abs(placeOf(best) - placeOf(mark)) ? each : best));
      const next = {
        ArrowRight: () => marks[marks.indexOf(mark) + 1],
        ArrowLeft: () => marks[marks.indexOf(mark) - 1],
        ArrowDown: () => nearest(rows[row + 1]),
        ArrowUp: () => nearest(rows[row - 1]),
        Home: () => marks[0],
        End: () => marks.at(-1),
      }[event.key]?.();
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    if (rows.length) enter(marksOf(rows[0])[0]);
  }
  preview.hidden = false;
}
