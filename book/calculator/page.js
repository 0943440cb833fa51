// The page of the instrument: what a reader sets goes into one state; what is drawn comes from ask.js.
globalThis.inferlibPage = function (root, D) {
  "use strict";
  const A = inferlibAsk(D), readConfig = inferlibConfig(D.families), W = 430;
  const all = (query) => [...root.querySelectorAll(query)], part = (name) => root.querySelector('[data-part="' + name + '"]');
  const control = (key) => root.querySelector('[data-key="' + key + '"]');
  const esc = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const digits = (v) => {
    if (v == null || !Number.isFinite(v)) return "n/a";
    const size = Math.abs(v);
    if (v === 0) return "0";
    if (size >= 1e7 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3));
  };
  const time = (s) => (s == null ? "n/a" : s >= 1 ? digits(s) + " s" : digits(1e3 * s) + " ms");
  const span = (a, b) => (b >= 1 ? digits(a) + " to " + digits(b) + " s" : digits(1e3 * a) + " to " + digits(1e3 * b) + " ms");
  const usd = (v) => (v == null ? "n/a" : "$" + (v > 0 && v < 1e-3 ? v.toFixed(6) : digits(v)));
  const GB = (bytes) => digits(bytes / 1e9) + " GB";

  // --- The state -------------------------------------------------------------------------------------------
  const START = { mode: "step", model: "Llama 3 70B", chip: "H100 SXM", n_chips: 8, layout: "tp", split: 2, weights: "bf16", cache: "bf16", wide: false, engine: "", batch: 32, context: 4096, users: 32, prompt: 4096, output: 512, share: 0, speed: 50, wait: 1, sure: false, only: "", own: null, changed: {}, prices: "", price: undefined, sort: "users", ms: null, usd: null, drafted: 0, curve: "", length: 1 };
  let S = { ...START }, refused = {}, shown = null, search = 0, view = "users";
  const inputs = all("[data-key]").filter((c) => c.type === "number"), UNITS = {};
  all("[data-scale]").forEach((c) => { UNITS[c.dataset.key] = +c.dataset.scale; });
  const isChanged = (key) => key in UNITS;
  const get = (key) => (isChanged(key) ? S.changed[key] : S[key]);
  const listed = () => {
    const found = {}, wrong = [];
    S.prices.split(/\n|;/).map((line) => line.trim()).filter(Boolean).forEach((line) => {
      const [name, number] = [line.slice(0, line.lastIndexOf(":")).trim(), +line.slice(line.lastIndexOf(":") + 1).replace("$", "")];
      const known = Object.keys(D.chips).find((chip) => chip.toLowerCase() === name.toLowerCase());
      if (known && number > 0 && number <= 1e4) found[known] = number; else wrong.push(line.slice(0, 60));
    });
    return { found, wrong };
  };
  const asked = () => {
    const prices = listed(), q = { ...S, prices: prices.found, cached: (S.prompt * S.share) / 100 };
    if (S.mode === "decide") { if (S.only) q.chip = S.only; q.price = undefined; q.changed = {}; }
    return q;
  };
  const good = (c, text) => {
    const v = +text, low = +c.min, high = +c.max;
    if (String(text).trim() === "") return "empty" in c.dataset;
    return Number.isFinite(v) && v >= low && v <= high && (c.step === "any" || Number.isInteger(v));
  };
  const label = (c) => (c.labels && c.labels[0] ? c.labels[0].textContent : c.dataset.key);
  const limits = (c, text) => label(c) + ": " + (String(text).slice(0, 40) || "nothing") + " is not " + (c.step === "any" ? "" : "a whole number ") + "between " + c.min + " and " + c.max;
  const put = (key, text) => {
    const c = control(key);
    delete refused[key];
    if (!c) return;
    if (c.type === "number") {
      if (!good(c, text)) { refused[key] = limits(c, text); return; }
      const v = String(text).trim() === "" ? null : +text;
      if (isChanged(key)) { S.changed = { ...S.changed }; if (v == null) delete S.changed[key]; else S.changed[key] = v * UNITS[key]; }
      else S[key] = v;
    } else if (c.type === "checkbox") S[key] = text === true || text === "1";
    else S[key] = text;
  };
  // Choosing a model brings the format of its checkpoint, choosing a chip its own numbers and its own price or none.
  const chose = (key) => {
    if (key === "model") { const known = D.models[S.model]; S.own = null; S.weights = known.weights || (known.weights === undefined ? S.weights : "bf16"); S.wide = Boolean(known.wide); if (!known.weights && ["mxfp4"].includes(S.weights)) S.weights = "bf16"; }
    if (key === "chip") { S.changed = {}; S.price = undefined; Object.keys(refused).filter((k) => isChanged(k) || k === "price").forEach((k) => delete refused[k]); }
    if (key === "layout") S.split = S.layout === "copies" ? 1 : 2;
  };
  const PLAIN = ["mode", "model", "chip", "n_chips", "layout", "split", "weights", "cache", "wide", "engine", "batch", "context", "users", "prompt", "output", "share", "speed", "wait", "sure", "only", "ms", "usd", "drafted", "curve", "length"];
  // A measured curve says how many tokens a step yields; nobody measured more drafts than it has.
  const accepted = () => {
    const lengths = S.curve && D.accepted[S.curve];
    delete refused.length;
    if (lengths && S.drafted) { if (S.drafted > lengths.length) refused.length = "Drafts a step: " + S.curve + " was measured with at most " + lengths.length; else S.length = lengths[S.drafted - 1]; }
    else if (S.drafted && S.length > S.drafted + 1) refused.length = "Tokens a step: " + S.length + " is more than the drafts and one";
  };
  const link = () => {
    const pairs = PLAIN.filter((key) => S[key] !== START[key] || key === "mode" || key === "model" || key === "chip").map((key) => [key, S[key] === true ? "1" : S[key] === false ? "0" : S[key] == null ? "" : S[key]]);
    if (S.price !== undefined) pairs.push(["price", S.price == null ? "" : S.price]);
    for (const key in S.changed) pairs.push([key, +(S.changed[key] / UNITS[key]).toPrecision(12)]);
    if (S.prices) pairs.push(["prices", S.prices.split("\n").join(";")]);
    if (S.own) pairs.push(["own", JSON.stringify(S.own)]);
    return "#ask?" + pairs.map(([key, value]) => key + "=" + encodeURIComponent(value)).join("&");
  };
  const ownGood = (own) => {
    const names = own && typeof own === "object" && Object.prototype.hasOwnProperty.call(D.structures, own.structure) && D.structures[own.structure].filter((n) => !n.startsWith("stored_"));
    return names && typeof own.values === "object" && own.values && Object.keys(own.values).length === names.length && typeof own.tied === "boolean" && names.every((n) => Number.isInteger(own.values[n]) && own.values[n] >= (/count|d_shared/.test(n) ? 0 : 1) && own.values[n] <= D.families.no_window) && A.layers({ ...own }) > 0 && A.layers({ ...own }) <= D.families.layers;
  };
  const follow = (hash) => {
    const [slug, pairs] = (hash || "").replace(/^#/, "").split("?");
    if (slug !== "ask" || !pairs) return false;
    S = { ...START, changed: {} };
    refused = {};
    ensure("step");
    const given = [];
    pairs.split("&").forEach((pair) => {
      let key = "", value = "";
      try { [key, value = ""] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)].map(decodeURIComponent); } catch (e) { refused[pair.slice(0, 40)] = "The link is damaged at " + pair.slice(0, 40); return; }
      given.push([key, value]);
    });
    given.sort((a, b) => (a[0] === "model" || a[0] === "chip" ? -1 : 0) - (b[0] === "model" || b[0] === "chip" ? -1 : 0)).forEach(([key, value]) => {
      const c = control(key), told = key.slice(0, 40) + ": " + value.slice(0, 60);
      if (key === "own") { let own = null; try { own = JSON.parse(value); } catch (e) { own = null; } if (ownGood(own)) S.own = own; else refused.own = "The link's own model is damaged"; }
      else if (key === "prices") S.prices = value.split(";").join("\n").slice(0, 4000);
      else if (!c || c.dataset.key === "config") refused[key.slice(0, 40)] = "The link asks for " + key.slice(0, 40) + ", which is no input here";
      else if (c.type === "radio") { if (["step", "request", "decide"].includes(value)) S.mode = value; else refused.mode = told + " is not offered"; }
      else if (c.type === "checkbox") { if (value === "0" || value === "1") S[key] = value === "1"; else refused[key] = told + " is not offered"; }
      else if (c.tagName === "SELECT") { if ([...c.options].some((o) => o.value === value)) { S[key] = value; if (key === "chip") { S.changed = {}; S.price = undefined; } } else refused[key] = told + " is not offered"; }
      else if (key === "price" && value === "") S.price = null;
      else put(key, value);
    });
    return true;
  };

  // --- Controls --------------------------------------------------------------------------------------------
  const ends = (range) => { const c = control(range.dataset.for); return range.dataset.steps ? [0, 10] : "plain" in range.dataset ? [+c.min, +c.max] : [0, Math.log2({ batch: 8192, users: 8192, context: 1048576, prompt: 262144, output: 32768 }[range.dataset.for])]; };
  const toRange = (range, v) => ("plain" in range.dataset ? v : Math.log2(Math.max(v, 1)));
  const fromRange = (range, p) => ("plain" in range.dataset ? +p : range.dataset.steps ? Math.pow(2, Math.round(p)) : ((v) => (v < 64 ? Math.round(v) : +v.toPrecision(2) > 9999 ? Math.round(v / 1024) * 1024 || 1024 : Math.round(v)))(Math.pow(2, p)));
  all("input[type=range]").forEach((range) => { const [low, high] = ends(range); range.min = low; range.max = high; range.step = range.dataset.steps ? 1 : "plain" in range.dataset ? 1 : (high - low) / 200; });
  const showControls = (besides) => {
    all("[data-mode]").forEach((row) => { row.hidden = !row.dataset.mode.split(" ").includes(S.mode); });
    all("[data-layout]").forEach((row) => { if (!row.dataset.layout.split(" ").includes(S.layout)) row.hidden = true; });
    all("[data-key]").forEach((c) => {
      const key = c.dataset.key;
      if (c.type === "radio") { c.checked = c.value === S.mode; return; }
      if (c.type === "checkbox") { c.checked = S[key]; return; }
      if (c.tagName === "SELECT") { c.value = S[key]; return; }
      c.setAttribute("aria-invalid", key in refused ? "true" : "false");
      if (c === besides || key in refused) return;
      let v = get(key);
      if (key === "price") v = A.price(asked(), S.chip);
      if (isChanged(key)) { v = v == null ? (key === "peak_16" ? D.chips[S.chip].values.chip_flops : key.startsWith("peak_") ? D.chips[S.chip].peaks[key.slice(5)] : D.chips[S.chip].values["chip_" + key]) : v; v = v == null ? null : v / UNITS[key]; }
      c.value = v == null ? "" : String(+v.toPrecision(10));
    });
    all("input[type=range]").forEach((range) => { if (range !== besides) range.value = toRange(range, S[range.dataset.for]); range.setAttribute("aria-valuetext", digits(S[range.dataset.for])); });
    const own = root.querySelector(".own summary");
    own.textContent = S.own ? "Your own model is asked (" + S.own.structure + "): choose its formats below" : "A model of your own: paste its config.json";
    control("model").classList.toggle("aside", Boolean(S.own));
    part("split-label").textContent = S.layout === "stages" ? "Stages" : "TP of a copy";
    const cost = A.price(asked(), S.chip), list = listed();
    part("price-note").textContent = S.price !== undefined ? "$ an hour and chip, yours" : list.found[S.chip] !== undefined ? "$ an hour, your list" : cost == null ? "no list price: type one" : "$/h, " + D.chips[S.chip].source.split(",")[0];
    part("price-note").title = D.chips[S.chip].source;
    part("changed-label").textContent = Object.keys(S.changed).length ? "Numbers of this chip: " + Object.keys(S.changed).length + " changed" : "Numbers of this chip";
    part("prices-error").textContent = list.wrong.length ? "Not read: " + list.wrong.join("; ") : "";
    part("prices-label").textContent = Object.keys(list.found).length ? "Your price list: " + Object.keys(list.found).length + " chips" : "A price list of your own";
    const area = root.querySelector(".prices textarea");
    if (area !== besides) area.value = S.prices;
    const l = A.layout(asked(), A.model(asked()));
    part("words").textContent = Number.isInteger(l.tp) && Number.isInteger(l.dp) && Number.isInteger(l.pp) ? A.words(l) : "";
  };

  // --- Pictures --------------------------------------------------------------------------------------------
  const COLOUR = { weights: 0, "expert weights": 0, cache: 2, arithmetic: 1, "attention arithmetic": 1, "expert arithmetic": 1, "expert kernels": 4, "kernel launch": 4, "collective latency": 3, "collective bandwidth": 6, "expert exchange": 3, pipeline: 5, engine: 7 };
  const ticks = (low, high) => {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) (high / low < 12 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]).forEach((m) => { const t = m * Math.pow(10, e); if (t >= low * 0.999 && t <= high * 1.001) found.push(t); });
    return found.length > 9 ? found.filter((t) => /^1/.test(t.toExponential())) : found;
  };
  const plane = (x, y, draw) => {
    const H = 202, L = 42, R = 8, T = 6, B = 38, X = (v) => L + ((W - L - R) * Math.log(v / x.low)) / Math.log(x.high / x.low), Y = (v) => H - B - ((H - T - B) * Math.log(v / y.low)) / Math.log(y.high / y.low);
    const lines = ticks(x.low, x.high).map((t) => '<line class="grid" x1="' + X(t) + '" x2="' + X(t) + '" y1="' + T + '" y2="' + (H - B) + '"/><text x="' + X(t) + '" y="' + (H - B + 14) + '" text-anchor="middle">' + (t >= 1e4 ? t / 1e3 + "k" : +t.toPrecision(3)) + "</text>").join("")
      + ticks(y.low, y.high).map((t) => '<line class="grid" x1="' + L + '" x2="' + (W - R) + '" y1="' + Y(t) + '" y2="' + Y(t) + '"/><text x="' + (L - 5) + '" y="' + (Y(t) + 4) + '" text-anchor="end">' + +t.toPrecision(3) + "</text>").join("");
    return '<svg viewBox="0 0 ' + W + " " + H + '" role="group" aria-label="' + esc(x.label + " against " + y.label) + '">' + lines + '<text x="' + (L + W - R) / 2 + '" y="' + (H - 4) + '" text-anchor="middle">' + esc(x.label) + '</text><text transform="translate(11 ' + (T + H - B) / 2 + ') rotate(-90)" text-anchor="middle">' + esc(y.label) + "</text>" + draw(X, Y) + "</svg>";
  };
  const path = (points, X, Y) => points.map(([x, y], k) => (k ? "L" : "M") + X(x).toFixed(1) + " " + Y(y).toFixed(1)).join("");
  const range = (values, least = 4) => { const low = Math.min(...values), high = Math.max(...values), mid = Math.sqrt(low * high); return high / low < least ? { low: mid / Math.sqrt(least) / 1.1, high: mid * Math.sqrt(least) * 1.1 } : { low: low / 1.15, high: high * 1.15 }; };
  const BATCHES = Array.from({ length: 53 }, (_, k) => Math.pow(2, k / 4));

  const drawUsers = (q, one, near) => {
    const most = Math.max(one.batch * 2, 64), line = A.overBatches(q, one.context, BATCHES.filter((b) => b <= Math.max(most, 1024)));
    if (!line.length) return "";
    const bar = one.high / one.seconds, dots = near.filter((r) => r.same);
    const y = range([...line.map((p) => 1e3 * p.seconds), ...dots.map((r) => 1e3 * r.seconds), 1e3 * one.low, 1e3 * one.high]), x = { low: 0.9, high: Math.max(line[line.length - 1].batch, one.batch, ...dots.map((r) => r.users)) * 1.15 };
    return plane({ ...x, label: "users at a time" }, { ...y, label: "ms a token" }, (X, Y) => {
      const up = line.map((p) => [p.batch, Math.min(1e3 * p.seconds * bar, y.high)]), down = line.map((p) => [p.batch, Math.max((1e3 * p.seconds) / bar, y.low)]).reverse();
      return '<path class="band" d="' + path(up.concat(down), X, Y) + 'Z"/><path class="curve c0" d="' + path(line.map((p) => [p.batch, 1e3 * p.seconds]), X, Y) + '"/>'
        + dots.map((r) => '<a href="' + esc(r.url) + '" target="_blank" rel="noopener" tabindex="-1" aria-label="' + esc(r.publisher + ", " + time(r.seconds) + ", " + r.users + " users") + '"><circle class="dot c3' + (r.n === q.n_chips && (!r.weights || D.same[r.weights] === D.same[q.weights]) ? "" : " other") + '" cx="' + X(Math.max(r.users, x.low)) + '" cy="' + Y(1e3 * r.seconds) + '" r="3.5"><title>' + esc(r.publisher + ": " + time(r.seconds) + " a token, " + r.n + " x " + r.chip + ", " + r.users + " users, " + digits(r.context) + " tokens" + (r.weights ? ", " + r.weights : "")) + "</title></circle></a>").join("")
        + '<circle class="here" cx="' + X(one.batch) + '" cy="' + Y(1e3 * one.seconds) + '" r="5.5"/>';
    });
  };
  const counts = (q) => [1, 2, 4, 8, 16, 32, 64, 72].concat([q.n_chips]).filter((n, k, list) => list.indexOf(n) === k);
  const drawFrontier = (q, one) => {
    if (one.price == null) return '<p class="missing">No price of ' + esc(q.chip) + " is known, so nothing can be said of cost. Type one on the left.</p>";
    const points = [];
    counts(q).forEach((n) => ["tp", ...(A.sparse(A.model(q)) ? ["copies"] : [])].forEach((layout) => {
      const at = { ...q, n_chips: n, layout, split: 1 };
      if (layout === "copies" && n < 2) return;
      A.overBatches(at, one.context, BATCHES.filter((_, k) => k % 2 === 0)).forEach((p) => points.push([1 / p.seconds, p.dollars, n, layout, p.batch]));
    }));
    let lowest = Infinity;
    const line = points.sort((a, b) => b[0] - a[0] || a[1] - b[1]).filter((p) => p[1] < lowest && ((lowest = p[1]), true)), here = [one.speed, one.dollars];
    if (!line.length) return "";
    return plane({ ...range([...line, here].map((p) => p[0])), label: "tokens/s for a user" }, { ...range([...line, here].map((p) => p[1])), label: "$ a million tokens" }, (X, Y) => '<path class="curve c0" d="' + path(line, X, Y) + '"/>' + line.map((p) => '<circle class="dot c0" cx="' + X(p[0]) + '" cy="' + Y(p[1]) + '" r="2.5"><title>' + esc(p[2] + " chips, " + (p[3] === "tp" ? "TP" : "DP + EP") + ", " + Math.round(p[4]) + " users") + "</title></circle>").join("") + '<circle class="here" cx="' + X(here[0]) + '" cy="' + Y(here[1]) + '" r="5.5"/>');
  };

  // --- Answers ---------------------------------------------------------------------------------------------
  const tile = (name, value, note) => '<div class="tile"><span>' + name + "</span><b>" + value + (note ? ' <small>' + note + "</small>" : "") + "</b></div>";
  const told = (cautions) => (cautions.length ? '<details class="cautions" open><summary>' + cautions.length + (cautions.length > 1 ? " cautions" : " caution") + ": the interval is a hope</summary><ul>" + cautions.map((c) => "<li>" + esc(c) + "</li>").join("") + "</ul></details>" : '<p class="fine">No caution: questions like this were measured.</p>');
  const bar = (one) => {
    const counted = one.terms.filter((t) => t.counts && t.seconds > 0), hidden = one.terms.filter((t) => !t.counts && t.seconds > 0);
    return '<div class="stack" role="img" aria-label="Where the time goes">' + counted.map((t) => '<i class="c' + COLOUR[t.name] + '" style="width:' + (100 * t.seconds) / one.seconds + '%" title="' + t.name + '"></i>').join("") + '</div><p class="legend">' + counted.map((t) => '<span><i class="c' + COLOUR[t.name] + '"></i>' + t.name + " <b>" + digits(1e3 * t.seconds) + "</b></span>").join("") + (hidden.length ? '<span class="note">hidden: ' + hidden.map((t) => t.name + " " + digits(1e3 * t.seconds)).join(", ") + "</span>" : "") + "</p>";
  };
  const gauge = (fit) => {
    if (!fit || fit.has == null) return '<p class="note">The chip states no memory.</p>';
    const share = fit.needs / fit.has, over = share > 1;
    return '<div class="gauge' + (over ? " over" : "") + '" role="img" aria-label="Memory"><i class="c2" style="width:' + Math.min(100, 100 * share) + '%"></i></div><p class="legend"><span><b>' + GB(fit.needs) + "</b> of " + GB(fit.has) + (over ? ": <strong>does not fit</strong>" : ", " + digits(100 * share) + " %") + "</span></p>";
  };
  const gains = (list) => '<ol class="gains">' + list.map((g) => '<li><span class="name">' + g.name + '</span><span class="meter"><i class="' + (g.gain >= 1 ? "c0" : "c3") + '" style="width:' + Math.min(100, (100 * Math.abs(g.gain - 1)) / Math.max(0.5, ...list.map((o) => Math.abs(o.gain - 1)))) + '%"></i></span><b>' + (g.gain >= 1 ? "×" + g.gain.toFixed(2) : "×" + g.gain.toFixed(2)) + "</b></li>").join("") + "</ol>";
  const rows = (near, q) => '<div class="scroll" tabindex="0" role="region" aria-label="Measured neighbours"><table class="near"><thead><tr><th scope="col">measured</th><th scope="col">on</th><th scope="col">users</th><th scope="col">tokens</th><th scope="col">ms</th><th scope="col" title="the same row, asked of this page">here</th></tr></thead><tbody>' + near.slice(0, 4).map((r) => {
    const layout = r.dp > 1 ? { layout: "copies", split: r.tp } : { layout: r.tp < r.n ? "stages" : "tp", split: r.tp < r.n ? r.n / r.tp : 2 };
    const again = { ...q, own: null, changed: {}, model: r.model, chip: r.chip, n_chips: r.n, ...layout, weights: !r.weights ? q.weights : D.formats.weights[r.weights] ? r.weights : "bf16", wide: r.weights === q.weights ? q.wide : r.weights === "mxfp4", drafted: 0, engine: "", users: r.users, cached: 0, output: r.output, prompt: r.context - r.output / 2 };
    const same = r.output ? A.request(again) : A.step(again, r.users, r.context); // served rows have prompts in between
    return '<tr><th scope="row"><a href="' + esc(r.url) + '" target="_blank" rel="noopener">' + esc(r.publisher.replace("aiconfigurator silicon sample / ", "")) + "</a></th><td>" + esc((r.alike ? "" : r.model.replace(/^.*\//, "") + ", ") + r.n + " × " + r.chip + (r.weights ? ", " + r.weights : "")) + '</td><td class="n">' + digits(r.users) + '</td><td class="n">' + digits(r.context) + '</td><td class="n"><b>' + digits(1e3 * r.seconds) + '</b></td><td class="n">' + (same.status === "ok" ? digits(1e3 * (r.output ? same.token : same.seconds)) : "n/a") + "</td></tr>";
  }).join("") + "</tbody></table></div>";
  const reach = (q, one) => {
    const goals = [];
    if (S.ms != null) goals.push(["reach " + digits(S.ms) + " ms a token", (s) => 1e3 * s <= S.ms]);
    if (S.usd != null) goals.push(["reach $" + digits(S.usd) + " a million", (s, cost) => cost != null && cost <= S.usd]);
    if (!goals.length) return '<p class="note">Type a goal: what would have to change, one thing at a time?</p>';
    const holds = (s, cost) => goals.every(([, f]) => f(s, cost));
    if (holds(one.seconds, one.dollars)) return '<p class="note">It is reached already.</p>';
    const found = A.needed(q, one.batch, one.context, holds);
    return '<ol class="gains">' + found.filter((f) => f.factor).sort((a, b) => a.factor - b.factor).map((f) => '<li><span class="name">' + f.name + "</span><b>" + (/users/.test(f.name) ? digits(/more/.test(f.name) ? Math.ceil(one.batch * f.factor) : Math.floor(one.batch / f.factor)) + " users" : "×" + digits(f.less ? 1 / f.factor : f.factor)) + "</b></li>").join("") + '</ol><p class="note">' + (found.every((f) => !f.factor) ? "No single change reaches it." : "Alone not enough: " + found.filter((f) => !f.factor).map((f) => f.name).join(", ") + ".") + "</p>";
  };
  const tabs = () => '<div class="tabs" role="group" aria-label="Which picture">' + [["users", "ms over users"], ["frontier", "Frontier"]].map(([name, label]) => '<button type="button" data-view="' + name + '" aria-pressed="' + (view === name) + '">' + label + "</button>").join("") + "</div>";

  const ensure = (kind) => { const panes = part("panes"); if (panes.dataset.kind === kind) return; panes.dataset.kind = kind; panes.innerHTML = kind === "decide" ? DECIDE : STEP; };
  const goal = '<span class="goal">to reach <label><input type="number" data-key="ms" min="0.001" max="100000" step="any" data-empty aria-label="Goal: ms a token"> ms</label> or <label>$ <input type="number" data-key="usd" min="0.0001" max="100000" step="any" data-empty aria-label="Goal: dollars a million tokens"></label></span>';
  const STEP = '<div class="col"><section class="buys" aria-label="What a change buys"><h4>What one change buys <small>(× as fast)</small></h4><div data-part="gains"></div></section><section class="reach" aria-label="What must change"><h4>What must change</h4>' + goal + '<div data-part="reach"></div></section></div><div class="col"><section class="fit" aria-label="Memory and measurements"><h4>Memory</h4><div data-part="gauge"></div><h4>Nearest measured <small>(<i>here</i>: this page, asked the same)</small></h4><div data-part="near"></div></section><section class="picture" aria-label="Picture"><div data-part="tabs"></div><div data-part="picture"></div></section></div>';
  const DECIDE = '<section class="wide" aria-label="Offers"><h4>The best of each chip</h4><div data-part="offers"></div></section><section class="picture" aria-label="Frontier"><h4>Frontier: what a request costs against the speed of a user</h4><div data-part="picture"></div></section><section class="misses" aria-label="What fails"><h4>What fails</h4><div data-part="misses"></div></section>';
  const html = (name, text) => { const node = part(name); if (node && node.dataset.now !== text) { node.innerHTML = text; node.dataset.now = text; } };
  const refusal = (title, text, fit) => { html("head", '<p class="refusal" role="alert"><strong>' + title + "</strong> " + esc(text) + "</p>"); ["gains", "near", "picture", "reach", "tabs"].forEach((name) => html(name, "")); html("gauge", fit ? gauge(fit) : ""); };

  const costLine = (q, one) => (one.price == null ? '<p class="missing">No price of ' + esc(q.chip) + " is known: no cost is shown. Type one.</p>" : "");
  const drawStep = (q) => {
    const r = S.mode === "request", one = r ? A.request(q) : A.step(q, q.batch, q.context);
    shown = one;
    if (one.status !== "ok") { refusal(one.status === "n/a" ? "No answer:" : "Does not fit:", one.reason, one.fit); return; }
    const big = r
      ? '<div class="big"><b>' + time(one.first) + '</b> to the first token<small>80 %: ' + span(one.firstLow, one.firstHigh) + '</small></div><div class="big"><b>' + time(one.token) + "</b> a token then<small>80 %: " + span(one.tokenLow, one.tokenHigh) + "</small></div>"
      : '<div class="big"><b>' + time(one.seconds) + "</b> a token<small>80 %: " + span(one.low, one.high) + "</small></div>";
    const tiles = r
      ? [tile("tokens/s a user", digits(one.speed)), tile("users served", digits(one.running)), tile("$ a million in", one.million ? usd(one.million.input) : "n/a"), tile("cached", one.million ? usd(one.million.cached) : "n/a"), tile("out", one.million ? usd(one.million.output) : "n/a"), tile("a request", one.request == null ? "n/a" : digits(100 * one.request) + " ¢"), tile("joules a token", one.joules == null ? "n/a" : digits(one.joules), one.promptJoules == null ? "" : "prompt " + digits(one.promptJoules)), tile("bound by", one.binding)]
      : [tile("tokens/s a user", digits(one.speed)), tile("tokens/s a chip", digits(one.perChip)), tile("$ a million", usd(one.dollars)), tile("joules a token", one.joules == null ? "n/a" : digits(one.joules)), tile("bound by", one.binding)];
    html("head", '<div class="bigs">' + big + '<div class="tiles">' + tiles.join("") + "</div></div>" + (one.drafts ? '<p class="drafted">With ' + S.drafted + " drafts: <b>" + time(one.drafts.token) + "</b> a token, ×" + one.drafts.gain.toFixed(2) + ' <small>(verifying ' + time(one.drafts.verify) + ", a draft " + time(one.drafts.draft) + "; all else here without drafts)</small></p>" : "") + bar(one) + costLine(q, one) + told(one.cautions));
    const near = A.neighbours(q, one.batch, one.context, 60);
    html("gains", gains(A.changes(q, one.batch, one.context)));
    html("gauge", gauge(one.fit));
    html("near", rows(near, q));
    html("tabs", tabs());
    html("picture", view === "users" ? drawUsers(q, one, near) : drawFrontier(q, one));
    html("reach", reach(q, one));
  };

  // The search runs in slices of a frame.
  const drawDecide = (q) => {
    const ticket = ++search, out = A.search(), list = A.machines(q), before = performance.now();
    shown = null;
    let k = 0;
    if (!list.length) { refusal("Nothing to choose from:", "no chip has a price. Give one in the price list."); html("offers", ""); html("misses", ""); return; }
    const slice = () => {
      if (ticket !== search) return;
      const until = performance.now() + 12;
      while (k < list.length && performance.now() < until) A.judge(q, list[k++], out);
      if (k < list.length) { if (k > 40) html("head", '<p class="note">' + k + " of " + list.length + " machines asked</p>"); setTimeout(slice, 0); return; }
      drawDecision(q, A.decided(out), list.length, performance.now() - before);
    };
    slice();
  };
  const drawDecision = (q, out, tried, took) => {
    shown = out;
    const best = out.best, count = {};
    out.misses.forEach((m) => { count[m.reason] = (count[m.reason] || 0) + 1; });
    const failed = Object.entries(count).map(([reason, n]) => reason + " " + n).join(", ");
    if (!best) html("head", '<p class="refusal"><strong>Nothing keeps the promise.</strong> ' + tried + " machines were asked: " + failed + ".</p>");
    else html("head", '<div class="bigs"><div class="big"><b>' + best.n + " × " + esc(best.chip) + "</b> " + best.layout + ", " + best.users + " users<small>the cheapest of " + out.offers.length + " that keep the promise, " + tried + " machines asked</small><small>80 %: " + span(best.tokenLow, best.tokenHigh) + " a token, " + span(best.firstLow, best.firstHigh) + ' to the first</small></div><div class="tiles">' + [tile("a request", digits(100 * best.dollars) + " ¢"), tile("$ a million out", usd(best.million)), tile("tokens/s a user", digits(best.speed)), tile("first token", time(best.first))].join("") + "</div></div>" + told(best.cautions));
    const offers = best ? [best, ...out.runnersUp] : [];
    html("offers", offers.length ? '<div class="scroll" tabindex="0" role="region" aria-label="Offers"><table><thead><tr><th scope="col">machine</th><th scope="col">layout</th><th scope="col">users</th><th scope="col">tokens/s</th><th scope="col">first token</th><th scope="col">¢ a request</th><th scope="col">$/M out</th><th scope="col" title="cautions" aria-label="cautions">⚠</th></tr></thead><tbody>' + offers.map((o, k) => '<tr><th scope="row"><button type="button" data-offer="' + k + '" title="Look at it as a request">' + o.n + " × " + esc(o.chip) + "</button></th><td>" + o.layout + '</td><td class="n">' + o.users + '</td><td class="n">' + digits(o.speed) + '</td><td class="n">' + time(o.first) + '</td><td class="n"><b>' + digits(100 * o.dollars) + '</b></td><td class="n">' + usd(o.million) + '</td><td>' + (o.cautions.length ? '<span title="' + esc(o.cautions.join("; ")) + '">' + o.cautions.length + "</span>" : "none") + "</td></tr>").join("") + "</tbody></table></div>" : "");
    html("misses", '<p class="note">' + (failed ? "Of " + tried + " machines: " + failed + "." : "None.") + "</p><ul>" + out.misses.slice().sort((a, b) => a.times - b.times).slice(0, best ? 3 : 6).map((m) => "<li>" + m.n + " × " + esc(m.chip) + ", " + m.layout + ": " + m.reason + ", " + esc(m.detail) + "</li>").join("") + "</ul>");
    const line = out.frontier;
    html("picture", line.length ? plane({ ...range(line.map((p) => p.speed)), label: "tokens/s for a user" }, { ...range(line.map((p) => 100 * p.dollars)), label: "¢ a request" }, (X, Y) => '<path class="curve c0" d="' + path(line.map((p) => [p.speed, 100 * p.dollars]), X, Y) + '"/>' + line.map((p) => '<circle class="dot c0" cx="' + X(p.speed) + '" cy="' + Y(100 * p.dollars) + '" r="3"><title>' + esc(p.n + " x " + p.chip + ", " + p.layout + ", " + p.users + " users, first token " + time(p.first)) + "</title></circle>").join("") + (q.speed && q.speed > range(line.map((p) => p.speed)).low ? '<line class="now" x1="' + X(q.speed) + '" x2="' + X(q.speed) + '" y1="6" y2="164"/>' : "") + (best ? '<circle class="here" cx="' + X(best.speed) + '" cy="' + Y(100 * best.dollars) + '" r="5.5"/>' : "")) : "");
    say();
  };

  // --- The five sources -----------------------------------------------------------------------------------
  const drawSources = () => {
    const fold = part("sources-fold"), q = asked();
    fold.hidden = S.mode === "decide";
    if (!fold.open || S.mode === "decide") return;
    const found = A.sources(q, shown && shown.status === "ok" ? shown.batch : q.batch, shown && shown.status === "ok" ? shown.context : q.context);
    if (found.refused) { html("sources", '<p class="note">' + esc(found.refused) + "</p>"); return; }
    const longest = Math.max(...found.answers.map((a) => a.value || 0));
    html("sources", '<div class="scroll" tabindex="0" role="region" aria-label="The five sources"><table class="five"><tbody>' + found.answers.map((a) => '<tr><th scope="row">' + esc(a.name) + "</th><td>" + (a.na ? '<span class="note">' + esc(a.na) + "</span>" : '<div class="stack" style="width:' + (100 * a.value) / longest + '%">' + a.terms.filter((t) => t.counts).map((t) => '<i class="t-' + (D.palette[t.name] === undefined ? 7 : D.palette[t.name]) + " c" + (D.palette[t.name] === undefined ? 7 : D.palette[t.name]) + '" style="width:' + (100 * t.seconds) / a.value + '%" title="' + t.name + " " + digits(1e3 * t.seconds) + ' ms"></i>').join("") + "</div>") + '</td><td class="n"><b>' + (a.na ? "" : digits(1e3 * a.value) + " ms") + "</b></td><td>" + (a.na ? "" : esc(a.terms.filter((t) => t.counts).sort((x, y) => y.seconds - x.seconds)[0].name)) + "</td><td>" + esc(a.chosen || "") + "</td></tr>").join("") + '</tbody></table></div><p class="note">One tensor-parallel instance on all chips, weights of one size without scales. The chapters search more layouts.</p>');
  };

  // --- Python, CSV, speech -----------------------------------------------------------------------------------
  const python = () => {
    const q = asked(), l = A.layout(q, A.model(q)), quote = (t) => JSON.stringify(t), weights = D.as_weights[q.weights], w = typeof weights === "number" ? String(weights) : quote(weights);
    const model = "inferlib.load_model(" + (S.own ? '"config.json"' : quote(S.model)) + ")", extra = (q.wide ? ', keep={"attention": "bf16"}' : "") + (q.engine ? ", engine=" + quote(q.engine) : "");
    if (S.mode === "decide") return "inferlib.serving.decide(" + model + ", speed=" + (q.speed == null ? "None" : q.speed) + ", first_token=" + (q.wait == null ? "None" : q.wait) + ", prompt_tokens=" + q.prompt + ", output_tokens=" + q.output + ", cached_tokens=" + q.cached + ", weights=" + w + ", cache=" + quote(q.cache) + (q.sure ? ", sure=True" : "") + (q.only ? ", chips=[" + quote(q.only) + "]" : "") + (Object.keys(q.prices).length ? ", prices=" + JSON.stringify(q.prices) : "") + extra + ")";
    const changed = Object.entries(q.changed).filter(([k]) => !k.startsWith("peak")).map(([k, v]) => k + "=" + v).join(", "), chip = "inferlib.load_chip(" + quote(q.chip) + ")" + (changed ? ".replace(" + changed + ")" : "");
    const system = "inferlib.System(" + chip + ", " + q.n_chips + ")", layout = q.layout === "tp" ? "" : ", layout=inferlib.Layout(tp=" + l.tp + ", pp=" + l.pp + ", ep=" + l.ep + ", dp=" + l.dp + ")";
    if (S.mode === "request") return "inferlib.serving.estimate_request(" + model + ", " + system + ", " + q.prompt + ", " + q.output + ", users=" + q.users + ", cached_tokens=" + q.cached + ", weights=" + w + ", cache=" + quote(q.cache) + layout + (q.price != null ? ", price=" + q.price : "") + extra + ")";
    return "inferlib.estimate(" + model + ", " + system + ", inferlib.Workload(" + q.batch + ", " + q.context + ", " + w + ", " + quote(q.cache) + ")" + layout + extra + ")";
  };
  const csv = () => {
    const cell = (v) => (/[",\n]/.test(v) ? '"' + String(v).replace(/"/g, '""') + '"' : String(v)), table = [["kind", "name", "value", "unit"]];
    PLAIN.forEach((key) => table.push(["input", key, S[key] == null ? "" : S[key], ""]));
    if (S.mode === "decide") {
      table.push([], ["chip", "chips", "layout", "users", "tokens_per_second", "first_token_s", "usd_per_request", "usd_per_million_output"]);
      (shown ? shown.offers : []).forEach((o) => table.push([o.chip, o.n, o.layout, o.users, o.speed, o.first, o.dollars, o.million]));
    } else if (shown && shown.status === "ok") {
      shown.terms.forEach((t) => table.push([t.counts ? "term" : "hidden term", t.name, t.seconds, "s"]));
      [["seconds", "s"], ["low", "s"], ["high", "s"], ["first", "s"], ["token", "s"], ["dollars", "$ a million"], ["request", "$"], ["joules", "J"]].forEach(([k, unit]) => { if (shown[k] != null) table.push(["output", k, shown[k], unit]); });
      shown.cautions.forEach((c) => table.push(["caution", c, "", ""]));
    } else table.push(["refusal", shown ? shown.reason : Object.values(refused).join("; "), "", ""]);
    return table.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  };
  let speaking = 0;
  const say = () => { clearTimeout(speaking); speaking = setTimeout(() => { part("said").textContent = part("head").textContent.replace(/\s+/g, " ").slice(0, 400); }, 900); };

  // --- Redraw -----------------------------------------------------------------------------------------------
  const draw = (besides) => {
    const begun = performance.now();
    search += 1;
    accepted();
    ensure(S.mode === "decide" ? "decide" : "step");
    showControls(besides);
    if (Object.keys(refused).length) { shown = null; refusal("Not asked:", Object.values(refused).join("; ")); html("offers", ""); html("misses", ""); }
    else if (S.mode === "decide") drawDecide(asked());
    else drawStep(asked());
    drawSources();
    say();
    root.dataset.took = (performance.now() - begun).toFixed(1);
  };
  let waiting = false;
  const later = (besides) => { if (waiting) return; waiting = true; requestAnimationFrame(() => { waiting = false; draw(besides); }); };
  root.addEventListener("input", (event) => {
    const c = event.target;
    if (c.dataset.for) { delete refused[c.dataset.for]; S[c.dataset.for] = fromRange(c, +c.value); }
    else if (c.dataset.key) { put(c.dataset.key, c.type === "checkbox" ? c.checked : c.type === "radio" ? c.value : c.value); if (c.tagName === "SELECT") chose(c.dataset.key); if (c.dataset.key === "price" && c.value.trim() === "") S.price = null; }
    else if (c.closest(".prices")) S.prices = c.value.slice(0, 4000);
    else return;
    later(c);
  });
  let linked = false;
  const remember = () => { try { history.replaceState(null, "", link()); linked = true; } catch (e) { linked = false; } };
  root.addEventListener("change", (event) => { if (event.target.dataset.key || event.target.dataset.for) { later(null); if (linked && !Object.keys(refused).length) remember(); } });
  root.addEventListener("submit", (event) => event.preventDefault());
  const brief = (button, text) => { const before = button.textContent; button.textContent = text; setTimeout(() => { button.textContent = before; }, 2200); };
  const copy = (text, button, done) => (navigator.clipboard ? navigator.clipboard.writeText(text).then(() => brief(button, done), () => brief(button, "see the address")) : brief(button, "see the address"));
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const act = button.dataset.act;
    if (button.dataset.view) { view = button.dataset.view; later(null); }
    else if (button.dataset.offer) {
      const o = [shown.best, ...shown.runnersUp][+button.dataset.offer];
      S = { ...S, mode: "request", chip: o.chip, n_chips: o.n, users: o.users, layout: o.l.dp > 1 ? "copies" : o.l.pp > 1 ? "stages" : "tp", split: o.l.dp > 1 ? o.l.tp : o.l.pp > 1 ? o.l.pp : 2, changed: {}, price: undefined };
      later(null);
    } else if (act === "reset") { S = { ...START, changed: {} }; refused = {}; part("config-error").textContent = ""; later(null); }
    else if (act === "link") { remember(); copy(location.href, button, "copied"); }
    else if (act === "python") { const text = python(); copy(text, button, "copied"); part("python").textContent = text; part("python").hidden = false; }
    else if (act === "csv") { const file = document.createElement("a"); file.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" })); file.download = "ask.csv"; file.click(); setTimeout(() => URL.revokeObjectURL(file.href), 1000); }
    else if (act === "config") {
      const error = part("config-error"), text = root.querySelector(".own textarea").value;
      try { S.own = readConfig(text); delete refused.own; error.textContent = ""; root.querySelector(".own").open = false; }
      catch (problem) { error.textContent = problem.message + ". In Python, which knows more families: inferlib.estimate(inferlib.load_model(\"config.json\"), system, workload)"; }
      later(null);
    }
  });
  part("sources-fold").addEventListener("toggle", () => later(null));
  follow(location.hash);
  linked = location.hash.startsWith("#ask?");
  ensure(S.mode === "decide" ? "decide" : "step");
  draw();
  window.addEventListener("hashchange", () => { if (follow(location.hash)) later(null); });
  if (linked) window.addEventListener("load", () => root.scrollIntoView());
  return { A, state: () => S, set: (key, value) => { put(key, value); if (control(key).tagName === "SELECT") chose(key); draw(); return +root.dataset.took; }, link, python, csv, answer: () => shown };
};
