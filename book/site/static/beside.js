// Below a box: what the kernel model says of its question. Its functions are fetched when a reader moves one.
window.inferlibBeside = (() => {
  "use strict";
  const here = document.currentScript ? document.currentScript.src : "", waiting = new Map();
  let A = null, fetching = false;
  const stateOf = (asks, link) => {
    const told = new URLSearchParams(link.split("?")[1]);
    const label = (name) => told.get(asks[name]), value = (part) => parseFloat(told.has(part)
      ? told.get(part) : part);
    const number = (name) => Math.round(asks[name].split(" ").map(value).reduce((a, b) => a * b));
    const n_chips = number("n_chips"), layout = asks.layout.replace(/n/g, n_chips);
    const found = { mode: "step", model: asks.names[label("model")], chip: asks.names[label("chip")], n_chips,
      batch: number("batch"), context: number("context"), ...(layout && { layout }) };
    const fields = { weights: "weights", cache: "kv_cache_dtype" };
    for (const name in fields) if (name in asks) found[fields[name]] = asks.formats[label(name)];
    return found;
  };
  const says = (state) => {
    A = A || inferlibAsk(inferlibKnown);
    const { form, facts } = inferlibKnown, { digits } = inferlibShared, ms = (v) => digits(1e3 * v);
    const S = { ...form.start, ...state }, r = A.step(S, S.batch, S.context);
    const part = Math.round(100 * facts.confidence);
    return r.status !== "ok" ? "The kernel model does not answer: " + r.reason : "The kernel model says " +
      ms(r.seconds) + " ms (" + ms(r.low) + " to " + ms(r.high) + " ms in " + part + " % of cases).";
  };
  const show = (node, { chip, n_chips, ...same }, text) => {
    const words = Object.entries({ ...same, machine: `${n_chips}x ${chip}` });
    const pairs = words.map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    node.textContent = text + " Your own model: ";
    node.append(Object.assign(document.createElement("a"), { href: `calculator.html#ask?${pairs.join("&")}`,
      textContent: "the calculator, with these settings" }));
  };
  const fetch = () => {
    fetching = true;
    document.head.appendChild(Object.assign(document.createElement("script"), { src: here.replace("beside.js",
      "kernel_model.js"), onload: () => waiting.forEach((state, node) => show(node, state, says(state))) }));
  };
  return (node, asks, link) => {
    const state = link && stateOf(asks, link);
    waiting.delete(node);
    if (!state || !state.model || !state.chip) return;
    if (node.textContent || window.inferlibKnown) show(node, state, node.textContent || says(state));
    else { waiting.set(node, state); if (!fetching) fetch(); }
  };
})();
