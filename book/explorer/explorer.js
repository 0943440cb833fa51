// The runtime of all explorers of a page. What is computed comes with each, generated from equations.
window.inferlibExplorer = function (C) {
  "use strict";
  const S = globalThis.inferlibShared, { digits, tick, scale } = S;
  const root = document.getElementById(C.id);
  const find = (part) => root.querySelector("#" + C.id + "-" + part);
  const kinds = C.inputs.filter((i) => i.kind === "kind");
  const input = (key) => C.inputs.find((i) => i.key === key);
  const W = 600, POINTS = 160;

  // A term too short for the unit of its bar is told in a finer one.
  const FINER = { s: "ms", ms: "µs", "µs": "ns" };
  const told = (v, unit, least = 1e-3) => (v > 0 && v < least && FINER[unit]
    ? told(1e3 * v, FINER[unit], 1) : [digits(v), unit]);
  const typed = (v) => String(Number.isInteger(v) ? v : +v.toPrecision(4));

  // The state: a number for each slider, the place of the option for each choice.
  let state = {};
  // What was asked and cannot be answered, by input: nothing is shown while there is any.
  let refused = {};
  const wrong = () => Object.values(refused);
  const between = (i, value) => i.label + ": " + String(value).slice(0, 60) + " is not " + (i.whole
    ? "a whole number " : "") + "between " + digits(i.low) + " and " + digits(i.high);
  const reset = () => C.inputs.forEach((i) => { state[i.key] = i.kind === "slider" ? i.start : 0; });
  const apply = (values) => Object.assign(state, values || {});

  // The generated functions, on the state or on a state with some sliders moved.
  const evaluate = (moved) => {
    const values = {};
    C.inputs.forEach((i) => {
      if (i.kind === "slider") values[i.key] = state[i.key];
      for (const column in i.columns) values[column] = i.columns[column][state[i.key]];
    });
    for (const key in moved) values[key] = input(key).whole ? Math.round(moved[key]) : moved[key];
    const variant = kinds.reduce((n, k) => n * k.size + state[k.key], 0);
    return { raw: C.functions[variant](...C.args.map((name) => values[name])), plan: C.plans[variant] };
  };
  // Each limit with what is needed and what there is.
  const limits = ({ raw, plan }) => C.limits.map((l, k) =>
    [l, ...[0, 1].map((n) => raw[plan.limits + 2 * k + n] / l.factor)]);
  const short = (now, caution = false) =>
    limits(now).filter(([l, needed, has]) => l.caution === caution && !(needed <= has));

  const answer = (entry, raw) => {
    if ("na" in entry) return { na: entry.na };
    const found = entry.stages ? S.staged(entry, raw) : { value: raw[entry.at] };
    return Number.isFinite(found.value) ? found : { na: "nothing fits" };
  };
  const put = (parent, name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };
  const rule = (parent, kind, x1, x2, y1, y2) => put(parent, "line", { x1, x2, y1, y2, class: kind });
  const counted = (one) => (one.terms || []).filter((t) => t.counts);
  const clear = (node) => node.replaceChildren();
  const ticks = (low, high, log) => {
    if (log) return S.decades(low, high);
    const rough = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = rough * [1, 2, 5, 10].find((m) => (high - low) / (rough * m) <= 6), found = [];
    for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) found.push(t);
    return found;
  };
  const LEFT = 56, RIGHT = 12, TOP = 26, BOTTOM = 46, H = 300;
  const axes = (picture, x, y) => {
    const X = scale(x.low, x.high, LEFT, W - RIGHT, x.log), Y = scale(y.low, y.high, H - BOTTOM, TOP, y.log);
    ticks(x.low, x.high, x.log).forEach((t) => {
      rule(picture, "grid", X(t), X(t), TOP, H - BOTTOM);
      put(picture, "text", { x: X(t), y: H - BOTTOM + 17, "text-anchor": X(t) > W - 30 ? "end" : "middle" },
        tick(t));
    });
    ticks(y.low, y.high, y.log).forEach((t) => {
      rule(picture, "grid", LEFT, W - RIGHT, Y(t), Y(t));
      put(picture, "text", { x: LEFT - 6, y: Math.min(Y(t) + 4, H - BOTTOM), "text-anchor": "end" }, tick(t));
    });
    put(picture, "text",
      { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle", class: "below" }, x.label);
    put(picture, "text", { x: 8, y: 15 }, y.label);
    return [X, Y];
  };
  const path = (points, X, Y) => {
    let pen = false, d = "";
    points.forEach(([x, y]) => {
      // a hair to the right: points of a grid may lie between two tenths, and CPUs differ in the last bit
      if (y !== null) d += (pen ? "L" : "M") + (X(x) + 1e-6).toFixed(1) + " " + Y(y).toFixed(1);
      pen = y !== null;
    });
    return d;
  };
  const grid = (i, n) => Array.from({ length: n + 1 }, (_, k) =>
    i.log ? i.low * (i.high / i.low) ** (k / n) : i.low + ((i.high - i.low) * k) / n);

  // Every answer of the state: view by view, entry by entry. Nothing where a limit does not hold, but sizes.
  const answers = (now) => {
    const missing = short(now), na = wrong().length ? "not answered" : missing.length
      ? missing[0][0].says.toLowerCase() : "";
    return now.plan.views.map((entries, v) => entries.map((e, k) =>
      na && (wrong().length || C.views[v].type !== "gauge") ? { na } : answer(e, now.raw)));
  };
  const curves = (v, sweep) => {
    const view = C.views[v];
    return view.names.map((_, k) => sweep.map(([x, found]) => {
      const value = found[v][k].na ? NaN : found[v][k].value / view.factor;
      return [x, Number.isFinite(value) && (!view.logY || value > 0) ? value : null];
    }));
  };
  const sweep = (key, part) => grid({ ...input(key), ...part }, POINTS).map((x) =>
    [x, answers(evaluate({ [key]: x }))]);
  const lowest = (points) => points.reduce((best, p) => (p[1] !== null && !(p[1] >= best[1]) ? p : best),
    [0, Infinity]);
  const text = (part, value) => {
    const node = find(part);
    if (node && node.textContent !== value) node.textContent = value;
  };
  // An axis stays, so that lengths can be compared, until something leaves it (then it grows further,
  // so that the next move finds it standing) or, at rest, hardly fills it.
  let kept = {}, moving = false;
  const keep = (v, low, high, log) => {
    const now = { low, high }, old = kept[v] || now;
    const span = (r) => (log ? Math.log(r.high / r.low) : r.high - r.low);
    const grown = { low: low < old.low ? low / (log ? 2 : 0.7) : old.low,
      high: high > old.high ? high * 1.5 : old.high };
    return (kept[v] = moving || span(now) >= span(old) / 8 ? grown : now);
  };
  function drawCurves(v, found, sweeps) {
    const view = C.views[v], picture = find("v" + v), x = input(view.x);
    const hue = (k) => "c" + (view.colours ? view.colours[k] : k);
    clear(picture);
    const lines = curves(v, (sweeps[view.x] = sweeps[view.x] || sweep(view.x)));
    const good = lines.flat().map((p) => p[1]).filter((y) => y !== null);
    let low = Math.min(...good), high = Math.max(...good);
    if (view.logY) [low, high] = [low / 1.15, high * 1.15];
    else [low, high] = [Math.min(0, low), high > Math.min(0, low) ? high * 1.05 : Math.min(0, low) + 1];
    const range = good.length ? keep(v, low, high, view.logY) : kept[v] || { low: 1, high: 10 };
    const [X, Y] = axes(picture, { ...x, label: x.label + (x.unit ? " (" + x.unit + ")" : "") },
      { ...range, log: view.logY, label: view.yLabel });
    lines.forEach((points, k) => put(picture, "path", { d: path(points, X, Y), class: "curve " + hue(k) }));
    const held = lines[view.least] || [], k = held.indexOf(lowest(held));
    if (k >= 0) {
      const [low, high] = [k - 1, k + 1].map((n) => (held[n] || held[k])[0]);
      const [at, least] = lowest(curves(v, sweep(view.x, { low, high }))[view.least]);
      put(picture, "circle", { cx: X(at), cy: Y(least), r: 6, class: "ring" });
      const place = { x: Math.max(110, Math.min(W - 80, X(at))), y: Y(least) - 16, "text-anchor": "middle" };
      put(picture, "text", place, "least: " + digits(least) + " at " + digits(at));
    }
    const here = X(state[view.x]);
    rule(picture, "now", here, here, TOP, H - BOTTOM);
    found.forEach((one, k) => {
      const value = one.na ? NaN : one.value / view.factor;
      const at = { cx: here, cy: Y(value), r: 4, class: "dot " + hue(k) };
      if (Number.isFinite(value) && (!view.logY || value > 0)) put(picture, "circle", at);
      text("v" + v + "-" + k, digits(value));
    });
  }
  function drawBars(v, found) {
    const view = C.views[v];
    const longest = Math.max(0, ...found.map((one) => (one.na ? 0 : one.value)));
    const end = longest || kept[v] ? keep(v, 0, longest * 1.02, false).high : 1;
    const X = scale(0, end, 8, W - RIGHT, false);
    found.forEach((one, k) => {
      const part = "v" + v + "-s" + k, picture = find(part), list = find(part + "-r");
      clear(picture);
      clear(list);
      if (one.na) put(picture, "rect", { x: 8, y: 2, width: W - RIGHT - 8, height: 22, class: "none" });
      let left = 0;
      counted(one).forEach(({ name, seconds }) => {
        put(picture, "rect", { x: X(left), y: 2, width: Math.max(X(left + seconds) - X(left), 0), height: 22,
          class: "bar c" + view.colours[k][name] });
        left += seconds;
      });
      const made = (name, is) => Object.assign(document.createElement(name), is);
      if (one.na) list.append(made("span", { className: "reason", textContent: one.na }));
      // Every term keeps its place, in every state, so that nothing below moves.
      view.terms[k].forEach((name) => {
        const { seconds, counts } = (one.terms || []).find((t) => t.name === name)
          || { seconds: NaN, counts: true };
        const entry = made("span", { className: Number.isNaN(seconds) ? "absent" : "" });
        const [textContent, unit] = told(seconds / view.factor || 0, view.unit);
        entry.append(made("i", { className: "c" + view.colours[k][name] }), name + " ",
          made("b", { textContent }), " " + unit,
          made("em", { textContent: " (hidden)", className: counts ? "absent" : "" }));
        list.append(entry);
      });
      text(part + "-t", digits(one.value / view.factor));
      text(part + "-b", counted(one).sort((a, b) => b.seconds - a.seconds)[0]?.name || "");
    });
    const axis = find("v" + v + "-axis");
    clear(axis);
    if (longest || kept[v]) ticks(0, end / view.factor, false).forEach((t) => {
      const x = X(t * view.factor);
      rule(axis, "grid", x, x, 0, 5);
      put(axis, "text", { x, y: 18, "text-anchor": t === 0 ? "start" : "middle" }, digits(t));
    });
  }
  function drawGauge(v, found) {
    const view = C.views[v], picture = find("v" + v), end = 420;
    clear(picture);
    const values = found.map((one) => (one.na ? NaN : one.value / view.factor)), parts = values.slice(0, -1);
    values.forEach((value, k) => text("v" + v + "-" + k, digits(value)));
    picture.setAttribute("aria-label", [view.title,
      ...view.names.map((name, k) => name + " " + digits(values[k]) + " " + view.unit)].join(", "));
    if (!values.every(Number.isFinite)) return;
    const room = values[parts.length], X = (value) => Math.min(592, 8 + (value / room) * (end - 8));
    let left = 0;
    parts.forEach((part, k) => {
      put(picture, "rect", { x: X(left), y: 4, width: Math.max(0, X(left + part) - X(left)), height: 26,
        class: "bar c" + view.colours[k] });
      left += part;
    });
    put(picture, "rect", { x: 8, y: 4, width: end - 8, height: 26, class: "room" });
    put(picture, "text", { x: end + 4, y: 44, "text-anchor": "end" },
      "full at " + digits(room) + " " + view.unit);
    put(picture, "text", { x: 8, y: 44 }, digits(left) + " " + view.unit + (left > room ? ": too much" : ""));
    if (left > room) put(picture, "rect", { x: end, y: 2, width: X(left) - end, height: 30, class: "over" });
  }
  function drawSentence(v, found) {
    const view = C.views[v], numbers = found.map((one, k) => (one.na ? NaN : one.value / view.factors[k]));
    const said = view.cases.find(([upper]) => upper === null || numbers[0] <= upper);
    text("v" + v, numbers.every(Number.isFinite)
      ? said[1].replace(/\{(\d)\}/g, (_, k) => digits(numbers[k])) : "");
  }

  function showControls(besides) {
    C.inputs.forEach((i) => {
      const control = find(i.key);
      if (i.kind === "slider") {
        const number = find(i.key + "-n");
        if (control !== besides) control.value = i.log ? Math.log10(state[i.key]) : state[i.key];
        if (number !== besides && !refused[i.key]) { number.value = typed(state[i.key]);
          number.setAttribute("aria-invalid", "false"); }
        control.setAttribute("aria-valuetext", digits(state[i.key]) + (i.unit ? " " + i.unit : ""));
      } else {
        control.selectedIndex = state[i.key];
      }
    });
  }
  let speaking = 0;
  function draw(besides) {
    showControls(besides);
    moving = Boolean(besides);
    const now = evaluate(), found = answers(now), sweeps = {}, missing = short(now);
    const filled = (l, needed, has) => l.name[0].toUpperCase() + l.name.slice(1) + ": " +
      (needed > has && digits(needed) === digits(has) ? needed.toPrecision(5) : digits(needed)) +
      " of " + digits(has) + " " + l.unit;
    const fits = (missing.length ? missing
      : limits(now).filter(([l]) => !l.quiet && !l.caution)).map((row) => filled(...row));
    const cautions = missing.length ? [] : short(now, true).map(([l]) => l.says);
    text("limits", wrong().length ? wrong().join("; ") : (missing.length ? missing[0][0].says + ". " : "") +
      fits.concat(cautions).join("; "));
    const none = wrong().length + missing.length > 0;
    find("limits").classList.toggle("missing", none);
    C.views.forEach((view, v) => {
      if (view.type === "curves") drawCurves(v, found[v], sweeps);
      else if (view.type === "bars") drawBars(v, found[v]);
      else if (view.type === "gauge") drawGauge(v, found[v]);
      else drawSentence(v, found[v]);
    });
    if (C.asks) {
      const asked = find("asked"), at = link();
      if (at !== begun) asked.textContent = "";
      begun = 0;
      if (window.inferlibBeside) inferlibBeside(asked, C.asks, none ? "" : at);
    }
    clearTimeout(speaking);
    speaking = setTimeout(() => text("said", summary(found, missing)), 800);
  }
  // One sentence for screen readers, once the reader pauses.
  const summary = (found, missing) => missing.length || wrong().length ? find("limits").textContent
    : C.views[0].type === "sentence" ? find("v0").textContent : C.views[0].names.map((name, k) => {
      const one = found[0][k];
      return (name || "total") + " " + (one.na || digits(one.value / C.views[0].factor) + " " +
        C.views[0].unit).trim();
    }).join(", ");

  // A link: the title, and every input by name.
  const link = () => "#" + C.slug + "?" + C.inputs.map((i) => i.key + "=" + encodeURIComponent(
    i.kind === "slider" ? state[i.key] : find(i.key).options[state[i.key]].text)).join("&");
  const follow = (hash) => {
    const pairs = S.pairsOf(hash, C.slug), given = {};
    if (!pairs) return false;
    start();
    pairs.forEach(([key, value, damaged]) => {
      if (damaged) { refused[key] = "The link is damaged at " + key.slice(0, 60); return; }
      const i = input(key), slider = i?.kind === "slider", place = i && !slider
        ? Array.from(find(key).options).findIndex((o) => o.text === value) : 0;
      if (!i) refused[key] = "The link asks for " + key.slice(0, 60) + ", which is no input here";
      else if (slider ? !good(i, value) : place < 0) refused[key] = slider ? between(i, value)
        : i.label + ": " + value.slice(0, 60) + " is not offered";
      else given[key] = slider ? +value : place;
    });
    C.inputs.forEach((i) => { if (i.sets && i.key in given) apply(i.sets[given[i.key]]); });
    apply(given);
    return true;
  };
  const good = (i, value) => String(value).trim() !== "" && +value >= i.low && +value <= i.high &&
    (!i.whole || Number.isInteger(+value));
  const start = () => { reset(); refused = {}; kept = {}; };
  const set = (key, value) => {
    const i = input(key);
    refused = Object.fromEntries(Object.entries(refused).filter(([at]) => at !== key && input(at) &&
      find(at + "-n")?.getAttribute("aria-invalid") === "true"));
    if (i.kind === "slider") state[key] = i.whole ? Math.round(value) : value;
    else { state[key] = value; if (i.sets) apply(i.sets[value]); }
  };
  const later = S.once((besides) => draw(besides)), address = S.addressed(link);
  root.addEventListener("input", (event) => {
    const control = event.target, key = control.getAttribute("data-key"), i = key && input(key);
    if (!i) return;
    if (i.kind !== "slider") set(key, control.selectedIndex);
    else if (control === find(key)) set(key,
      Math.min(i.high, Math.max(i.low, i.log ? 10 ** control.value : +control.value)));
    else {
      control.setAttribute("aria-invalid", String(!good(i, control.value)));
      if (good(i, control.value)) set(key, +control.value);
      else refused[key] = between(i, control.value || "nothing");
    }
    later(control);
  });
  root.addEventListener("change", () => { later(null); if (!wrong().length) address.moved(); });
  root.addEventListener("click", (event) => {
    const at = event.target.closest?.("[data-act],svg[data-x]");
    if (!at) return;
    const act = at.getAttribute("data-act"), x = input(at.getAttribute("data-x"));
    if (x) {
      const { left, width } = at.getBoundingClientRect();
      const part = (((event.clientX - left) / width) * W - LEFT) / (W - RIGHT - LEFT);
      if (part < 0 || part > 1) return;
      set(x.key, x.log ? x.low * (x.high / x.low) ** part : x.low + (x.high - x.low) * part);
      later(null);
    } else if (act === "reset") { start(); later(null); }
    else if (act === "link") {
      address.hold();
      S.copy(location.href, at);
      text("said", "The address now holds this state.");
    }
  });
  reset();
  let begun = C.asks && link();
  const arrive = address.open(root, follow, () => draw());
  // A link in the text sets the box also when the address holds it already.
  window.addEventListener("click", (event) => {
    const a = event.target.closest && event.target.closest("a.sets");
    if (a && a.hash === location.hash) arrive();
  });
  return { evaluate, answers: () => answers(evaluate()), link, set: (key, value) => { set(key, value);
    draw(); } };
};
