// A memory over HTTP: `node memory.js [PORT]`. It finds the turns that share most words with a query.
"use strict";
const http = require("node:http");

const memories = new Map(); // the turns of each conversation

const words = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || []);
const shared = (some, others) => [...some].filter((word) => others.has(word)).length;

function answer({ call, conversation, turns, query, k, state }) {
  if (!memories.has(conversation)) memories.set(conversation, []);
  const kept = memories.get(conversation);
  switch (call) {
    case "hello":
      return { protocol: 1, can: ["save", "load", "close"], read_only_search: true }; // a search changes nothing
    case "add": {
      const made = turns.map(({ turn, text, reply }) => ({ id: turn, turns: [turn], text: reply ? `user: ${text}\nassistant: ${reply}` : text }));
      kept.push(...made);
      return { items: made };
    }
    case "search": {
      const wanted = words(query);
      const scored = kept.map((item) => ({ ...item, score: shared(words(item.text), wanted) }));
      return { items: scored.sort((one, other) => other.score - one.score).slice(0, k) };
    }
    case "save":
      return { state: kept };
    case "load":
      memories.set(conversation, state);
      return {};
    case "close":
      memories.delete(conversation);
      return {};
    default:
      return { error: `there is no call ${call}` };
  }
}

http
  .createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer(JSON.parse(Buffer.concat(chunks)))));
    });
  })
  .listen(Number(process.argv[2] ?? 8766), "127.0.0.1", function () {
    console.log(this.address().port);
  });
