"use strict";
// The table of tests: rows that open, links to a test, the next test that failed, replies as rendered Markdown.

{
  const table = document.querySelector("table.tests");
  const place = document.getElementById("test-place");
  const openerOf = (test) => test.querySelector("details.opener");
  const conversationOf = (test) => Conversations.get(test.dataset.conversation);
  const raw = new WeakMap(); // the original content of replies shown as rendered Markdown
  const packed = document.querySelector("#folded script"); // the folded contents of rows, if they are large (folded.py)
  let folded = null; // the same, by row, once read
  let current = null;

  /** A row's folded contents as nodes. */
  const grown = (node) => (typeof node === "string" ? node : Turns.make(node[0], node[1], node.slice(2).map(grown)));

  /** Add a row's folded contents, once they have been read. */
  function unfold(test) {
    if (!folded?.has(test)) return;
    test.append(...folded.get(test).map(grown));
    folded.delete(test);
  }

  const reading = packed && Conversations.read(packed).then((rows) => {
    const tests = table.querySelectorAll("tbody.test");
    folded = new Map(rows.map((row, i) => [tests[i], row]));
    document.getElementById("no-rows").hidden = true;
  });

  /** Show the replies of an open test as plain text or rendered. */
  async function showReplies(test) {
    if (Turns.choice.rendered) await conversationOf(test)?.open();
    for (const reply of test.querySelectorAll("dd.reply[data-turn]")) {
      const turn = conversationOf(test)?.turn(Number(reply.dataset.turn));
      if (Turns.choice.rendered === raw.has(reply) || (Turns.choice.rendered && !turn)) continue;
      if (Turns.choice.rendered) {
        raw.set(reply, [...reply.childNodes]);
        reply.replaceChildren(...Turns.reply(turn, null, conversationOf(test).where));
      } else {
        reply.replaceChildren(...raw.get(reply));
        raw.delete(reply);
      }
    }
  }

  async function fill(whole) {
    const conversation = conversationOf(whole.closest(".test"));
    await conversation.open();
    const items = whole.dataset.turns.split(" ").map((number) => {
      const item = Turns.item(conversation, conversation.turn(Number(number)), null, conversation.where);
      item.removeAttribute("id");
      return item;
    });
    whole.querySelector("ol")?.remove();
    whole.append(Turns.make("ol", { class: "said" }, items));
  }

  function open(test) {
    openerOf(test).open = true;
    if (Turns.choice.rendered) showReplies(test);
  }

  /** Open a test and go to it. */
  function goTo(test) {
    current = test;
    Views.show(test);
    if (!test.checkVisibility()) document.getElementById("only-all").checked = true;
    test.hidden = false;
    open(test);
    openerOf(test).querySelector("summary").focus({ preventScroll: true });
    Views.keepInView(test);
  }

  function follow(hash) {
    const target = hash.startsWith("#test-") ? document.getElementById(hash.slice(1)) : null;
    if (target?.matches(".test")) goTo(target);
  }

  /** Go to the failed test after or before the current or focused one. */
  function step(by) {
    Views.show(table);
    const failed = [...table.querySelectorAll("tbody.test:not(.full)")].filter((test) => test.checkVisibility());
    if (!failed.length) {
      place.textContent = "No test failed.";
      return;
    }
    const from = document.activeElement?.closest("tbody.test") ?? current;
    const after = failed.findIndex((test) => from && (from.compareDocumentPosition(test) & Node.DOCUMENT_POSITION_FOLLOWING));
    const here = failed.indexOf(from);
    const next = !from ? (by > 0 ? 0 : -1) : by > 0 ? after : here >= 0 ? here - 1 : after - 1;
    const number = next < 0 ? (by > 0 ? 0 : failed.length - 1) : next;
    goTo(failed[number]);
    history.replaceState(null, "", `#${failed[number].id}`);
    place.textContent = `${number + 1} of ${failed.length}`;
  }

  /** Show only the tests of a kind. */
  document.getElementById("test-kind")?.addEventListener("change", ({ target }) => {
    const tests = [...table.querySelectorAll("tbody.test")];
    for (const test of tests) test.hidden = Boolean(target.value) && !(test.dataset.tags ?? "").split("\n").includes(target.value);
    place.textContent = target.value ? `${Turns.number(tests.filter(({ hidden }) => !hidden).length)} of ${Turns.number(tests.length)} tests` : "";
  });
  table.addEventListener("toggle", async ({ target }) => {
    if (target.matches("details.opener") && target.open) {
      const test = target.closest(".test");
      await reading;
      unfold(test);
      showReplies(test);
    }
    if (target.matches("details.whole") && target.open && !target.querySelector("ol")) fill(target);
  }, true);
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    const test = row?.parentElement;
    if (!test?.matches(".test") || row.matches(".more") || event.target.closest("a, summary") || String(getSelection())) return;
    openerOf(test).open = !openerOf(test).open;
  });
  document.getElementById("test-after").addEventListener("click", () => step(1));
  document.getElementById("test-before").addEventListener("click", () => step(-1));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox], [type=radio], [type=range]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !document.getElementById("test-keys").checked) return;
    if (event.key === "n") step(1);
    if (event.key === "p") step(-1);
  });
  document.addEventListener("rendered", () => {
    for (const opener of table.querySelectorAll("details.opener[open]")) showReplies(opener.closest(".test"));
    for (const whole of table.querySelectorAll("details.whole[open]")) fill(whole);
    for (const whole of table.querySelectorAll("details.whole:not([open]) > ol")) whole.remove();
  });
  addEventListener("beforeprint", () => { for (const test of table.querySelectorAll("tbody.test:not(.full)")) unfold(test); });
  addEventListener("hashchange", () => follow(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#test-']");
    if (link && link.getAttribute("href") === location.hash) follow(location.hash);
  });
  document.getElementById("tests-tools").hidden = false;
  follow(location.hash);

  // ---- download

  // The same patterns as in simulator/results/analysis/spreadsheet.py.
  const SKIPPED = String.raw`[\x00-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff";]*`;
  const FORMULA = String.raw`[=+\-@＝＋－＠]`;
  const LEADING = new RegExp(String.raw`^(?:[\t\r\n]|${SKIPPED}${FORMULA})`);
  const INNER = new RegExp(String.raw`([\t-\r\x85\u2028\u2029;]${SKIPPED})(${FORMULA}?)`, "g");
  const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

  /** A text with an apostrophe before anything that a spreadsheet would read as a formula. */
  const neutralize = (text) =>
    NUMBER.test(text)
      ? text
      : (LEADING.test(text) ? `'${text}` : text).replace(INNER, (found, start, formula) => (formula ? `${start}'${formula}` : found));

  /** A cell of a CSV file. */
  const cell = (text) => `"${neutralize(text).replaceAll('"', '""')}"`;

  document.getElementById("tests-csv").addEventListener("click", () => {
    const said = (row, kind) => row.querySelector(kind)?.textContent.trim().replace(/\s+/g, " ") ?? "";
    const rows = [...document.querySelectorAll(".tests > .test > tr:first-child")].map((row) =>
      [said(row, "summary"), said(row, ".badge").replace(/^[●◐○–]/, ""), said(row, ".reason"), said(row, ".far"), said(row, ".cause")]);
    const text = [["test", "score", "reason", "distance", "cause"], ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" })), download: "tests.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
