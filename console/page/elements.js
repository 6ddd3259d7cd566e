// Elements of the page: requests to the API, errors where the user looks, fields, forms, tables that change in place.

export class ApiError extends Error {
  constructor(text, allowed = []) {
    super(text);
    this.allowed = allowed;
  }
}

/** What stands before every address: nothing, or `/brokers/b1` for one broker of a cluster. */
export const BASE = location.pathname.replace(/\/[^/]*$/, "");

/** The JSON value of an address; a list has `more`, words that say if it is not the whole one. Throws `ApiError` with the server's own words. */
export async function ask(method, path, value) {
  let answer, result;
  try {
    const body = value === undefined ? undefined : JSON.stringify(value);
    answer = await fetch(BASE + path, { method, body, signal: AbortSignal.timeout(60000) });
    result = await answer.json();
  } catch (error) {
    throw new ApiError(answer ? `the server answered ${answer.status} without JSON` : "the server does not answer");
  }
  if (!answer.ok) throw new ApiError(result.error ?? `the server answered ${answer.status}`, result.allowed);
  if (Array.isArray(result)) result.more = answer.headers.has("link") ? ", and more" : "";
  return result;
}

/** `path` with those parameters that are not empty. */
export function address(path, given) {
  const chosen = Object.entries(given).filter(([, value]) => value !== "" && value !== undefined);
  return chosen.length ? `${path}?${new URLSearchParams(chosen)}` : path;
}

export function el(name, given = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.flat());
  return node;
}

/** Calls `work` now and `milliseconds` after each end, while the page is seen. Returns what stops it. */
export function every(milliseconds, work) {
  let timer, stopped = false;
  const turn = async () => {
    if (!document.hidden) await work();
    if (!stopped) timer = setTimeout(turn, milliseconds);
  };
  turn();
  return () => { stopped = true; clearTimeout(timer); };
}

/** A place for one error: its text, and what is allowed. Screen readers read it at once. */
export function errorPlace() {
  const place = el("div", { class: "error", role: "alert" });
  place.clear = () => place.replaceChildren();
  place.show = (error) => {
    const allowed = (error.allowed ?? []).map(String);
    const parts = [el("p", {}, error.message)];
    if (allowed.length > 12) {
      const more = el("p", {}, allowed.map((one) => [el("code", {}, one), " "]).flat());
      parts.push(el("details", {}, el("summary", {}, `${allowed.length} allowed values`), more));
    } else if (allowed.length) {
      parts.push(el("p", {}, "allowed: ", allowed.map((one) => [el("code", {}, one), " "]).flat()));
    }
    if (place.textContent !== error.message || parts.length > 1) place.replaceChildren(...parts);
  };
  return place;
}

/** `work` as a function that shows at `error` what it throws, and nothing after it went well. `work` gets a function that
 * tells whether it was called last: an answer may come after that of a later question. */
export function shownAt(error, work) {
  let calls = 0;
  return async () => {
    const number = ++calls, isLast = () => number === calls;
    try {
      await work(isLast);
      if (isLast()) error.clear();
    } catch (failure) {
      if (isLast()) error.show(failure);
    }
  };
}

/** A line that says how things stand; screen readers read it when it changes. */
export function statusLine() {
  const line = el("p", { class: "status", role: "status" });
  line.say = (text) => { if (line.textContent !== text) line.textContent = text; };
  return line;
}

let fields = 0;

/** A labelled control. `kind`: text, number, check, area, or a list of options. Blanks around its text do not count unless it `keeps` them. */
export function field(name, { kind = "text", hint, value, suggestions, keeps = false } = {}) {
  const id = `field-${++fields}`;
  const shared = { id, name, placeholder: hint, autocomplete: "off", spellcheck: "false" };
  let control;
  if (Array.isArray(kind)) control = el("select", { id, name }, kind.map((one) => el("option", {}, one)));
  else if (kind === "check") control = el("input", { id, name, type: "checkbox" });
  else if (kind === "area") control = el("textarea", { ...shared, rows: 2 });
  else control = el("input", { ...shared, type: "text", inputmode: kind === "number" ? "decimal" : undefined });
  if (value !== undefined) control.value = value;
  const box = el("div", { class: kind === "area" ? "field wide" : "field" }, el("label", { for: id }, name), control);
  if (suggestions) {
    control.setAttribute("list", `${id}-list`);
    box.append(el("datalist", { id: `${id}-list` }, suggestions.map((one) => el("option", { value: one }))));
  }
  box.control = control;
  box.keeps = keeps;
  return box;
}

/** Fields, a button and a place for errors. `work` gets the values by name; what it throws is shown below the button. */
export function form(boxes, button, work) {
  const error = errorPlace();
  const press = el("button", {}, button);
  const whole = el("form", { novalidate: true }, el("div", { class: "fields" }, boxes, press), error);
  whole.values = () => Object.fromEntries(boxes.filter((box) => box.control && !box.hidden).map(({ control, keeps }) =>
    [control.name, control.type === "checkbox" ? control.checked : keeps ? control.value : control.value.trim()]));
  whole.set = (given) => boxes.forEach(({ control }) => { if (control?.name in given) control.value = given[control.name]; });
  whole.attempt = async (task) => {
    boxes.forEach((box) => box.control?.removeAttribute("aria-invalid"));
    whole.setAttribute("aria-busy", "true");
    error.clear();
    try {
      await task();
    } catch (failure) {
      error.show(failure);
      const guilty = boxes.find((box) => box.control?.name === failure.message.match(/^\w+/)?.[0]);
      guilty?.control.setAttribute("aria-invalid", "true");
    }
    whole.removeAttribute("aria-busy");
  };
  whole.addEventListener("submit", (event) => {
    event.preventDefault();
    whole.attempt(() => work(whole.values()));
  });
  return whole;
}

/** A table whose rows stay while their key stays, so that focus and open details survive an update.
 *
 * A column: [head, row => text or node, class or undefined, row => text]. With the fourth member the cell is a node, made
 * again only when that text changes. The first column heads its row. Everybody sees the caption if `seen`.
 */
export function table(caption, columns, keyOf, { seen = false } = {}) {
  const known = new Map();
  const body = el("tbody", { role: "rowgroup" });
  const heads = columns.map(([head, , kind]) => el("th", { scope: "col", role: "columnheader", class: kind }, head));
  const whole = el("table", { role: "table", hidden: true }, el("caption", { class: seen ? undefined : "unseen" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  const made = () => {
    const cells = columns.map(([head, , kind], index) => index
      ? el("td", { role: "cell", class: kind, "data-head": head })
      : el("th", { scope: "row", role: "rowheader", class: kind, "data-head": head }));
    return { cells, signs: [], line: el("tr", { role: "row" }, cells) };
  };
  whole.update = (rows) => {
    whole.hidden = rows.length === 0;
    const lines = rows.map((row) => {
      const key = keyOf(row);
      if (!known.has(key)) known.set(key, made());
      const entry = known.get(key);
      columns.forEach(([, cell, , sign], index) => {
        const text = sign ? sign(row) : cell(row);
        if (entry.signs[index] === text && typeof text === "string") return;
        entry.signs[index] = text;
        entry.cells[index].replaceChildren(sign ? cell(row) : text);
      });
      return entry.line;
    });
    const kept = new Set(rows.map(keyOf));
    for (const key of known.keys()) if (!kept.has(key)) known.delete(key);
    for (const line of [...body.children]) if (!lines.includes(line)) line.remove();
    lines.forEach((line, index) => { if (body.children[index] !== line) body.insertBefore(line, body.children[index] ?? null); });
  };
  return whole;
}

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** 2026-01-31 12:00:00.000, in the time zone of the browser. */
export function moment(milliseconds) {
  if (!(milliseconds > 0)) return "";
  const date = new Date(milliseconds);
  const two = (number, width = 2) => String(number).padStart(width, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `
    + `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}
