// Topics with their rates; groups with members, assignment, lag, and where a new group would start.

import { address, ask, el, errorPlace, every, field, form, plural, shownAt, statusLine, table } from "./elements.js";

const LOOK_MS = 1000;
const ASK_LOOKS = 3; // members are asked what they hold at every third look
const MAX_QUEUES = 16;

/** Messages per second between two looks; null before the second one. */
export function rate(before, now) {
  if (!before || now.at <= before.at) return null;
  return Math.max(0, now.count - before.count) / ((now.at - before.at) / 1000);
}

const shownRate = (value) => value === null || value === undefined ? "…" : value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1);

function counted(found, word, filter, none) {
  if (found.length) return plural(found.length, word) + found.more;
  return filter.control.value ? `No ${word} has that in its name.` : none;
}

export function topics(show) {
  const status = statusLine(), error = errorPlace();
  const seen = new Map();
  const filter = field("filter", { hint: "part of a name" }), all = field("all", { kind: "check" });
  all.append(el("span", { class: "note" }, "with those of the broker itself"));
  const list = table("Topics", [
    ["name", (topic) => topic.name],
    ["queues", (topic) => String(topic.queues), "number"],
    ["messages", (topic) => String(topic.messages), "number"],
    ["per second", (topic) => shownRate(seen.get(topic.name)?.rate), "number"],
    ["offsets of each queue", offsets],
    ["", (topic) => el("button", {
      type: "button", class: "small", "aria-description": `messages of ${topic.name}`,
      onclick: () => show("Messages", { topic: topic.name }),
    }, "Look"), undefined, () => "look"],
  ], (topic) => topic.name);

  const look = shownAt(error, async (isLast) => {
    const found = await ask("GET", address("/api/topics", { filter: filter.control.value, all: all.control.checked ? "true" : "" }));
    if (!isLast()) return;
    const at = performance.now();
    for (const topic of found) {
      const now = { at, count: topic.queue_list.reduce((sum, queue) => sum + queue.max_offset, 0) };
      seen.set(topic.name, { ...now, rate: rate(seen.get(topic.name), now) });
    }
    list.update(found);
    status.say(counted(found, "topic", filter, "There is no topic yet: add one, or let a client make it."));
  });
  all.control.addEventListener("change", look);
  filter.control.addEventListener("input", look);
  const add = form([field("name"), field("queues", { kind: "number", hint: "4" })], "Add", async ({ name, queues }) => {
    await ask("POST", "/api/topics", queues === "" ? { name } : { name, queues: wholeOr(queues) });
    await look();
  });
  const sent = statusLine();
  const send = form([field("topic"), field("text", { keeps: true }), field("tags"), field("keys")], "Send", async ({ topic, ...message }) => {
    sent.say("");
    const given = Object.fromEntries(Object.entries(message).filter(([name, value]) => value || name === "text"));
    const stored = await ask("POST", `/api/topics/${encodeURIComponent(topic)}/messages`, given);
    sent.say(`stored in queue ${stored.queue_id} at ${stored.queue_offset}: ${stored.message_id}`);
    await look();
  });
  return {
    nodes: [el("h3", {}, "Make one"), add, el("h3", {}, "Send a message"), send, sent,
      el("h3", {}, "All of them"), filter, all, status, error, list],
    start: () => every(LOOK_MS, look),
  };
}

function offsets(topic) {
  if (topic.queue_list.length > MAX_QUEUES) return "";
  return topic.queue_list.map((queue) => `${queue.queue_id}: ${queue.min_offset}–${queue.max_offset}`).join(", ");
}

/** A whole number, or the text itself: the API says then what is wrong with it. */
export const wholeOr = (text) => /^\d+$/.test(text) ? Number(text) : text;

export function groups() {
  const status = statusLine(), error = errorPlace();
  const filter = field("filter", { hint: "part of a name" });
  let chosen = null, looks = 0;
  const list = table("Groups", [
    ["name", (group) => group.name],
    ["mode", (group) => group.mode ?? "no member"],
    ["members", (group) => String(group.members.length), "number"],
    ["lag", (group) => String(group.lag), "number"],
    ["subscriptions", (group) => Object.entries(group.subscriptions).map(([topic, words]) => `${topic} ${words}`).join(", ")],
    ["", (group) => el("button", {
      type: "button", class: "small", "aria-description": `members and queues of ${group.name}`,
      onclick: () => { chosen = group.name; looks = 0; look(); },
    }, "Look"), undefined, () => "look"],
  ], (group) => group.name);

  const heading = el("h3", { hidden: true });
  const members = table("Members", [
    ["client_id", (member) => member.client_id],
    ["address", (member) => member.address],
    ["language", (member) => member.language],
    ["version", (member) => member.version],
  ], (member) => member.client_id, { seen: true });
  const queues = table("Queues", [
    ["topic", (queue) => queue.topic],
    ["queue_id", (queue) => String(queue.queue_id), "number"],
    ["held_by", (queue) => queue.held_by.join(", ") || "not known"],
    ["offset", (queue) => queue.offset === null ? "none" : String(queue.offset), "number"],
    ["max_offset", (queue) => String(queue.max_offset), "number"],
    ["lag", (queue) => String(queue.lag), "number"],
  ], (queue) => `${queue.topic} ${queue.queue_id}`, { seen: true });

  const look = shownAt(error, async (isLast) => {
    const found = await ask("GET", address("/api/groups", { filter: filter.control.value }));
    if (!isLast()) return;
    list.update(found);
    status.say(counted(found, "group", filter, "No group has read anything yet."));
    const group = found.find((one) => one.name === chosen) ?? (found.length === 1 ? found[0] : undefined);
    heading.hidden = !group;
    heading.textContent = group ? `${group.name}: ${plural(group.members.length, "member")}, lag ${group.lag}` : "";
    members.update(group ? group.members : []);
    if (!group) queues.update([]);
    else if (looks++ % ASK_LOOKS === 0) {
      const held = await ask("GET", `/api/groups/${encodeURIComponent(group.name)}/queues`);
      if (isLast()) queues.update(held);
    }
  });
  filter.control.addEventListener("input", look);

  const starts = table("Where the group starts in each queue", [
    ["queue_id", (start) => String(start.queue_id)],
    ["offset", (start) => start.offset === null ? "by consumeTimestamp" : String(start.offset), "number"],
    ["rule", (start) => start.rule, "short"],
    ["because", (start) => start.because],
    ["from_first", (start) => String(start.from_first), "number"],
    ["from_last", (start) => String(start.from_last), "number"],
    ["in the queue", (start) => `${start.min_offset}–${start.max_offset}`],
  ], (start) => String(start.queue_id));
  const told = statusLine();
  const explain = form([field("group"), field("topic")], "Search", async (given) => {
    starts.update([]);
    told.say("");
    const found = await ask("GET", address("/api/explain", given));
    starts.update(found);
    told.say(`${given.group} starts ${given.topic} in ${plural(found.length, "queue")} as the table says`);
  });
  return {
    nodes: [el("h3", {}, "Where would a new one start, and why?"), explain, told, starts,
      el("h3", {}, "All of them"), filter, status, error, heading, members, queues, list],
    start: () => every(LOOK_MS, look),
  };
}
