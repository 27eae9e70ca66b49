"use strict";
// The conversations of a report: read and rendered when they come near the window, with search, filters, and links to turns.

const Conversations = (() => {
  const BATCH = 50; // turns or branches rendered together
  const OPEN = 3; // branches are shown open if there are at most this many
  const NEAR = "1500px 0px"; // elements within this distance of the window are rendered

  /** The JSON in a script, which may be deflated (excerpts.py). If the browser cannot inflate it, show a message and never resolve. */
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

  /** A conversation. It has turns and tests once it is open. A branch continues its `trunk` with turn `first`. */
  class Conversation {
    #numbered = new Map();
    turns = [];
    tests = [];
    first = 0;
    end = 0;
    where = "";

    constructor(id, section, trunk = null) {
      Object.assign(this, { id, section, trunk });
    }

    open() {
      return this.section.open();
    }

    fill({ turns, tests, first, end, file }) {
      Object.assign(this, { turns, tests, first, end, where: `; see ${file}` });
      this.#numbered = new Map(turns.map((turn) => [turn.number, turn])); // the page has only some turns of a long history
    }

    /** The conversation that contains a turn: this one or its trunk. */
    holder(number) {
      return this.trunk && number < this.first ? this.trunk : this;
    }

    /** The turn with this number, or undefined. */
    turn(number) {
      return this.holder(number).#numbered.get(number);
    }

    /** All turns up to its end, beginning with its trunk's. */
    get whole() {
      return this.trunk ? [...this.trunk.turns, ...this.turns] : this.turns;
    }
  }

  /** A conversation that is not a branch, with its branches: one JSON, a list of turns and a list of branches. */
  class Section {
    #opening = null;

    constructor(element) {
      this.element = element;
      this.conversation = new Conversation(element.dataset.id, this);
      this.branches = element.dataset.branches.split(" ").filter(Boolean).map((id) => new Conversation(id, this, this.conversation));
      this.length = Number(element.dataset.turns); // with the turns of its branches
      [this.turnList, this.branchList] = element.querySelectorAll(".turns");
    }

    /** Read its JSON, once, when it is first needed. */
    open() {
      return this.#opening ??= read(this.element.querySelector("script")).then(({ branches, ...whole }) => {
        this.conversation.fill(whole);
        this.branches.forEach((branch, i) => branch.fill(branches[i]));
      });
    }
  }

  const sections = [...document.querySelectorAll("section.conversation")].map((element) => new Section(element));
  const all = sections.map(({ conversation }) => conversation);
  const known = new Map(sections.flatMap(({ conversation, branches }) => [conversation, ...branches]).map((one) => [one.id, one]));
  const anchored = new Map([...known.values()].map((one) => [Turns.anchor(one.id), one]));
  const everything = document.getElementById("all-turns"); // contains the turns, folded at first
  const tools = document.getElementById("tools");
  const matches = document.getElementById("matches");
  const hits = document.getElementById("hits");
  const fields = tools.elements;
  const batches = new WeakMap(); // the entries of lists
  const pending = new Map(); // lists not rendered yet, with the functions that render them
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) fill(entry.target);
  }, { rootMargin: NEAR });
  let listed = false; // whether the turns have been listed
  let found = []; // search hits: the conversation, the turn's number, the number of matches
  let current = -1; // the current hit

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

  /** Create empty lists for entries (turns or branches), each with its content, its height, and a function that renders it. */
  function lists(name, entries) {
    const created = [];
    for (let from = 0; from < entries.length; from += BATCH) {
      const batch = entries.slice(from, from + BATCH);
      const list = Turns.make("ol", { "aria-label": `${name} ${batch[0].label} to ${batch.at(-1).label}` });
      const estimate = batch.reduce((sum, entry) => sum + entry.height, 0);
      list.style.minHeight = `${estimate}px`;
      list.style.containIntrinsicHeight = `auto ${estimate}px`; // its height while it is rendered but skipped, far from the window
      batches.set(list, batch);
      pending.set(list, () => {
        list.append(...batch.map((entry) => entry.render()));
        list.style.minHeight = "";
      });
      observer.observe(list);
      created.push(list);
    }
    return created;
  }

  const turnEntry = (conversation, turn, pattern) => ({
    conversation,
    label: turn.number,
    holds: (number) => number === turn.number,
    height: height(turn),
    render: () => Turns.item(conversation, turn, pattern, conversation.where),
  });

  /** A branch: a summary with the beginning of its first turn, which opens. */
  const branchEntry = (branch, turns, pattern, open, label) => ({
    conversation: branch,
    label,
    holds: () => true,
    height: open ? turns.reduce((sum, turn) => sum + height(turn), 39) : 39,
    render: () => {
      const signs = branch.tests.map(({ grade }) => Turns.sign(grade));
      const first = turns.find((turn) => pattern && Turns.texts(turn).some((text) => text.search(pattern) >= 0)) ?? turns[0];
      const summary = Turns.make("summary", {}, signs, ` ${shortName(branch)} · `, Turns.make("bdi", {}, Turns.excerpt(first, pattern)));
      const fold = Turns.make("details", { class: "branch" }, summary);
      fold.unfold = () => {
        if (fold.childElementCount === 1) fold.append(Turns.make("ol", { class: "plain" }, turns.map((turn) => Turns.item(branch, turn, pattern, branch.where))));
      };
      fold.addEventListener("toggle", fold.unfold);
      if (open) unfold(fold);
      return Turns.make("li", {}, fold);
    },
  });

  /** A branch's name without its trunk's name. */
  const shortName = ({ id, trunk }) => (id.startsWith(`${trunk.id}-`) ? id.slice(trunk.id.length + 1) : id);

  /** Open the folded elements. */
  function unfold(fold) {
    fold.open = true;
    fold.unfold();
  }

  /** The search text as a pattern, or null. Any white space matches any other. */
  function searchPattern() {
    const text = fields.text.value.trim();
    if (!text) return null;
    const words = text.split(/\s+/).map((word) => word.replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&"));
    return new RegExp(words.join("\\s+"), "giu");
  }

  /** The turns of a section's history that the questions of a test need. */
  function neededBy(test, { branches }) {
    const branch = test && branches.find(({ tests }) => tests.some(({ id }) => id === test));
    return new Set((branch?.turns ?? []).flatMap(({ needs }) => needs ?? []).map((number) => branch.turn(number)));
  }

  function matchesFilters(turn, pattern, needed) {
    const kind = fields.kind.value;
    const test = fields.test.value;
    if (kind === "tests" ? turn.kinds.includes("filler") : kind && !turn.kinds.includes(kind)) return false;
    if (test && turn.test !== test && !turn.proves?.includes(test) && !needed.has(turn)) return false;
    return pattern === null || Turns.texts(turn).some((text) => text.search(pattern) >= 0);
  }

  /** Show the turns that match the search and the filters. */
  async function show() {
    await Promise.all(sections.map((section) => section.open()));
    const pattern = searchPattern();
    const chosen = fields.conversation?.value;
    const filtered = Boolean(pattern || chosen || fields.kind.value || fields.test.value);
    let count = 0;
    listed = true;
    found = [];
    current = -1;
    observer.disconnect();
    pending.clear();
    for (const section of sections) {
      const { conversation, branches } = section;
      const needed = neededBy(fields.test.value, section);
      const matching = ({ turns }) => turns.filter((turn) => matchesFilters(turn, pattern, needed));
      const skipped = chosen && chosen !== conversation.id;
      const turns = skipped ? [] : matching(conversation);
      const asked = skipped ? [] : branches.map((branch) => [branch, matching(branch)]).filter(([, own]) => own.length);
      const shown = turns.length + asked.reduce((sum, [, own]) => sum + own.length, 0);
      count += shown;
      section.element.hidden = filtered && !shown;
      section.turnList.replaceChildren(...lists("Turns", turns.map((turn) => turnEntry(conversation, turn, pattern))));
      section.branchList?.replaceChildren(...lists("Branches", asked.map(([branch, own], i) => branchEntry(branch, own, pattern, asked.length <= OPEN, i + 1))));
      if (pattern) {
        for (const [one, own] of [[conversation, turns], ...asked]) {
          found.push(...own.map((turn) => ({ conversation: one, number: turn.number, hits: hitsIn(turn, pattern) })));
        }
      }
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

  /** Go to a hit of the search. The first hit follows the last. */
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
    Views.keepInView(marks[left] ?? turn, { block: "center" });
    showHits();
  }

  function clear() {
    for (const field of [fields.text, fields.kind, fields.test, fields.conversation]) if (field) field.value = "";
    return show();
  }

  /** Scroll to a turn and focus it. Returns its element, or null for an unknown turn. */
  async function reveal(from, number, { focus = true } = {}) {
    await from?.open();
    if (!from?.turn(number)) return null;
    const conversation = from.holder(number);
    Views.show(everything);
    everything.open = true;
    if (!listed) await show();
    const holds = (entry) => entry.conversation === conversation && entry.holds(number);
    const place = () => {
      for (const list of conversation.section.element.querySelectorAll(".turns > ol")) {
        const at = batches.get(list).findIndex(holds);
        if (at < 0) continue;
        fill(list);
        const branch = list.children[at].querySelector("details.branch");
        if (branch) unfold(branch);
        return list;
      }
      return null;
    };
    const element = () => document.getElementById(Turns.address(conversation, number));
    let list = place();
    if (!element()) {
      await clear();
      list = place();
    }
    for (const beside of [list.previousElementSibling, list.nextElementSibling]) if (beside) fill(beside);
    const turn = element();
    for (const other of document.querySelectorAll(".turn.target")) other.classList.remove("target");
    turn.classList.add("target");
    const filler = turn.querySelector("details.filler");
    if (filler) unfold(filler);
    if (focus) turn.focus({ preventScroll: true });
    Views.keepInView(turn);
    return turn;
  }

  /** Follow an address such as #t-main-12. */
  function follow(hash) {
    const match = /^#t-(.+)-(\d+)$/.exec(hash);
    if (match) reveal(anchored.get(match[1]), Number(match[2]));
  }

  async function go() {
    if (fields.turn.value === "") return;
    await Promise.all(sections.map((section) => section.open()));
    const test = fields.test.value;
    const tested = test && [...known.values()].find(({ tests }) => tests.some(({ id }) => id === test));
    const conversation = tested || (known.get(fields.conversation?.value) ?? all[0]);
    if (!(await reveal(conversation, fields.turn.valueAsNumber))) {
      const outside = fields.turn.valueAsNumber >= conversation.end;
      matches.textContent = outside ? `No such turn: turns of ${conversation.id} are numbered from 0 to ${conversation.end - 1}.` : `That turn is not in this page${conversation.where}.`;
    }
  }

  const total = sections.reduce((sum, section) => sum + section.length, 0);
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
    for (const fold of document.querySelectorAll("details.branch")) unfold(fold);
  });
  for (const element of document.querySelectorAll(".conversations [hidden]")) element.hidden = false;
  document.getElementById("no-script").hidden = true;
  matches.textContent = `${Turns.number(total)} turns`;
  showHits();
  near(tools, () => { if (!listed) show(); });
  follow(location.hash);

  return { all, get: (id) => known.get(id), near, read };
})();
