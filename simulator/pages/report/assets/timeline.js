"use strict";
// The timeline: lanes of tests with their needles, and arcs to the questions that need them. It also works as the slider that plays a
// conversation. A click on a lane shows why its test has its score. Untrusted text only ever becomes text nodes.

const Timeline = (() => {
  const MOST_LANES = 40; // that a panel shows one by one; with more, each kind has a row that opens
  const BATCH = 100; // lanes of a kind shown in one step
  const FEW = 16; // facts of a kind shown at first, spread over all distances
  const SIGNS = { full: "●", part: "◐", low: "○", none: "–", open: "…", waiting: "·" };
  const MIDDLE = 10; // of a lane's height of 20
  const SVG = document.querySelector("svg.shapes").namespaceURI; // taken from the page's own SVG, so that no address appears in the script

  const svg = (tag, attributes, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.flat());
    return element;
  };
  const percent = (share) => `${(100 * share).toFixed(2)}%`;
  const score = (value) => (value === undefined || value === null ? "–" : `${Math.round(100 * value)}%`);
  const anchor = (id) => `lane-${Turns.anchor(id)}`;

  const bands = (pieces, total, name, top, height) => (pieces ?? []).map(([start, end]) =>
    svg("rect", { class: name, x: percent(start / total), width: percent(Math.max(0, end - start) / total), y: top, height }));
  const crossings = (places, total) => (places ?? []).map((at) =>
    svg("line", { class: "jumped", x1: percent(at / total), x2: percent(at / total), y1: "0", y2: "100%" }));

  /** An arc above the lane's line (`side` -1) or below it, the higher the further it reaches. */
  function arc([turn, question, start, end, fate], total, side) {
    const [from, to] = [1000 * start / total, 1000 * end / total];
    const height = 7 + 12 * Math.sqrt(Math.abs(to - from) / 1000);
    return svg("path", {
      class: `arc ${fate === "instead" ? "instead" : `fate-${fate}`}`,
      d: `M${from.toFixed(1)} ${MIDDLE}Q${((from + to) / 2).toFixed(1)} ${(MIDDLE + side * height).toFixed(1)} ${to.toFixed(1)} ${MIDDLE}`,
      "data-turn": turn,
      "data-question": question,
    });
  }

  function mark([turn, at, shape, look], total) {
    const drawn = shape === "question" ? "question" : look || "line";
    const group = shape === "question" ? look : `fate-${look || "none"}`;
    return svg("use", { class: `${shape} ${group}`, href: `#mark-${drawn}`, x: percent(at / total), y: "50%", "data-turn": turn });
  }

  /** The drawing of a lane. */
  function drawing(lane) {
    const total = lane.tokens;
    const places = lane.marks?.map(([, at]) => at) ?? [];
    const line = places.length ? [svg("line", { class: "span", x1: percent(Math.min(...places) / total), x2: percent(Math.max(...places) / total), y1: "50%", y2: "50%" })] : [];
    return [
      ...bands(lane.filler, total, "filled", "25%", "50%"),
      ...crossings(lane.jumps, total),
      ...line,
      ...bands(lane.watched, total, "watching", "90%", "8%"),
      svg("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", width: "100%", height: "100%" },
        (lane.instead ?? []).map((each) => arc(each, total, 1)), (lane.arcs ?? []).map((each) => arc(each, total, -1))),
      ...(lane.marks ?? []).map((each) => mark(each, total)),
    ];
  }

  /** Two to five round numbers of tokens, starting at 0. */
  function ticks(total) {
    if (!total) return [];
    let step = 1;
    while (total / step >= 5) step *= [2, 2.5, 2][Math.round(3 * (Math.log10(step) % 1)) % 3];
    return Array.from({ length: Math.floor(total / step) + 1 }, (_, number) => number * step);
  }

  /** A row of a panel: a name or a button, a drawing, and a figure. */
  const row = (attributes, name, picture, value) => Turns.make("li", attributes, name,
    svg("svg", { class: "drawing", "aria-hidden": "true" }, picture), Turns.make("span", { class: "value" }, value));

  const told = ({ id, name, score: value, value: distance, status, grade }) => `${name ?? id}${name ? `, ${distance} tokens back` : ""}, ${value === undefined ? status || grade : score(value)}`;

  /** A name that may be broken after an underscore, if there is room for two lines. */
  const broken = (name) => name.split(/(?<=_)/).flatMap((part, place) => (place ? [Turns.make("wbr", {}), part] : [part]));

  function named(lane) {
    const dash = lane.name === undefined ? lane.id.lastIndexOf("-") : -1;
    const [stem, number] = lane.name !== undefined ? [lane.name, ""] : dash > 0 ? [lane.id.slice(0, dash), lane.id.slice(dash)] : [lane.id, ""];
    return Turns.make("button", { type: "button", class: "name", tabindex: "-1", "aria-expanded": "false", "aria-label": told(lane) },
      Turns.make("span", { class: `sign ${lane.grade}` }, SIGNS[lane.grade]), Turns.make("span", { class: "stem" }, broken(stem)), Turns.make("span", {}, number));
  }

  /** A lane of a panel. It opens to explain its test. */
  class Lane {
    constructor(data, panel) {
      Object.assign(this, { data, panel });
      this.element = row({ class: `lane ${data.grade}${data.name === undefined ? "" : " fact"}`, id: anchor(data.id) }, named(data), drawing(data), data.value ?? score(data.score));
      this.button = this.element.querySelector("button");
    }

    /** Redraw it with new data. */
    redraw(data) {
      this.data = data;
      this.element.className = `lane ${data.grade}`;
      this.element.querySelector(".drawing").replaceChildren(...drawing(data));
      this.element.querySelector(".value").textContent = score(data.score);
      this.button.setAttribute("aria-label", told(data));
      const sign = this.element.querySelector(".sign");
      [sign.textContent, sign.className] = [SIGNS[data.grade], `sign ${data.grade}`];
    }
  }

  /** A kind of test or fact: its needles, the number of right ones, and its lanes, which are drawn when it is opened. With many facts, it
   * first shows a few from all distances. */
  class Kind {
    constructor(name, lanes, panel) {
      Object.assign(this, { name, all: lanes, panel, drawn: 0, sampled: panel.data.facts === true && lanes.length > 1.5 * FEW });
      const button = Turns.make("button", { type: "button", class: "name", tabindex: "-1", "aria-expanded": "false" },
        Turns.make("span", { class: "stem" }, name), Turns.make("span", {}, ` (${Turns.number(lanes.length)})`));
      this.element = row({ class: "kind" }, button, [], "");
      this.button = button;
      this.more = Turns.make("li", { class: "more-lanes" }, Turns.make("button", { type: "button" }, "Show more"));
      this.more.firstChild.addEventListener("click", () => (this.sampled ? this.showAll() : this.draw(BATCH)));
      this.redraw();
    }

    /** Redraw its needles and its number of right tests. */
    redraw() {
      const needles = new Map();
      for (const { marks, tokens } of this.all) for (const each of marks ?? []) if (each[2] === "needle" && each[3]) needles.set(each[0], mark(each, tokens));
      this.element.querySelector(".drawing").replaceChildren(...needles.values());
      const right = this.all.filter(({ grade }) => grade === "full").length;
      this.element.querySelector(".value").textContent = this.all.every(({ grade }) => grade === "none") ? "–" : `${right}/${this.all.length}`;
    }

    get open() {
      return this.button.getAttribute("aria-expanded") === "true";
    }

    toggle() {
      const open = !this.open;
      this.button.setAttribute("aria-expanded", String(open));
      if (open && !this.drawn) this.draw(BATCH);
      this.show();
    }

    showAll() {
      this.sampled = false;
      this.show();
    }

    /** Show the drawn lanes or a sample of them, if it is open. */
    show() {
      const step = (this.lanes.length - 1) / (FEW - 1);
      const few = new Set(Array.from({ length: FEW }, (_, number) => Math.round(number * step)));
      this.lanes.forEach((lane, at) => { lane.element.hidden = !this.open || (this.sampled && !few.has(at)); });
      this.more.hidden = !this.open || (!this.sampled && this.drawn >= this.all.length);
      const left = Turns.number(Math.min(BATCH, this.all.length - this.drawn));
      this.more.firstChild.textContent = this.sampled ? `Show all ${Turns.number(this.all.length)}` : `Show ${left} more of ${Turns.number(this.all.length)}`;
    }

    lanes = [];

    draw(count) {
      const added = this.all.slice(this.drawn, this.drawn + count).map((data) => this.panel.lane(data));
      (this.lanes.at(-1)?.element ?? this.element).after(...added.map(({ element }) => element), this.more);
      this.lanes.push(...added);
      this.drawn += added.length;
      this.show();
    }
  }

  /** The lanes of a conversation, or of conversations with one test each. */
  class Panel {
    #lanes = new Map(); // by test
    #heads = new Map(); // by the element of a row

    constructor(data, several) {
      this.data = data;
      this.list = Turns.make("ol", { class: "lanes" });
      this.ruler = svg("svg", { class: "ruler", "aria-hidden": "true" });
      const titled = several ? [Turns.make("h3", {}, data.conversation ?? "Conversations with one test")] : [];
      this.element = Turns.make("div", { class: "panel" }, ...titled, Turns.make("div", { class: "plot" }, this.ruler, this.list));
      this.measure();
      const named = (name, pieces) => row({ class: "bands" }, Turns.make("span", { class: "name" }, name), bands(pieces, data.tokens, name === "history" ? "told" : "filled", "20%", "60%"), "");
      if (data.told?.length) this.list.append(named("history", data.told));
      if (data.filler?.length) this.list.append(named("filler", data.filler));
      if (data.lanes.length <= MOST_LANES && !data.facts) this.list.append(...data.lanes.map((each) => this.lane(each).element));
      else this.#fold(data.lanes);
    }

    /** Draw the lines across all lanes: the ticks of the ruler, and jumps of the clock. */
    measure() {
      const { tokens, jumps } = this.data;
      const lines = ticks(tokens).flatMap((at) => [
        svg("line", { class: "grid", x1: percent(at / tokens), x2: percent(at / tokens), y1: "18", y2: "100%" }),
        svg("text", { x: percent(at / tokens), y: "13" }, at >= 1e6 ? `${at / 1e6}M` : at >= 1000 ? `${at / 1000}k` : String(at))]);
      this.playhead = svg("line", { class: "playhead", y1: "16", y2: "100%", visibility: "hidden" });
      this.ruler.replaceChildren(...lines, ...crossings(jumps, tokens), this.playhead);
    }

    #fold(lanes) {
      const kinds = new Map();
      for (const lane of lanes) kinds.set(lane.group, [...(kinds.get(lane.group) ?? []), lane]);
      this.kinds = [...kinds].map(([name, group]) => new Kind(name, group, this));
      for (const kind of this.kinds) this.#heads.set(kind.element, kind);
      this.list.append(...this.kinds.map(({ element }) => element));
      if (this.data.facts) this.kinds[0].toggle();
    }

    /** The lane of a test, created if necessary. */
    lane(data) {
      const lane = this.#lanes.get(data.id) ?? new Lane(data, this);
      this.#lanes.set(data.id, lane);
      this.#heads.set(lane.element, lane);
      return lane;
    }

    /** The lane of a test, by its anchor. Opens its kind as far as necessary. */
    find(id) {
      for (const kind of this.kinds ?? []) {
        const at = kind.all.findIndex((lane) => anchor(lane.id) === id || (lane.test !== undefined && anchor(lane.test) === id));
        if (at < 0) continue;
        id = anchor(kind.all[at].id);
        if (!kind.open) kind.toggle();
        if (kind.sampled) kind.showAll();
        if (kind.drawn <= at) kind.draw(at + 1 - kind.drawn);
      }
      return [...this.#lanes.values()].find(({ element }) => element.id === id);
    }

    /** Redraw a test's lane with new data. The axis grows with the conversation. */
    update(data) {
      const all = this.data.lanes;
      const at = all.findIndex(({ id }) => id === data.id);
      if (at < 0) return;
      all[at] = data;
      if (this.data.conversation !== null) {
        const outgrown = data.tokens > this.data.tokens;
        if (outgrown) this.data.tokens = Math.ceil(1.5 * data.tokens);
        for (const lane of outgrown ? all : [data]) lane.tokens = this.data.tokens;
        if (outgrown) {
          this.measure();
          for (const lane of all) this.#lanes.get(lane.id)?.redraw(lane);
        }
      }
      this.#lanes.get(data.id)?.redraw(data);
      const kind = this.kinds?.find(({ name }) => name === data.group);
      if (!kind) return;
      kind.all[kind.all.findIndex(({ id }) => id === data.id)] = data;
      kind.redraw();
    }

    /** The lane or kind of a row; undefined for bands. */
    at(element) {
      return this.#heads.get(element);
    }

    /** Point at a token of a conversation, or at nothing. */
    point(at) {
      this.playhead.setAttribute("visibility", at === null || !this.data.tokens ? "hidden" : "visible");
      if (at === null || !this.data.tokens) return;
      for (const name of ["x1", "x2"]) this.playhead.setAttribute(name, percent(at / this.data.tokens));
    }
  }

  return { Panel, score };
})();
