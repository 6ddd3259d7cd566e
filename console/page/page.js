// The page: seven sections, one open at a time. Each is made when it is first opened and keeps its fields afterwards.

import { groups, topics } from "./cluster.js";
import { messages } from "./messages.js";
import { clock, faults, ledger, requests } from "./stand_in.js";
import { el } from "./elements.js";

const SECTIONS = {
  Topics: ["What is stored", topics],
  Groups: ["Who reads, and how far", groups],
  Messages: ["Look up what is stored", messages],
  Requests: ["What clients ask, as they ask it", requests],
  Faults: ["Let the broker misbehave", faults],
  Clock: ["The time of the server", clock],
  Ledger: ["What became of it all", ledger],
};
const names = Object.keys(SECTIONS);
const panel = document.getElementById("panel");
const made = {};
let open = null;
let stop = () => {};

const tabs = Object.fromEntries(names.map((name) => [name, el("button", {
  role: "tab", id: `tab-${name.toLowerCase()}`, type: "button", "aria-controls": "panel", "aria-selected": "false",
  tabindex: "-1", onclick: () => show(name), onkeydown: move,
}, name)]));

/** Opens a section; `given` are values for its fields. */
function show(name, given) {
  if (name !== open) {
    stop();
    made[name] ??= make(name);
    for (const each of names) {
      tabs[each].setAttribute("aria-selected", String(each === name));
      tabs[each].tabIndex = each === name ? 0 : -1;
    }
    panel.replaceChildren(...made[name].nodes);
    panel.setAttribute("aria-labelledby", "heading");
    open = name;
    history.replaceState(null, "", `#${name.toLowerCase()}`);
    stop = made[name].start?.() ?? (() => {});
  }
  if (given) made[name].given?.(given);
}

function make(name) {
  const [heading, build] = SECTIONS[name];
  const section = build(show);
  section.nodes.unshift(el("h2", { id: "heading" }, heading));
  return section;
}

function move(event) {
  const here = names.indexOf(open);
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: names.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const name = names[(to + names.length) % names.length];
  show(name);
  tabs[name].focus();
}

const named = () => names.find((name) => `#${name.toLowerCase()}` === location.hash) ?? "Topics";
document.getElementById("tabs").append(...Object.values(tabs));
addEventListener("hashchange", () => show(named()));
show(named());
