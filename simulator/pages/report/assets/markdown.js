"use strict";
// Renders a safe subset of Markdown as elements. Untrusted text only ever becomes text nodes; links and images become text.
// It takes time linear in the text's length: no search looks further ahead than a fixed number of characters.
//
// Why not markdown-it, or mistune with a sanitizer (nh3), when the report is made? The page would contain every reply twice (twice the
// size, even deflated) for an option that few use, and a thousand replies would take another second. Today no untrusted text becomes
// HTML, so no sanitizer is needed. Also, search matches are marked while text is rendered, and a link's address stays visible.

const Markdown = (() => {
  const MAX_DEPTH = 5; // of nested lists and quotations, and of emphasis

  const FENCE = /^ {0,3}(`{3,}|~{3,})/;
  const HEADING = /^ {0,3}(#{1,6}) +(.*)$/;
  const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
  const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
  const QUOTE = /^ {0,3}> ?/;
  const CELL = /^ *:?-+:? *$/;
  const LINK = /!?\[([^[\]\n]{0,300})\]\(([^()\n]{0,500})\)/y;
  const MARKER = /\*\*|__|~~|\*|_/y;
  const SPECIAL = /[\\`*_~[!]/g;
  const ELEMENTS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "s" };

  const make = (tag, attributes = {}) => Turns.make(tag, attributes);
  const isWord = (character) => /[\p{L}\p{N}]/u.test(character);

  /** Append text with inline markup to `parent`, as nodes. `leaf` turns plain text into nodes. */
  function inline(parent, text, leaf) {
    const open = []; // open emphasis: its marker and its element
    let target = parent;
    let plain = "";
    const flush = () => { if (plain) target.append(...leaf(plain)); plain = ""; };
    const targetOf = () => (open.length ? open.at(-1).element : parent);

    /** Undo unclosed emphasis: its marker is plain text. */
    const unwrap = () => {
      const { marker, element } = open.pop();
      element.replaceWith(marker, ...element.childNodes);
      target = targetOf();
    };

    const emphasis = (marker, before, after) => {
      const at = open.findLastIndex((one) => one.marker === marker);
      if (at >= 0 && before.trim() && !(marker.startsWith("_") && isWord(after))) {
        flush();
        while (open.length > at + 1) unwrap();
        open.pop();
        target = targetOf();
        return;
      }
      if (!after.trim() || open.length >= MAX_DEPTH || at >= 0 || (marker.startsWith("_") && isWord(before))) {
        plain += marker;
        return;
      }
      flush();
      const element = make(ELEMENTS[marker]);
      target.append(element);
      open.push({ marker, element });
      target = element;
    };

    /** The marker at a place: of three in a row, the inner one closes first. */
    const markerAt = (at) => {
      MARKER.lastIndex = at;
      const marker = MARKER.exec(text)?.[0];
      return marker?.length === 2 && open.at(-1)?.marker === marker[0] && text[at + 2] === marker[0] ? marker[0] : marker;
    };

    const code = (at) => {
      const ticks = /`+/y;
      ticks.lastIndex = at;
      const [fence] = ticks.exec(text);
      const end = text.slice(at + fence.length, at + 500).indexOf(fence);
      if (end < 0) {
        plain += fence;
        return at + fence.length;
      }
      flush();
      const element = make("code");
      element.append(...leaf(text.slice(at + fence.length, at + fence.length + end)));
      target.append(element);
      return at + 2 * fence.length + end;
    };

    let at = 0;
    while (at < text.length) {
      SPECIAL.lastIndex = at;
      const next = SPECIAL.exec(text)?.index ?? text.length;
      plain += text.slice(at, next);
      at = next;
      if (at === text.length) break;
      LINK.lastIndex = at;
      const link = LINK.exec(text);
      const marker = markerAt(at);
      if (text[at] === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
        plain += text[at + 1];
        at += 2;
      } else if (text[at] === "`") {
        at = code(at);
      } else if (link) {
        plain += link[1] && link[1] !== link[2] ? `${link[1]} (${link[2]})` : link[2];
        at += link[0].length;
      } else if (marker) {
        emphasis(marker, text[at - 1] ?? " ", text[at + marker.length] ?? " ");
        at += marker.length;
      } else {
        plain += text[at];
        at += 1;
      }
    }
    flush();
    while (open.length) unwrap();
    parent.normalize();
    return parent;
  }

  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|");
  const isTable = (lines, at) => lines[at].includes("|") && lines[at + 1]?.includes("-") && lines[at + 1].includes("|") && cells(lines[at + 1]).every((cell) => CELL.test(cell));
  const begins = (lines, at) => FENCE.test(lines[at]) || HEADING.test(lines[at]) || RULE.test(lines[at]) || ITEM.test(lines[at]) || QUOTE.test(lines[at]) || isTable(lines, at);
  const blank = (line) => !line.trim();

  /** Append lines to `parent`, as blocks. */
  function blocks(parent, lines, leaf, depth) {
    let at = 0;

    /** The following lines for which `holds`, from the current one on. */
    const take = (holds) => {
      const first = at;
      while (at < lines.length && holds(at, first)) at += 1;
      return lines.slice(first, at);
    };

    const fenced = () => {
      const [, fence] = FENCE.exec(lines[at]);
      at += 1;
      const inside = take((here) => !(lines[here].trim().startsWith(fence) && !lines[here].trim().replaceAll(fence[0], "")));
      at += 1;
      const code = make("code");
      code.append(...leaf(inside.join("\n")));
      parent.append(Turns.make("pre", { tabindex: "0" }, code));
    };

    const list = () => {
      const [, indent, mark] = ITEM.exec(lines[at]);
      const ordered = /\d/.test(mark);
      const element = ordered ? make("ol", { start: String(Number.parseInt(mark, 10)) }) : make("ul");
      const isItem = (here) => {
        const found = ITEM.exec(lines[here]);
        return found !== null && found[1].length <= indent.length + 1 && /\d/.test(found[2]) === ordered && !RULE.test(lines[here]);
      };
      const inner = (here) => blank(lines[here]) || lines[here].startsWith(" ".repeat(indent.length + 2));
      while (at < lines.length && isItem(at)) {
        const [head] = ITEM.exec(lines[at]);
        const first = lines[at].slice(head.length);
        at += 1;
        const rest = take((here) => inner(here) || !(blank(lines[here - 1]) || begins(lines, here)));
        const item = make("li");
        const margin = Math.min(...rest.filter((line) => !blank(line)).slice(0, 1).map((line) => line.search(/\S/)), 8);
        blocks(item, [first, ...rest.map((line) => (blank(line.slice(0, margin)) ? line.slice(margin) : line.trimStart()))], leaf, depth + 1);
        element.append(item);
      }
      parent.append(element);
    };

    const table = () => {
      const row = (line, tag) => Turns.make("tr", {}, cells(line).map((cell) => inline(make(tag), cell.trim(), leaf)));
      const head = Turns.make("thead", {}, row(lines[at], "th"));
      at += 2;
      const body = take((here) => lines[here].includes("|")).map((line) => row(line, "td"));
      parent.append(Turns.make("table", {}, head, Turns.make("tbody", {}, body)));
    };

    while (at < lines.length) {
      const line = lines[at];
      if (blank(line)) at += 1;
      else if (FENCE.test(line)) fenced();
      else if (HEADING.test(line)) {
        const [, marks, text] = HEADING.exec(line);
        parent.append(inline(make("p", { class: `heading heading-${marks.length}` }), text, leaf));
        at += 1;
      } else if (RULE.test(line)) {
        parent.append(make("hr"));
        at += 1;
      } else if (QUOTE.test(line) && depth < MAX_DEPTH) {
        const inside = take((here) => QUOTE.test(lines[here])).map((quoted) => quoted.replace(QUOTE, ""));
        const element = make("blockquote");
        blocks(element, inside, leaf, depth + 1);
        parent.append(element);
      } else if (ITEM.test(line) && depth < MAX_DEPTH) list();
      else if (isTable(lines, at)) table();
      else parent.append(inline(make("p"), take((here, first) => here === first || !(blank(lines[here]) || begins(lines, here))).join("\n"), leaf));
    }
    return parent;
  }

  /** Return text as an element. `leaf(text)` returns the nodes for plain text. */
  const render = (text, leaf = (plain) => [plain]) => blocks(make("div", { class: "markdown" }), text.split("\n"), leaf, 0);

  return { render };
})();
