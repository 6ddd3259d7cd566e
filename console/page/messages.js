// Messages by key, id, queue or time; bodies as text, JSON or hex.

import { address, ask, el, field, form, moment, plural, statusLine, table } from "./elements.js";

const MAX_BYTES = 4096;
const BYTES_A_LINE = 8;

export function bytesOf(message) {
  return Uint8Array.from(atob(message.body_base64), (letter) => letter.charCodeAt(0));
}

/** `0000  68 65 6c 6c 6f           hello` for each eight bytes. */
export function hex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += BYTES_A_LINE) {
    const part = [...bytes.slice(at, at + BYTES_A_LINE)];
    const digits = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(BYTES_A_LINE * 3);
    const letters = part.map((byte) => byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·").join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits} ${letters}`);
  }
  return lines.join("\n");
}

const JSON_TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

/** JSON on indented lines, each number as it is written: a parsed one has 53 bits. Null for text that is no JSON. */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let lines = "", depth = 0, before = "";
  const newLine = () => { lines += `\n${"  ".repeat(depth)}`; };
  for (const [token] of text.matchAll(JSON_TOKENS)) {
    if (token === "}" || token === "]") {
      depth--;
      if (before !== "{" && before !== "[") newLine();
    } else if (before === "{" || before === "[" || before === ",") newLine();
    lines += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth++;
    before = token;
  }
  return lines;
}

/** A body as the user wants it: the words to show, and a note where it cannot be shown so. */
export function shownBody(message, kind) {
  if (message.error) return ["", message.error];
  const bytes = bytesOf(message);
  const more = bytes.length > MAX_BYTES ? `the first ${MAX_BYTES} of ${bytes.length} bytes` : "";
  const part = bytes.slice(0, MAX_BYTES);
  if (kind === "hex") return [hex(part), more];
  if (message.text === null) return [hex(part), more || "no text in UTF-8: shown as hex"];
  if (kind === "JSON") {
    const lines = indented(message.text);
    if (lines === null) return [message.text.slice(0, MAX_BYTES), more || "no JSON: shown as text"];
    return [lines.slice(0, MAX_BYTES), more || (lines.length > MAX_BYTES ? `the first ${MAX_BYTES} of ${lines.length} letters` : "")];
  }
  return [message.text.slice(0, MAX_BYTES), more];
}

/** Milliseconds of `2026-01-31 12:00`, in the browser's time zone; anything else is left as it is. */
export function asMilliseconds(text) {
  if (text === "" || /^\d+$/.test(text)) return text;
  const time = new Date(text.replace(" ", "T")).getTime();
  return Number.isNaN(time) ? text : String(time);
}

function properties(message) {
  const rows = Object.entries(message.properties).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  return el("details", {}, el("summary", {}, String(rows.length)), el("dl", {}, rows.flat()));
}

export function messages() {
  const status = statusLine();
  let kind = "text";
  let found = [];
  const body = (message) => {
    const [text, note] = shownBody(message, kind);
    return el("div", {}, note ? el("p", { class: "note" }, note) : [], el("pre", {}, text));
  };
  const list = table("Messages", [
    ["message_id", (message) => message.message_id ?? "none"],
    ["queue_id", (message) => String(message.queue_id), "number"],
    ["queue_offset", (message) => String(message.queue_offset), "number"],
    ["store_timestamp", (message) => moment(message.store_timestamp), "time"],
    ["tags", (message) => message.tags ?? ""],
    ["keys", (message) => message.keys.join(" ")],
    ["body", body, "body", () => kind],
    ["properties", properties, undefined, () => "same"],
  ], (message) => `${message.topic} ${message.queue_id} ${message.queue_offset} ${message.message_id} ${message.store_timestamp}`);

  const whole = form([
    field("topic"),
    field("key", { hint: "key or message_id" }),
    field("queue", { kind: "number", hint: "all" }),
    field("offset", { kind: "number", hint: "0" }),
    field("from_ms", { hint: "2026-01-31 12:00" }),
    field("to_ms", { hint: "or milliseconds" }),
    field("limit", { kind: "number", hint: "100" }),
  ], "Search", async ({ topic, from_ms, to_ms, ...given }) => {
    status.say("");
    list.update(found = []);
    const words = { ...given, from_ms: asMilliseconds(from_ms), to_ms: asMilliseconds(to_ms) };
    found = await ask("GET", address(`/api/topics/${encodeURIComponent(topic)}/messages`, words));
    list.update(found);
    status.say(found.length ? plural(found.length, "message") + found.more : "No message is found.");
  });
  const choices = ["text", "JSON", "hex"].map((name) => {
    const input = el("input", { type: "radio", name: "kind", id: `kind-${name}`, checked: name === kind, onchange: () => {
      kind = name;
      list.update(found);
    } });
    return el("span", { class: "choice" }, input, el("label", { for: `kind-${name}` }, name));
  });
  return {
    nodes: [whole, el("fieldset", {}, el("legend", {}, "body as"), choices), status, list],
    given: (values) => { whole.set(values); whole.requestSubmit(); },
  };
}
