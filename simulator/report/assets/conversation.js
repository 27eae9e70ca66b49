"use strict";
// The conversations of a report: they are read and rendered when they come near the window; search, filters, links to a turn.

const Conversations = (() => {
  const BATCH = 50; // turns that are rendered together
  const NEAR = "1500px 0px"; // what is no further from the window is rendered

  /** The JSON of a conversation, which may be deflated (excerpts.py). A browser that cannot open it says so and goes on waiting. */
  async function read(script) {
    if (!script.matches(".deflated")) return JSON.parse(script.textContent);
    if (!("DecompressionStream" in window)) {
      document.querySelector("#no-script > span").textContent = "This browser is too old to show the turns.";
      document.getElementById("no-script").hidden = false;
      return new Promise(() => {});
    }
    const bytes = Uint8Array.from(atob(script.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
  }

  /** A conversation, which has turns and tests once it was opened. */
  class Conversation {
    #opening = null;
    turns = [];
    tests = [];
    where = "";

    constructor(section) {
      this.section = section;
      this.id = section.dataset.id;
      this.length = Number(section.dataset.turns);
      this.list = section.querySelector(".turns");
    }

    /** Read its JSON, which is done once, when it is first needed. */
    open() {
      return this.#opening ??= read(this.section.querySelector("script")).then(({ turns, tests, file }) => {
        Object.assign(this, { turns, tests, where: `; see ${file}` });
      });
    }
  }

  const all = [...document.querySelectorAll("section.conversation")].map((section) => new Conversation(section));
  const byAnchor = (anchor) => all.find((conversation) => Turns.anchor(conversation.id) === anchor);
  const tools = document.getElementById("tools");
  const matches = document.getElementById("matches");
  const hits = document.getElementById("hits");
  const fields = tools.elements;
  const pending = new Map(); // lists whose turns are not rendered yet, with the functions that render them
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) fill(entry.target);
  }, { rootMargin: NEAR });
  let listed = false; // whether the turns were listed
  let found = []; // the turns that the search found: the conversation, the turn's number, how often
  let current = -1; // the hit that was gone to

  /** Call `action` once, when an element comes near the window. */
  function near(element, action) {
    const waiting = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      waiting.disconnect();
      action();
    }, { rootMargin: NEAR });
    waiting.observe(element);
  }

  /** Estimate a turn's height in pixels, so that the scroll bar is right before it is rendered. */
  function height(turn) {
    if (turn.kinds.includes("filler")) return 39;
    return Turns.texts(turn).reduce((sum, text) => sum + 28 * Math.ceil((text.length + 1) / 110), 45);
  }

  function fill(list) {
    pending.get(list)?.();
    pending.delete(list);
    observer.unobserve(list);
  }

  /** Create empty lists for some of a conversation's turns. */
  function lists(conversation, turns, pattern) {
    const created = [];
    for (let from = 0; from < turns.length; from += BATCH) {
      const batch = turns.slice(from, from + BATCH);
      const list = Turns.make("ol", { "aria-label": `Turns ${batch[0].number} to ${batch.at(-1).number}` });
      list.dataset.first = batch[0].number;
      list.dataset.last = batch.at(-1).number;
      list.style.minHeight = `${batch.reduce((sum, turn) => sum + height(turn), 0)}px`;
      pending.set(list, () => {
        list.append(...batch.map((turn) => Turns.item(conversation.id, turn, pattern, conversation.where)));
        list.style.minHeight = "";
      });
      observer.observe(list);
      created.push(list);
    }
    return created;
  }

  /** The search text as a pattern, or null. Any white space matches any other. */
  function searchPattern() {
    const text = fields.text.value.trim();
    if (!text) return null;
    const words = text.split(/\s+/).map((word) => word.replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&"));
    return new RegExp(words.join("\\s+"), "giu");
  }

  function matchesFilters(turn, pattern) {
    const kind = fields.kind.value;
    const test = fields.test.value;
    if (kind === "tests" ? turn.kinds.includes("filler") : kind && !turn.kinds.includes(kind)) return false;
    if (test && turn.test !== test && !turn.proves?.includes(test)) return false;
    return pattern === null || Turns.texts(turn).some((text) => text.search(pattern) >= 0);
  }

  /** Show the turns that match the search and the filters. */
  async function show() {
    await Promise.all(all.map((conversation) => conversation.open()));
    const pattern = searchPattern();
    const chosen = fields.conversation?.value;
    const filtered = Boolean(pattern || chosen || fields.kind.value || fields.test.value);
    let count = 0;
    listed = true;
    found = [];
    current = -1;
    observer.disconnect();
    pending.clear();
    for (const conversation of all) {
      const turns = chosen && chosen !== conversation.id ? [] : conversation.turns.filter((turn) => matchesFilters(turn, pattern));
      count += turns.length;
      conversation.section.hidden = filtered && !turns.length;
      conversation.list.replaceChildren(...lists(conversation, turns, pattern));
      if (pattern) found.push(...turns.map((turn) => ({ conversation, number: turn.number, hits: hitsIn(turn, pattern) })));
    }
    matches.textContent = filtered ? `${Turns.number(count)} of ${Turns.number(total)} turns` : `${Turns.number(total)} turns`;
    showHits();
  }

  const hitsIn = (turn, pattern) => Turns.texts(turn).reduce((sum, text) => sum + [...text.matchAll(pattern)].length, 0);
  const hitCount = () => found.reduce((sum, turn) => sum + turn.hits, 0);

  function showHits() {
    const count = hitCount();
    for (const id of ["hit-before", "hit-after"]) document.getElementById(id).disabled = !count;
    hits.textContent = !fields.text.value.trim() ? "" : current < 0 ? `${Turns.number(count)} hits` : `hit ${Turns.number(current + 1)} of ${Turns.number(count)}`;
  }

  /** Go to a hit of the search; after the last comes the first. */
  async function goToHit(number) {
    const count = hitCount();
    if (!count) return;
    current = (number + count) % count;
    let left = current;
    const at = found.find((turn) => left < turn.hits || ((left -= turn.hits), false));
    const turn = await reveal(at.conversation, at.number, { focus: false });
    const marks = [...turn.querySelectorAll("dd mark")];
    for (const mark of document.querySelectorAll("mark.current")) mark.classList.remove("current");
    marks[left]?.classList.add("current");
    (marks[left] ?? turn).scrollIntoView({ block: "center" });
    showHits();
  }

  function clear() {
    for (const field of [fields.text, fields.kind, fields.test, fields.conversation]) if (field) field.value = "";
    return show();
  }

  const holds = (list, number) => Number(list.dataset.first) <= number && number <= Number(list.dataset.last);

  /** Scroll to a turn and focus it. Returns its element, or null if there is no such turn. */
  async function reveal(conversation, number, { focus = true } = {}) {
    await conversation?.open();
    if (!conversation?.turns[number]) return null;
    if (!listed) await show();
    const listOf = () => [...conversation.list.children].find((list) => holds(list, number));
    const element = () => document.getElementById(Turns.address(conversation.id, number));
    if (listOf()) fill(listOf());
    if (!element()) await clear();
    for (const list of [listOf().previousElementSibling, listOf(), listOf().nextElementSibling]) if (list) fill(list);
    const turn = element();
    for (const other of document.querySelectorAll(".turn.target")) other.classList.remove("target");
    turn.classList.add("target");
    const fold = turn.querySelector("details.filler");
    if (fold && !fold.open) {
      fold.open = true;
      fold.unfold();
    }
    if (focus) turn.focus({ preventScroll: true });
    turn.scrollIntoView();
    return turn;
  }

  /** Follow an address such as #t-main-12. */
  function follow(hash) {
    const match = /^#t-(.+)-(\d+)$/.exec(hash);
    if (match) reveal(byAnchor(match[1]), Number(match[2]));
  }

  async function go() {
    if (fields.turn.value === "") return;
    const conversation = all.find(({ id }) => id === fields.conversation?.value) ?? all[0];
    if (!(await reveal(conversation, fields.turn.valueAsNumber))) {
      matches.textContent = `No such turn: turns are numbered from 0 to ${conversation.length - 1}.`;
    }
  }

  const total = all.reduce((sum, conversation) => sum + conversation.length, 0);
  let typing = 0;
  const search = () => {
    clearTimeout(typing);
    typing = 0;
    return show();
  };
  fields.text.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      await search();
      goToHit(0);
    }, 120);
  });
  fields.text.addEventListener("keydown", async (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (typing || !listed) await search();
    goToHit(current + (event.shiftKey ? -1 : 1));
  });
  document.getElementById("hit-before").addEventListener("click", () => goToHit(current - 1));
  document.getElementById("hit-after").addEventListener("click", () => goToHit(current + 1));
  tools.addEventListener("change", (event) => { if (event.target.matches("select")) show(); });
  tools.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  document.addEventListener("change", (event) => {
    if (!event.target.matches("input.as-markdown")) return;
    Turns.choice.rendered = event.target.checked;
    for (const other of document.querySelectorAll("input.as-markdown")) other.checked = event.target.checked;
    if (listed) show();
    document.dispatchEvent(new Event("rendered"));
  });
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#t-']");
    if (link && (link.getAttribute("href") === location.hash)) follow(location.hash);
  });
  document.getElementById("print-turns").addEventListener("change", () => { if (!listed) show(); });
  addEventListener("beforeprint", () => {
    if (!document.getElementById("print-turns").checked) return;
    for (const list of [...pending.keys()]) fill(list);
  });
  for (const element of document.querySelectorAll(".conversations [hidden]")) element.hidden = false;
  document.getElementById("no-script").hidden = true;
  matches.textContent = `${Turns.number(total)} turns`;
  showHits();
  near(tools, () => { if (!listed) show(); });
  follow(location.hash);

  return { all, near };
})();
