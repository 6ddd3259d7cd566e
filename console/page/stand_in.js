// What only a stand-in can do: the live request log, faults, virtual time, verdicts.

import { BASE, ApiError, address, ask, el, errorPlace, every, field, form, moment, plural, shownAt, statusLine, table } from "./elements.js";

const LOOK_MS = 1000;
const MAX_SHOWN = 200;
/** The names that the server knows: of requests, responses, effects and their words. */
const WORDS = await ask("GET", "/api/words").catch(() => ({ codes: [], responses: [], effects: {}, kinds: {} }));

/** The text with a mark for each control character: they part the properties of a message. */
const visible = (text) => String(text).replace(/[\u0000-\u001f]/g, "\u00b7");

function requestFields(request) {
  const rows = [["fields", request.fields], ["reply_fields", request.reply_fields]].flatMap(([name, given]) => [
    el("dt", {}, name),
    el("dd", {}, Object.entries(given ?? {}).map(([key, value]) => `${key}=${visible(value)}`).join(", ") || "none"),
  ]);
  if (request.text) rows.push(el("dt", {}, "text"), el("dd", {}, request.text.slice(0, 1000)));
  return el("details", {}, el("summary", {}, "show"), el("dl", {}, rows));
}

export function requests() {
  const status = statusLine(), error = errorPlace();
  const entries = new Map();
  let stream = null, words = {}, missed = 0, drawn = false;
  const list = table("Requests, newest first", [
    ["id", (request) => String(request.id), "short"],
    ["code", (request) => request.code, "short"],
    ["topic", (request) => request.topic ?? ""],
    ["queue_id", (request) => String(request.queue_id ?? ""), "number"],
    ["group", (request) => request.group ?? ""],
    ["client_id", (request) => request.client_id ?? ""],
    ["response", (request) => request.response ?? (request.oneway ? "one-way" : "waits"), "short"],
    ["remark", (request) => request.remark ?? ""],
    ["fields", requestFields, undefined, (request) => `${request.response}`],
  ], (request) => String(request.id));
  const draw = () => {
    drawn = false;
    for (const id of [...entries.keys()].slice(0, Math.max(0, entries.size - MAX_SHOWN))) entries.delete(id);
    list.update([...entries.values()].reverse());
    const lost = missed ? `; ${missed} came too fast to be shown` : "";
    status.say(entries.size ? `the newest ${plural(entries.size, "request")}, as they arrive${lost}` : "No request yet; those that match appear here.");
  };
  const soon = () => {
    if (!drawn) setTimeout(draw, 200);
    drawn = true;
  };
  const take = (request) => { entries.set(request.id, request); soon(); };
  const close = () => { stream?.close(); stream = null; };

  /** Follows the log from now on, then adds what it holds already, so that nothing falls between. */
  const follow = async () => {
    close();
    entries.clear();
    await ask("GET", address("/api/requests", { ...words, limit: 1 }));
    stream = new EventSource(BASE + address("/api/requests/stream", words));
    stream.addEventListener("message", (event) => { error.clear(); take(JSON.parse(event.data)); });
    stream.addEventListener("missed", (event) => { missed += Number(event.data); soon(); });
    stream.addEventListener("error", ({ target }) => error.show(new ApiError(target.readyState === EventSource.CLOSED
      ? "the server refuses a stream of requests, perhaps because too many are open: press Search to try again"
      : "the stream of requests is broken; it is tried again")));
    stream.addEventListener("open", () => error.clear());
    const held = await ask("GET", address("/api/requests", { ...words, last: MAX_SHOWN }));
    const older = new Map(held.map((request) => [request.id, request]));
    const newer = [...entries.values()];
    entries.clear();
    for (const request of [...older.values(), ...newer]) entries.set(request.id, request);
    draw();
  };
  const whole = form([
    field("code", { suggestions: WORDS.codes }), field("topic"), field("group"), field("client_id"),
    field("response", { suggestions: WORDS.responses }),
  ], "Search", async (given) => { words = given; await follow(); });
  return {
    nodes: [whole, status, error, list],
    start: () => { whole.attempt(follow); return close; },
  };
}

const HINTS = {
  code: "SEND_MESSAGE_V2", response: "SYSTEM_BUSY", times: "1; null: always", after: "0", probability: "1", seconds: "0.5",
  brokers: '["broker-a"]', fields: '{"name": "value"}', words: '{"name": value}, for anything else',
};
/** The rule of the fields that are filled: numbers, null and lists as JSON, everything else as text. */
export function ruleOf({ effect, words, ...given }) {
  const rule = { effect };
  for (const [name, value] of Object.entries(given)) {
    if (value === "" || value === false) continue;
    rule[name] = WORDS.kinds[name] === "text" || value === true ? value : jsonOr(value);
  }
  if (!words) return rule;
  const more = jsonOr(words);
  if (more === null || typeof more !== "object" || Array.isArray(more)) throw new ApiError("words must be a JSON object", ['{"name": value}']);
  return { ...rule, ...more };
}

function jsonOr(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function ruleWords(rule) {
  const { id, effect, hits, hit_count, may_stay_unused, ...words } = rule;
  return Object.entries(words).filter(([name, value]) => name === "times" || (value !== null && value !== false && !(name === "after" && value === 0)))
    .map(([name, value]) => `${name}=${name === "times" && value === null ? "always" : typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
}

function ruleHits(rule) {
  const hits = rule.hits ?? [];
  if (!hits.length) return String(rule.hit_count ?? 0);
  const lines = hits.slice(-20).map((hit) => el("li", {}, [hit.code, hit.topic, hit.group, hit.client_id, hit.response].filter(Boolean).join(" ")));
  return el("details", {}, el("summary", {}, String(rule.hit_count)), el("ul", {}, lines));
}

export function faults() {
  const status = statusLine(), error = errorPlace();
  const boxes = [field("effect", { kind: Object.keys(WORDS.effects) })];
  for (const name of new Set(Object.values(WORDS.effects).flat())) {
    const suggestions = { code: WORDS.codes, response: WORDS.responses }[name];
    boxes.push(field(name, { kind: WORDS.kinds[name] === "bool" ? "check" : "text", hint: HINTS[name], suggestions, keeps: name === "body" }));
  }
  boxes.push(field("words", { kind: "area", hint: HINTS.words }));
  const effect = boxes[0].control;
  const choose = () => boxes.slice(1, -1).forEach((box) => { box.hidden = !WORDS.effects[effect.value]?.includes(box.control.name); });
  effect.addEventListener("change", choose);
  choose();

  const remove = (rule) => shownAt(error, async () => {
    await ask("DELETE", `/api/faults/${rule.id}`);
    await look();
    effect.focus();
  })();
  const list = table("Rules, in the order they are tried", [
    ["id", (rule) => String(rule.id), "short"],
    ["effect", (rule) => rule.effect, "short"],
    ["words", ruleWords],
    ["hits", ruleHits, undefined, (rule) => String(rule.hit_count)],
    ["", (rule) => el("button", { type: "button", class: "small", "aria-description": `rule ${rule.id}`, onclick: () => remove(rule) }, "Remove"), undefined, () => "remove"],
  ], (rule) => String(rule.id));
  const look = shownAt(error, async (isLast) => {
    const found = await ask("GET", "/api/faults");
    if (!isLast()) return;
    list.update(found);
    const hits = found.reduce((sum, rule) => sum + (rule.hit_count ?? 0), 0);
    status.say(found.length ? `${plural(found.length, "rule")}, ${plural(hits, "hit")}` : "No rule: the broker behaves.");
  });
  const add = form(boxes, "Add", async (given) => {
    await ask("POST", "/api/faults", ruleOf(given));
    await look();
  });
  return { nodes: [add, status, error, list], start: () => every(LOOK_MS, look) };
}

export function clock() {
  const error = errorPlace(), told = statusLine();
  const now = el("p", { class: "clock" }), kind = el("p");
  const draw = (value) => {
    for (const button of whole.querySelectorAll("button")) button.disabled = !value.virtual;
    now.textContent = moment(value.now_ms);
    kind.textContent = value.virtual
      ? "virtual: it stands still until somebody lets it pass"
      : "not virtual: it is the time of the machine; start the server with --virtual-time to move it";
  };
  const look = shownAt(error, async () => draw(await ask("GET", "/api/clock")));
  const pass = async (words) => {
    told.say("");
    const before = await ask("GET", "/api/clock");
    const after = await ask("POST", "/api/clock/advance", words);
    draw(after);
    told.say(`moved by ${(after.now_ms - before.now_ms) / 1000} s, to ${moment(after.now_ms)}`);
  };
  const next = el("button", { type: "button", class: "second", onclick: () => whole.attempt(() => pass({ to_next: true })) }, "To the next event");
  const whole = form([field("by", { hint: "2h30m, or seconds" })], "Advance", ({ by }) => {
    const seconds = Number(by);
    return pass({ by: by !== "" && !Number.isNaN(seconds) ? seconds : by });
  });
  whole.querySelector(".fields").append(next);
  return { nodes: [now, kind, error, whole, told], start: () => every(LOOK_MS, look) };
}

const FINDINGS = ["lost", "unread", "duplicated", "out_of_order", "offset_moved_back"];

export function ledger() {
  const told = statusLine();
  const place = el("div");
  const search = async (given) => {
    place.replaceChildren();
    told.say("");
    const answer = await ask("GET", address("/api/ledger", given));
    const verdicts = Array.isArray(answer) ? answer : [{ ...given, ...answer }];
    const bad = verdicts.filter((one) => FINDINGS.some((name) => one[name]?.length)).length;
    told.say(verdicts.length === 0 ? "Nothing has been read yet." : bad ? `${plural(bad, "verdict")} with findings` : `clean${answer.more ?? ""}`);
    place.append(...verdicts.map(verdictOf));
  };
  const whole = form([field("topic"), field("group")], "Search", search);
  return { nodes: [whole, told, place], start: () => { whole.attempt(() => search(whole.values())); } };
}

function verdictOf(verdict) {
  const rows = FINDINGS.filter((name) => Array.isArray(verdict[name])).map((name) => ({ name, findings: verdict[name], count: verdict.counts?.[name] ?? verdict[name].length }));
  const list = table("Findings", [
    ["finding", (row) => row.name],
    ["count", (row) => String(row.count), "number"],
    ["messages", (row) => row.findings.length === 0 ? "" : el("details", {}, el("summary", {}, "show"),
      el("ul", {}, row.findings.slice(0, 100).map(findingOf)))],
  ], (row) => row.name);
  list.update(rows);
  const forgotten = verdict.forgotten ? [el("p", { class: "note" }, `${verdict.forgotten} facts were too old to be kept: their messages are not judged`)] : [];
  return el("section", {}, el("h3", {}, [verdict.topic, verdict.group].filter(Boolean).join(" · ") || "everything"), list, forgotten);
}

/** A message, and the requests that prove what became of it. */
function findingOf({ message_id, requests: proof = [], ...words }) {
  const known = Object.entries(words).filter(([, value]) => value !== null).map(([name, value]) => ` ${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  const lines = proof.map((one) => el("li", {}, ["request", one.id, one.code, one.client_id, one.response].filter(Boolean).join(" ")));
  return el("li", {}, el("code", {}, message_id ?? "no message"), known.join(","), lines.length ? el("ul", {}, lines) : []);
}
