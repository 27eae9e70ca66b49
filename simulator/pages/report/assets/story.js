"use strict";
// Why a test has its score: the needed turns, the retrieved turns and the reply, one below the other. Words that agree or differ are
// marked.

const Story = (() => {
  const MAX_CHARS = 200; // of a text
  const BEFORE = 60; // characters shown before the first marked word
  const MAX_TURNS = matchMedia("(max-width: 36rem)").matches ? 1 : 3; // of each part, until the others are requested
  const MEANINGS = { agree: "in the needed turns and in the reply", differ: "in the turns retrieved instead and in the reply", missed: "in the needed turns, but not in the reply" };

  /** The words of a text in lower case: long words, numbers, and names, which have a capital inside a sentence. */
  const words = (text) => new Set((text.match(/[\p{L}\p{N}]{4,}|\p{N}+|(?<=[\p{L},;] )\p{Lu}[\p{L}\p{N}]+/gu) ?? []).map((word) => word.toLowerCase()));
  const without = (some, others) => new Set([...some].filter((word) => !others.has(word)));
  const both = (some, others) => new Set([...some].filter((word) => others.has(word)));
  const head = (text) => (text === undefined ? "" : Turns.parts(text).head);
  const line = (text) => text.trim().replace(/\s+/g, " ");

  /** The part of a text with the most words from the sets. */
  function excerpt(text, sets) {
    const found = [...text.matchAll(/[\p{L}\p{N}]+/gu)].filter(([word]) => Object.values(sets).some((set) => set.has(word.toLowerCase())));
    let [best, most, end] = [0, 0, 0];
    found.forEach(({ index }, at) => {
      while (end < found.length && found[end].index < index + MAX_CHARS - BEFORE) end += 1;
      if (end - at > most) [best, most] = [index, end - at];
    });
    const start = text.length > MAX_CHARS && best > MAX_CHARS - BEFORE ? text.lastIndexOf(" ", best - BEFORE) + 1 : 0;
    return `${start ? "… " : ""}${text.slice(start, start + MAX_CHARS)}${text.length > start + MAX_CHARS ? " …" : ""}`;
  }

  /** A text in one line, with words marked by the class of the first set that contains them. */
  function marked(whole, sets) {
    const text = excerpt(line(whole), sets);
    const nodes = [];
    let at = 0;
    for (const match of text.matchAll(/[\p{L}\p{N}]+/gu)) {
      const found = Object.entries(sets).find(([, set]) => set.has(match[0].toLowerCase()));
      if (!found) continue;
      nodes.push(text.slice(at, match.index), Turns.make("mark", { class: found[0], title: MEANINGS[found[0]] }, match[0]));
      at = match.index + match[0].length;
    }
    nodes.push(text.slice(at));
    return nodes;
  }

  /** The texts of the memories that a question read: their own, or else the texts of the turns they come from. */
  function memoriesOf(conversation, question, needed) {
    const memories = question?.memory?.read ?? [];
    const known = new Map(conversation.whole.flatMap(({ memory }) => [...(memory?.written ?? []), ...(memory?.read ?? [])]).filter(({ id }) => id).reverse().map((one) => [one.id, one]));
    return memories.map((one) => {
      const told = known.get(one.id) ?? {};
      const turns = one.turns ?? told.turns ?? [];
      return { turns, text: head(one.text ?? told.text) || head(conversation.turn(turns[0])?.text) || one.id || "" };
    }).filter(({ turns, text }) => text && !turns.some((turn) => needed.includes(turn)));
  }

  /** The parts of a story, once its conversation is open. */
  function parts(conversation, { question, needed = [], expected = "" }) {
    const asked = conversation.turn(question);
    const reply = head(asked?.reply);
    const plain = words(head(asked?.text));
    const wanted = needed.map((number) => ({ turns: [number], text: head(conversation.turn(number)?.text) || "(this turn is not in the page)" }));
    const instead = memoriesOf(conversation, asked, needed);
    const right = without(words(expected || wanted.map(({ text }) => text).join(" ")), plain);
    const said = without(words(reply), plain);
    const other = without(words(instead.map(({ text }) => text).join(" ")), new Set([...plain, ...right]));
    const agree = both(said, right);
    const differ = both(said, other);
    const list = (items, sets) => {
      const all = items.map(({ turns, text }) => Turns.make("p", { dir: "auto" }, turns.slice(0, 3).flatMap((turn) => [Turns.link(conversation, turn), " "]), marked(text, sets)));
      const more = all.splice(MAX_TURNS);
      return more.length ? [...all, Turns.make("details", {}, Turns.make("summary", { class: "soft" }, `and ${Turns.number(more.length)} more`), more)] : all;
    };
    const part = (title, content) => (content.length ? [Turns.make("dt", {}, title), Turns.make("dd", {}, content)] : []);
    return Turns.make("dl", { class: "parts" },
      part("Asked", asked ? [Turns.make("p", { dir: "auto" }, Turns.link(conversation, question), " ", marked(head(asked.text), {}))] : []),
      part("Needed", list(wanted, { agree, missed: without(expected ? both(right, words(expected)) : new Set(), said) })),
      part("Found", list(instead, { differ })),
      part("Expected", expected ? [Turns.make("p", { dir: "auto" }, marked(expected, { agree, missed: without(right, said) }))] : []),
      part("Replied", asked ? [Turns.make("p", { class: "reply", dir: "auto" }, reply.trim() ? marked(reply, { agree, differ }) : Turns.make("em", { class: "blank" }, "(empty)"))] : []));
  }

  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);

  /** The run's folder for commands: as given, or from the page's address, or its name. */
  function folder() {
    const { run, folder: name } = document.getElementById("timeline").dataset;
    if (run) return run;
    if (location.protocol !== "file:") return quoted(name);
    return quoted(decodeURIComponent(location.pathname.slice(0, location.pathname.lastIndexOf("/"))) || "/");
  }

  function copying(label, text) {
    const button = Turns.make("button", { type: "button", class: "copy", title: text() }, label);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    });
    button.addEventListener("blur", () => { button.textContent = label; });
    return button;
  }

  /** Copy buttons, if the browser lets pages write to the clipboard. */
  function actions(lane, several) {
    if (!navigator.clipboard) return [];
    const at = several ? ` --conversation ${quoted(lane.conversation)}` : "";
    const asked = lane.story.question;
    return [
      copying("Copy link", () => `${location.href.split("#")[0]}#lane-${Turns.anchor(lane.id)}`),
      Turns.make("span", { class: "soft" }, "Copy command:"),
      copying("show", () => `longspan show ${folder()} ${quoted(lane.test ?? lane.id)}`),
      ...(asked === undefined ? [] : [copying("ask", () => `longspan ask ${folder()} ${asked}${at}`)]),
      ...(lane.grade === "full" ? [] : [copying("replay", () => `longspan replay ${folder()} --only-failed`)]),
    ];
  }

  return { actions, folder, parts };
})();
