"use strict";
// The timeline of a report: its panels, the story of a test, and the slider that plays a conversation, with the open tests and the
// agent's memory according to its traces.

{
  const LATEST = 10; // the number of earlier memories that are listed
  const DRAG = 4; // pixels that the pointer must move to start dragging

  const byId = (id) => document.getElementById(id);
  const [slider, button, story, moment, beside] = ["play-at", "play", "story", "moment", "beside"].map(byId);
  const wide = matchMedia("(min-width: 70rem)");
  const memories = new Map(); // by conversation: its stored memories, in order
  let panels = [];
  let chosen = null; // the open lane
  let conversation = null;
  let shown = []; // the turns covered by the slider
  let current = null; // the current turn
  let timer = 0;

  /** Remember an element's position in the window. Returns a function that scrolls it back there. */
  function holdPlace(element) {
    const { top } = element.getBoundingClientRect();
    return () => scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" });
  }

  // ---- stories

  /** Put the story next to the lanes, or below its own lane if there is no room. */
  function place() {
    if (wide.matches || !chosen) beside.append(story);
    else chosen.element.append(story);
  }

  /** Open a lane's story. The lane keeps its position in the window, even if a story above it closes. */
  async function choose(lane, reason = "") {
    const putBack = lane && holdPlace(lane.element);
    chosen?.button.setAttribute("aria-expanded", "false");
    chosen?.element.classList.remove("chosen");
    chosen = lane;
    story.hidden = !lane;
    place();
    if (!lane) return;
    lane.element.classList.add("chosen");
    lane.button.setAttribute("aria-expanded", "true");
    const { data } = lane;
    const test = `test-${Turns.anchor(data.test ?? data.id)}`;
    const head = Turns.make("h3", {}, data.name ?? data.id, " ", Turns.make("span", { class: `badge ${data.grade}` }, data.score === undefined ? data.status : Timeline.score(data.score)));
    const why = Turns.make("p", { class: "why", dir: "auto" }, data.story.sentence);
    const actions = Turns.make("p", { class: "actions" }, Turns.make("a", { href: `#${test}` }, "All of this test"), Story.actions(data, Conversations.all.length > 1 || Conversations.get(data.conversation)?.trunk));
    story.replaceChildren(...(reason ? [Turns.make("p", { class: "soft" }, reason)] : []), head, why, actions);
    putBack();
    const played = Conversations.get(data.conversation);
    await played?.open();
    if (chosen === lane && played && data.story.question !== undefined) why.after(Story.parts(played, data.story));
  }

  // ---- playing

  /** A conversation's traces: whether there are any, the memories with the turns that stored them, and the memories by id. */
  function memoriesOf({ id, whole }) {
    if (!memories.has(id)) {
      const stored = [];
      const known = new Map();
      let left = 0;
      for (const { number, memory } of whole) {
        for (const one of [...(memory?.written ?? []), ...(memory?.read ?? [])]) if (one.id && !known.has(one.id)) known.set(one.id, one);
        for (const one of memory?.written ?? []) stored.push({ one, number, left });
        left += memory?.unwritten ?? 0;
      }
      memories.set(id, { stored, known, left, tells: whole.some(({ memory }) => memory !== undefined) });
    }
    return memories.get(id);
  }

  /** A memory as a list item: the turns it comes from, and its text, or the start of its turn. */
  function item(memory) {
    const known = memory.id ? memoriesOf(conversation).known.get(memory.id) : undefined;
    const sources = memory.turns ?? known?.turns ?? [];
    const text = memory.text ?? known?.text;
    const source = conversation.turn(sources[0]);
    const said = text !== undefined ? Turns.parts(text).head : source ? Turns.excerpt(source, null) : "";
    const test = source?.test === undefined ? null : Turns.testLink(source.test);
    const links = sources.flatMap((number) => [Turns.link(conversation, number), " "]);
    return Turns.make("li", {}, links, test, test ? " " : null, Turns.make("bdi", {}, said || memory.id || "(no text)"));
  }

  const list = (items) => Turns.make("ul", { class: "plain" }, items.map(item));
  const note = (...text) => Turns.make("p", { class: "soft" }, ...text);

  function showTests(turn) {
    const open = [...(conversation.trunk?.tests ?? []), ...conversation.tests].filter(({ first, last }) => first <= turn.number && turn.number <= last);
    byId("play-tests").replaceChildren(...open.map(({ id, grade }) => Turns.make("li", { class: grade },
      Turns.sign(grade), Turns.testLink(id))));
    if (!open.length) byId("play-tests").append(Turns.make("li", {}, "none"));
    return open.length;
  }

  function showMemory(turn) {
    const { stored, left, tells } = memoriesOf(conversation);
    if (!tells) {
      byId("play-read").replaceChildren(note("The agent's traces report nothing about its memory."));
      byId("play-stored").replaceChildren(note("Unknown."));
      return;
    }
    const { read, unread, since } = turn.memory ?? {};
    const again = [];
    if (since !== undefined) again.push(note("All turns from ", Turns.link(conversation, since), " on were in the prompt."));
    if (read?.length) again.push(list(read));
    if (unread) again.push(note(`and ${Turns.number(unread)} more`));
    byId("play-read").replaceChildren(...(again.length ? again : [note(turn.memory?.read ? "Nothing." : "Unreported for this turn.")]));

    if (!stored.length && !left) {
      byId("play-stored").replaceChildren(note("The agent's traces do not report what it stored."));
      return;
    }
    const before = stored.filter(({ number }) => number < turn.number);
    const now = stored.filter(({ number }) => number === turn.number).map(({ one }) => one);
    const unwritten = (stored.find(({ number }) => number > turn.number)?.left ?? left);
    const count = before.length + now.length + unwritten;
    const parts = [note(`${Turns.number(count)} ${count === 1 ? "memory" : "memories"}, ${now.length ? Turns.number(now.length + (turn.memory.unwritten ?? 0)) : "none"} from this turn${now.length ? ":" : "."}`)];
    if (now.length) parts.push(list(now));
    if (before.length) parts.push(note(before.length > LATEST ? `The latest ${LATEST} before it:` : "Before it:"), list(before.slice(-LATEST).reverse().map(({ one }) => one)));
    byId("play-stored").replaceChildren(...parts);
  }

  /** Point at the current turn in the panel of its conversation. */
  function point() {
    for (const panel of panels) panel.point(panel.data.conversation === (conversation.trunk ?? conversation).id && current ? current.at : null);
  }

  function show(turn) {
    current = turn;
    if (moment.hidden) {
      const putBack = holdPlace(slider); // a turn that appears for the first time may push down the clicked element
      moment.hidden = false;
      putBack();
    }
    point();
    if (!turn) {
      byId("play-where").textContent = "No turns match.";
      for (const id of ["play-turn", "play-tests", "play-read", "play-stored"]) byId(id).replaceChildren();
      return;
    }
    slider.valueAsNumber = turn.at;
    beside.scrollTop = 0; // the turn is at its top
    byId("play-turn").replaceChildren(Turns.about(conversation, turn), Turns.exchange(turn, null, conversation.where));
    const open = showTests(turn);
    showMemory(turn);
    const where = `Turn ${Turns.number(turn.number)} of ${Turns.number(conversation.end - 1)}, at ${Turns.number(turn.at)} tokens, ${turn.sent}; ${open} ${open === 1 ? "test" : "tests"} open`;
    slider.setAttribute("aria-valuetext", where);
    byId("play-where").textContent = where;
  }

  /** Offer the branches of a conversation. */
  function offer({ section }) {
    const branches = byId("play-branch");
    if (!branches || branches.dataset.of === section.conversation.id) return;
    branches.dataset.of = section.conversation.id;
    branches.parentElement.hidden = !section.branches.length;
    branches.replaceChildren(...["", ...section.branches.map(({ id }) => id)].map((id) => Turns.make("option", { value: id }, id || "none")));
  }

  /** Choose the conversation and the turns to play: a branch's turns after its trunk's. */
  async function prepare() {
    const root = Conversations.get(byId("play-conversation")?.value) ?? Conversations.all[0];
    offer(root);
    const played = Conversations.get(byId("play-branch")?.value) ?? root;
    await played.open();
    const kind = byId("play-kind").value;
    conversation = played;
    shown = conversation.whole.filter(({ kinds }) => !kind || (kind === "tests" ? !kinds.includes("filler") : kinds.includes(kind)));
    const tokens = panels.find(({ data }) => data.conversation === root.id)?.data.tokens;
    slider.max = Math.max(1, tokens ?? 0, shown.at(-1)?.at ?? 0);
  }

  /** Apply the selection, and show the last turn up to the current one; in another conversation, its first own turn. */
  async function select() {
    const [before, at] = [conversation, current?.number ?? 0];
    await prepare();
    const last = before === conversation ? at : conversation.first;
    show(shown.findLast(({ number }) => number <= last) ?? shown[0]);
  }

  /** Show the turn that contains a token: the last played turn that begins before it. */
  const seek = (at) => show(shown.findLast((turn) => turn.at <= at) ?? shown[0]);

  function pause() {
    clearTimeout(timer);
    timer = 0;
    button.textContent = "Play";
    byId("play-where").setAttribute("aria-live", "polite");
  }

  async function move(by) {
    if (!conversation) await prepare();
    const at = current ? shown.findLastIndex(({ number }) => number <= current.number) : -Math.min(by, 0);
    show(shown[Math.min(Math.max(0, at + by), shown.length - 1)]);
  }

  function step() {
    if (current === shown.at(-1)) {
      pause();
      return;
    }
    move(1);
    timer = setTimeout(step, 1000 / Number(byId("play-speed").value));
  }

  async function play() {
    if (!conversation) await prepare();
    if (!current || current === shown.at(-1)) show(shown[0]);
    button.textContent = "Pause";
    byId("play-where").setAttribute("aria-live", "off"); // a screen reader would read without end
    clearTimeout(timer); // from another click while the conversation was opening
    timer = setTimeout(step, 1000 / Number(byId("play-speed").value));
  }

  /** Play a lane's conversation, unless it is the current one. */
  async function playedIn(lane) {
    const played = Conversations.get(lane.conversation);
    const root = played?.trunk ?? played;
    if (byId("play-conversation") && root) byId("play-conversation").value = root.id;
    if (root) offer(root);
    if (byId("play-branch")) byId("play-branch").value = played?.trunk ? played.id : "";
    if (conversation !== played) await prepare();
  }

  /** Go to the lane's turn before or after the current one. */
  async function along(lane, by) {
    await playedIn(lane);
    const numbers = (lane.marks ?? []).map(([number]) => number).sort((one, other) => one - other);
    const here = current?.number ?? -1;
    const next = by > 0 ? numbers.find((number) => number > here) ?? numbers.at(-1) : numbers.findLast((number) => number < here) ?? numbers[0];
    if (next !== undefined) show(conversation.turn(next));
  }

  /** Open a lane, and show one of its turns. */
  async function goTo(lane, number) {
    pause();
    if (lane !== chosen) choose(lane);
    await playedIn(lane.data);
    show(conversation.turn(number));
  }

  // ---- the pointer and the keyboard

  function listen(panel) {
    const { list: rows, ruler } = panel;
    let pressed = null; // where the pointer went down
    let dragged = false;
    const headOf = (element) => panel.at(element?.closest("li"));
    const buttons = () => [...rows.querySelectorAll("li:not([hidden]) > button.name")];
    const rove = (to) => {
      for (const other of document.querySelectorAll(".lanes button.name[tabindex='0']")) other.tabIndex = -1;
      to.tabIndex = 0;
    };
    const share = (event) => {
      const box = ruler.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    };
    rows.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && !event.target.closest("button, .story")) pressed = event;
      dragged = false;
    });
    rows.addEventListener("pointermove", async (event) => {
      if (!pressed || (!dragged && Math.abs(event.clientX - pressed.clientX) < DRAG)) return;
      if (!dragged) {
        dragged = true;
        rows.setPointerCapture(event.pointerId);
        pause();
      }
      const lane = headOf(pressed.target)?.data;
      const at = share(event);
      if (lane) await playedIn(lane);
      else if (!conversation) await prepare();
      seek(at * (lane?.tokens ?? panel.data.tokens));
    });
    for (const end of ["pointerup", "pointercancel"]) rows.addEventListener(end, () => { pressed = null; });
    rows.addEventListener("click", (event) => {
      const head = headOf(event.target);
      if (dragged || !head || event.target.closest(".story, .more-lanes")) return;
      rove(head.button);
      const { turn } = event.target.closest("use")?.dataset ?? {};
      if (head.toggle) head.toggle();
      else if (turn) goTo(head, Number(turn));
      else choose(head === chosen && !wide.matches ? null : head);
      if (!head.toggle) history.replaceState(null, "", chosen ? `#${chosen.element.id}` : "#conversation"); // so that the address restores this view
    });
    rows.addEventListener("keydown", (event) => {
      const head = event.target.matches("button.name") ? headOf(event.target) : null;
      if (!head) return;
      const all = buttons();
      const at = all.indexOf(event.target);
      const to = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) }[event.key];
      if (to) {
        rove(to);
        to.focus();
      } else if (!head.toggle && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
        pause();
        along(head.data, event.key === "ArrowRight" ? 1 : -1);
      } else return;
      event.preventDefault();
    });
    return buttons()[0];
  }

  /** Follow an address such as #lane-colours-1. */
  function follow(hash) {
    const lane = hash.startsWith("#lane-") ? panels.map((panel) => panel.find(hash.slice(1))).find(Boolean) : null;
    if (!lane) return;
    choose(lane);
    Views.keepInView(lane.element, { block: "nearest" });
  }

  async function start() {
    const data = await Conversations.read(document.querySelector("#lanes script"));
    panels = data.map((each) => new Timeline.Panel(each, data.length > 1));
    document.querySelector("#timeline .panels").replaceChildren(...panels.map(({ element }) => element));
    const first = panels.map(listen).find(Boolean);
    if (first) first.tabIndex = 0;
    const lanes = panels.flatMap((panel) => (panel.kinds ? [] : panel.data.lanes.map((lane) => panel.lane(lane))));
    const few = (one, other) => one.data.arcs.length - other.data.arcs.length;
    const wrong = lanes.filter(({ data }) => data.grade !== "full");
    const instead = wrong.filter(({ data }) => data.instead && data.grade === "low").sort(few)[0]; // a wrong retrieval is the most instructive
    const among = wrong.length > 1 ? `of ${Turns.number(wrong.length)} tests that are not right, ` : "";
    const told = instead ? "the simplest where the memory retrieved something else" : "the one with the lowest score";
    if (wrong.length && !location.hash) choose(instead ?? wrong[0], `Opened first: ${among}${told}.`);
    const [root] = Conversations.all;
    if (root) {
      offer(root);
      slider.max = panels.find(({ data }) => data.conversation === root.id)?.data.tokens ?? lanes.find(({ data }) => data.conversation === root.id)?.data.tokens ?? 100;
    }
    follow(location.hash);
  }

  byId("no-player").remove();
  byId("timeline").hidden = false;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) byId("play-speed").value = "0.5";
  button.addEventListener("click", () => (timer ? pause() : play()));
  byId("play-before").addEventListener("click", () => { pause(); move(-1); });
  byId("play-after").addEventListener("click", () => { pause(); move(1); });
  slider.addEventListener("input", async () => {
    const at = slider.valueAsNumber / (Number(slider.max) || 1);
    if (!conversation) await prepare();
    seek(at * Number(slider.max));
  });
  slider.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    pause();
    move(Number.isFinite(by) ? by : by > 0 ? shown.length || 1e9 : -(shown.length || 1e9));
  });
  for (const id of ["play-kind", "play-conversation", "play-branch"]) byId(id)?.addEventListener("change", select);
  wide.addEventListener("change", place);
  document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); });
  document.addEventListener("rendered", () => { if (current) show(current); });
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#lane-']");
    if (link && link.getAttribute("href") === location.hash) follow(location.hash);
  });
  for (const command of document.querySelectorAll("[data-command]")) command.textContent = `${command.dataset.command} ${Story.folder()}`;
  start();
}
