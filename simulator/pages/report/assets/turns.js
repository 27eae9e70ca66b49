"use strict";
// Renders turns from the JSON made by simulator/pages/report/reading.py. Untrusted text only ever becomes text nodes.

const Turns = (() => {
  const MAX_MARKS = 200;
  const FOLDS = { trace: "Trace", prompt: "Prompt" };
  const SIGNS = { full: "●", part: "◐", low: "○", none: "–" };
  const choice = { rendered: false }; // whether replies are rendered as Markdown

  /** Create an element with attributes and children (elements and texts). */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null));
    return element;
  }

  const number = (value) => value.toLocaleString("en");
  const anchor = (id) => id.replace(/[^A-Za-z0-9_.-]/g, "-");

  /** The id of the conversation that contains a turn: the given one, or its trunk, which it continues with turn `first`. */
  const holder = ({ id, first, trunk }, turn) => (trunk && turn < first ? trunk.id : id);
  const address = (conversation, turn) => `t-${anchor(holder(conversation, turn))}-${turn}`;
  const link = (conversation, turn) => make("a", { href: `#${address(conversation, turn)}` }, `#${turn}`);

  /** The sign of a grade. The grade is next to it in words or as a link. */
  const sign = (grade) => make("span", { class: `sign ${grade}`, "aria-hidden": "true" }, SIGNS[grade]);

  /** A test's name, linked to the test if the page has it. A test that plays a history is in no table. */
  function testLink(test) {
    const id = `test-${anchor(test)}`;
    return document.getElementById(id) ? make("a", { href: `#${id}` }, test) : make("span", {}, test);
  }

  /** The start, the end and the length of a text, given whole or as these three. */
  function parts(text) {
    if (typeof text === "string") return { head: text, tail: "", length: text.length };
    const [head, tail, length] = text;
    return { head, tail, length };
  }

  /** All searchable texts of a turn. */
  const texts = (turn) => [turn.text, turn.reply].filter((text) => text !== undefined).flatMap((text) => {
    const { head, tail } = parts(text);
    return tail ? [head, tail] : [head];
  });

  /** A text as nodes, with the matches of `pattern` (global, or null) marked. */
  function marked(text, pattern) {
    const nodes = [];
    let at = 0;
    for (const match of pattern ? text.matchAll(pattern) : []) {
      if (!match[0] || nodes.length > MAX_MARKS) break;
      nodes.push(text.slice(at, match.index), make("mark", {}, match[0]));
      at = match.index + match[0].length;
    }
    nodes.push(text.slice(at));
    return nodes;
  }

  function cut(text, where) {
    const { head, tail, length } = parts(text);
    return make("span", { class: "cut" }, `… ${number(length - head.length - tail.length)} of ${number(length)} characters left out${where} …`);
  }

  function shown(text, pattern, where) {
    const { head, tail } = parts(text);
    if (!tail) return head.trim() ? marked(head, pattern) : [make("em", { class: "blank" }, head ? "(white space)" : "(empty)")];
    return [...marked(head, pattern), cut(text, where), ...marked(tail, pattern)];
  }

  /** A turn's reply as nodes: as plain text, or as rendered Markdown if chosen. */
  function reply(turn, pattern = null, where = "") {
    if (turn.reply === undefined) return [make("em", { class: "blank" }, turn.waiting ? "(no reply yet)" : "(no reply: interrupted here)")];
    const { head, tail } = parts(turn.reply);
    if (!choice.rendered || !head.trim()) return shown(turn.reply, pattern, where);
    const leaf = (text) => marked(text, pattern);
    return [Markdown.render(head, leaf), ...(tail ? [cut(turn.reply, where), Markdown.render(tail, leaf)] : [])];
  }

  /** A turn's message, and its reply if any: history between two other people has none. `where`: where the whole of a shortened text is. */
  function exchange(turn, pattern = null, where = "") {
    const answer = turn.told && turn.reply === "" ? [] :
      [make("dt", {}, "Agent"), make("dd", { class: "reply", dir: "auto" }, reply(turn, pattern, where))];
    return make("dl", { class: "exchange" },
      make("dt", {}, "User"), make("dd", { dir: "auto" }, shown(turn.text, pattern, where)), answer);
  }

  /** The line above a turn: its number, kind, test, time and figures. */
  function about(conversation, turn) {
    const line = make("p", { class: "meta" }, link(conversation, turn.number));
    for (const kind of turn.kinds) line.append(make("span", { class: `label ${kind}` }, kind));
    if (turn.test !== undefined) line.append(testLink(turn.test));
    if (turn.needs) line.append(make("span", {}, "needs ", turn.needs.flatMap((needle, i) => [i ? ", " : "", link(conversation, needle)])));
    for (const test of turn.proves ?? []) {
      line.append(make("span", { class: "label proof" }, test === turn.test ? "decides the grade" : `decides the grade of ${test}`));
    }
    const facts = [`at ${number(turn.at)}: ${number(turn.tokens)} + ${number(turn.replyTokens ?? 0)} tokens`];
    if (turn.seconds !== undefined) facts.push(turn.seconds < 1 ? `${Math.round(1000 * turn.seconds)} ms` : `${turn.seconds.toFixed(1)} s`);
    if (turn.dollars) facts.push(`$${turn.dollars.toFixed(4)}`);
    if (turn.told) facts.push("history");
    if (turn.repeated) facts.push("asked twice");
    if (turn.refused) facts.push("refused");
    line.append(make("time", {}, turn.sent), make("span", {}, facts.join(" · ")));
    const { questionPage } = document.body.dataset;
    if (questionPage && turn.told) {
      const place = new URLSearchParams({ conversation: holder(conversation, turn.number), turn: turn.number });
      line.append(make("a", { href: `${questionPage}?${place}` }, "make a question"));
    }
    return line;
  }

  /** One line of a turn: the start of its message, or the text around the first match of `pattern`. */
  function excerpt(turn, pattern) {
    for (const text of pattern ? texts(turn) : []) {
      const at = text.search(pattern);
      if (at >= 0) return marked(`${at > 40 ? "… " : ""}${text.slice(Math.max(0, at - 40), at + 160)}`.replace(/\s+/g, " "), pattern);
    }
    return [parts(turn.text).head.slice(0, 200).replace(/\s+/g, " ")];
  }

  /** A turn's folded details besides its message and reply. */
  function folds(turn) {
    return Object.entries(FOLDS).filter(([key]) => turn[key] !== undefined).map(([key, title]) =>
      make("details", {}, make("summary", {}, title), make("pre", { tabindex: "0" }, shown(turn[key], null, ""))));
  }

  /** A turn as a list item. Filler is collapsed, and rendered when opened. */
  function item(conversation, turn, pattern = null, where = "") {
    const shell = make("li", { class: "turn", id: address(conversation, turn.number), tabindex: "-1" });
    for (const night of turn.nights ?? []) shell.append(make("p", { class: "jump" }, night));
    for (const jump of turn.jumps ?? []) shell.append(make("p", { class: "jump" }, `The clock jumps to ${jump.to} for ${jump.test}.`));
    const whole = () => [about(conversation, turn), exchange(turn, pattern, where), ...folds(turn)];
    if (!turn.kinds.includes("filler")) {
      shell.append(...whole());
      return shell;
    }
    const summary = make("summary", {}, make("span", { class: "label" }, "filler"),
      ` #${turn.number} · ${number(turn.tokens)} tokens · `, make("bdi", {}, excerpt(turn, pattern)));
    const fold = make("details", { class: "filler" }, summary);
    fold.unfold = () => { if (fold.childElementCount === 1) fold.append(...whole()); };
    fold.addEventListener("toggle", fold.unfold);
    shell.append(fold);
    return shell;
  }

  return { about, address, anchor, choice, exchange, excerpt, item, link, make, number, parts, reply, sign, testLink, texts };
})();
