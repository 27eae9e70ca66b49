"use strict";
// The conversations of a report: turns are rendered when they come near the window; search, filters, links to a turn.

const Conversations = (() => {
  const BATCH = 50; // turns that are rendered together

  const all = [...document.querySelectorAll("section.conversation")].map((section) => {
    const data = JSON.parse(section.querySelector("script").textContent);
    return { ...data, section, list: section.querySelector(".turns"), where: `; see ${data.file}` };
  });
  const tools = document.getElementById("tools");
  const matches = document.getElementById("matches");
  const fields = tools.elements;
  const pending = new Map(); // lists whose turns are not rendered yet, with the functions that render them
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) fill(entry.target);
  }, { rootMargin: "1500px 0px" });

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
  function show() {
    const pattern = searchPattern();
    const chosen = fields.conversation?.value;
    const filtered = Boolean(pattern || chosen || fields.kind.value || fields.test.value);
    let count = 0;
    observer.disconnect();
    pending.clear();
    for (const conversation of all) {
      const turns = chosen && chosen !== conversation.id ? [] : conversation.turns.filter((turn) => matchesFilters(turn, pattern));
      count += turns.length;
      conversation.section.hidden = filtered && !turns.length;
      conversation.list.replaceChildren(...lists(conversation, turns, pattern));
    }
    const total = all.reduce((sum, conversation) => sum + conversation.turns.length, 0);
    matches.textContent = filtered ? `${Turns.number(count)} of ${Turns.number(total)} turns` : `${Turns.number(total)} turns`;
  }

  function clear() {
    for (const field of [fields.text, fields.kind, fields.test, fields.conversation]) if (field) field.value = "";
    show();
  }

  const holds = (list, number) => Number(list.dataset.first) <= number && number <= Number(list.dataset.last);

  /** Scroll to a turn and focus it. Returns false if there is no such turn. */
  function reveal(conversation, number) {
    if (!conversation?.turns[number]) return false;
    const listOf = () => [...conversation.list.children].find((list) => holds(list, number));
    const element = () => document.getElementById(Turns.address(conversation.id, number));
    if (listOf()) fill(listOf());
    if (!element()) clear();
    for (const list of [listOf().previousElementSibling, listOf(), listOf().nextElementSibling]) if (list) fill(list);
    const turn = element();
    for (const other of document.querySelectorAll(".target")) other.classList.remove("target");
    turn.classList.add("target");
    const fold = turn.querySelector("details.filler");
    if (fold) fold.open = true;
    turn.focus({ preventScroll: true });
    turn.scrollIntoView();
    return true;
  }

  /** Follow an address such as #t-main-12. */
  function follow(hash) {
    const match = /^#t-(.+)-(\d+)$/.exec(hash);
    if (match) reveal(all.find((conversation) => Turns.anchor(conversation.id) === match[1]), Number(match[2]));
  }

  function go(event) {
    event.preventDefault();
    if (fields.turn.value === "") return;
    const conversation = all.find(({ id }) => id === fields.conversation?.value) ?? all[0];
    if (!reveal(conversation, fields.turn.valueAsNumber)) {
      matches.textContent = `No such turn: turns are numbered from 0 to ${conversation.turns.length - 1}.`;
    }
  }

  let typing = 0;
  fields.text.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(show, 120);
  });
  tools.addEventListener("change", (event) => { if (event.target.matches("select")) show(); });
  tools.addEventListener("submit", go);
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#t-']");
    if (link && (link.getAttribute("href") === location.hash)) follow(location.hash);
  });
  addEventListener("beforeprint", () => { for (const list of [...pending.keys()]) fill(list); });
  document.getElementById("no-script").remove();
  tools.hidden = false;
  show();
  follow(location.hash);

  return { all };
})();
