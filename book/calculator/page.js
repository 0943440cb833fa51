// The page of the instrument: what a reader sets goes into one state; what is drawn comes from ask.js.
globalThis.inferlibPage = function (root, D) {
  "use strict";
  const A = inferlibAsk(D), W = 430;
  const all = (query) => [...root.querySelectorAll(query)], part = (name) =>
    root.querySelector('[data-part="' + name + '"]');
  const control = (key) => root.querySelector('[data-key="' + key + '"]');
  const esc = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;",
    '"': "&quot;" })[c]);
  const digits = (v) => {
    if (v == null || !Number.isFinite(v)) return "n/a";
    const size = Math.abs(v);
    if (v === 0) return "0";
    if (size >= 1e7 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3));
  };
  const time = (s) => (s == null ? "n/a" : s >= 1 ? digits(s) + " s" : digits(1e3 * s) + " ms");
  const span = (a, b) => (b >= 1 ? digits(a) + " to " + digits(b) + " s" : digits(1e3 * a) + " to "
    + digits(1e3 * b) + " ms");
  const usd = (v) => (v == null ? "n/a" : "$" + (v > 0 && v < 1e-3 ? v.toFixed(6) : digits(v)));
  const GB = (bytes) => digits(bytes / 1e9) + " GB";

  // --- The state -------------------------------------------------------------------------------------------
  const form = D.form, has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const START = { ...form.start, own: null, changed: {}, goal: null, dollars: null,
    measured: null, memory: null, electricity: null, pue: null, utilisation: null, price: undefined };
  let S = { ...START }, refused = {}, shown = null, search = 0, view = "users";
  const CHIP = all(".changed [data-key]").map((c) => c.dataset.key), isChanged = (key) => CHIP.includes(key);
  const listed = () => {
    const found = {}, wrong = [];
    S.prices.split(/\n|;/).map((line) => line.trim()).filter(Boolean).forEach((line) => {
      const [name, number] = [line.slice(0, line.lastIndexOf(":")).trim(), +line.slice(line.lastIndexOf(":")
        + 1).replace("$", "")];
      const known = Object.keys(D.chips).find((chip) => chip.toLowerCase() === name.toLowerCase());
      if (known && number > 0 && number <= 1e4) found[known] = number; else wrong.push(line.slice(0, 60));
    });
    return { found, wrong };
  };
  const asked = (of = S) => {
    const share = String(of.cached).endsWith("%"), cached = share ? (of.prompt * parseFloat(of.cached)) / 100
      : of.cached;
    const q = { ...of, prices: listed().found, cached, speed: of.token && 1 / of.token,
      wait: of.first_token };
    if (of.mode === "decide") {
      if (of.only) q.chip = of.only;
      Object.assign(q, { price: undefined, electricity: null, pue: null, changed: {} });
    }
    return q;
  };
  const label = (c) => (c.labels && c.labels[0] ? c.labels[0].textContent.trim() : c.dataset.key);
  const put = (key, text) => {
    const c = control(key);
    delete refused[key];
    if (key === "keep") {
      const kept = A.keepOf(text);
      if (kept) S.keep = kept;
      else refused.keep = "Keep: " + text.slice(0, 40) + " is not like attention=bf16";
    } else if (!has(form.numbers, key))
      S[key] = c && c.type === "checkbox" ? text === true || text === "1" : text;
    else if (String(text).trim() === "" && form.numbers[key].empty) {
      if (isChanged(key)) { S.changed = { ...S.changed }; delete S.changed[key]; } else S[key] = null;
    } else {
      const v = A.read(key, text), { units: known, whole } = form.numbers[key];
      const units = has(known, "%") ? ["%, as in 40% or 0.4"] : whole ? []
        : Object.keys(known).filter(Boolean);
      if (Number.isNaN(v)) refused[key] = (c ? label(c) : key) + ": " + (String(text).slice(0, 40)
        || "nothing")
        + " is no number that fits" + (units.length ? "; units: " + units.join(", ") : "");
      else if (isChanged(key)) S.changed = { ...S.changed, [key]: v };
      else S[key] = v;
    }
  };
  // Choosing a chip brings its own numbers and its own price or none.
  const chose = (key) => {
    if (key === "model") S.own = null;
    if (key === "chip") { S.changed = {}; S.price = undefined;
      Object.keys(refused).filter((k) => isChanged(k) || k === "price").forEach((k) => delete refused[k]); }
    if (key === "layout") S.split = S.layout === "copies" ? 1 : 2;
  };
  // A measured curve says how many tokens a step yields; nobody measured more drafts than it has.
  const accepted = () => {
    const lengths = S.curve && D.accepted[S.curve];
    delete refused.length;
    if (lengths && S.drafted) { if (S.drafted > lengths.length) refused.length = "Drafts a step: " + S.curve
      + " was measured with at most " + lengths.length; else S.length = lengths[S.drafted - 1]; }
    else if (S.drafted && S.length > S.drafted + 1) refused.length = "Tokens a step: " + S.length
      + " is more than the drafts and one";
  };
  // A link says the fields that differ from the question at the start, in words.
  const link = () => {
    const said = (of) => ({ ...A.said(asked(of)), cached: of.cached, goal: of.goal && A.told("goal", of.goal),
      measured: of.measured && A.told("measured", of.measured), dollars: of.dollars,
      length: of.drafted ? of.curve || of.length : null, prices: of.prices.split("\n").join(";") });
    const now = said(S), start = said({ ...START, mode: S.mode });
    const pairs = [["mode", S.mode], S.own ? ["own", JSON.stringify(S.own)] : ["model", S.model]];
    for (const key in { ...start, ...now }) {
      const value = now[key] == null ? "" : now[key] === true ? "yes" : now[key];
      const usual = start[key] == null ? "" : start[key];
      if (key !== "model" && (key === "machine" || String(value) !== String(usual))) pairs.push([key, value]);
    }
    for (const key in S.changed) pairs.push([key,
      +(S.changed[key] / form.numbers[key].units[""][0]).toPrecision(12)]);
    return "#ask?" + pairs.map(([key, value]) => key + "=" + encodeURIComponent(value)).join("&");
  };
  // A model in a link, as tokenprice.link counts it: null where this page cannot ask it.
  const ownOf = (text) => {
    const good = (n) => typeof n === "number" && n >= 0 && n < 1e16;
    const all = (list, n, fits) => Array.isArray(list) && (n == null || list.length === n)
      && list.every(fits);
    const format = (f) => has(D.formats.each, Array.isArray(f) && f.length === 2 && good(f[0]) ? f[1] : f);
    const part = (p) => p === null || (all(p, null, (n, k) => !k || good(n)) && A.kindOf(p[0])
      && A.kindOf(p[0]).names.length === p.length - 1);
    const group = (g) => all(g, 3, (one, k) => (k ? part(one) : one >= 1 && good(one))) && (g[1] || g[2]);
    try {
      const own = JSON.parse(text), [weights, parts, cache] = own.formats, told = own.told || [];
      return [own.d_model, own.vocab_size].every((n) => n >= 1 && good(n)) && all(own.layers, null, group)
        && own.layers.some((g) => g[1]) && all(own.stored, D.stored.length, good) && format(weights)
        && all(parts, D.parts.length, format) && has(D.formats.cache, cache) && all(told, null, (t) =>
          typeof t === "string") && (!own.factors || all(own.factors, 3, (n) => n >= 1 && good(n)))
        ? { ...own, name: String(own.name || "a model of yours").slice(0, 80) } : null;
    } catch (e) { return null; }
  };
  // A model or a chip by any name that the catalogue knows; else as it was typed.
  const known = (what, text) => {
    const words = text.toLowerCase().replace(/^.*\//, "").split(/[\s_-]+/);
    return D.names[what][words.join("")] || D.names[what][words.slice(0, -1).join("")] || text;
  };
  const offered = (key, value) => [...control(key).options].some((o) => o.value === value);
  // What a field of a link sets, where the page shows it in parts; false where it cannot be read.
  const FIELDS = {
    machine: (text) => {
      const [, n, name] = /^(\d+)\s*[x×]\s*(.+)$/i.exec(text) || [], chip = name && known("chip", name);
      return n && offered("chip", chip) && +n >= 1 && Object.assign(S, { chip, n_chips: +n, changed: {},
        price: undefined });
    },
    layout: (text) => {
      if (offered("layout", text)) return Object.assign(S, { layout: text });
      const [tp, pp, dp, ep] = ["tp", "pp", "dp", "ep"].map((name) => +(new RegExp(name + "(\\d+)",
        "i").exec(text) || [0, 1])[1]);
      Object.assign(S, A.placed({ tp, pp, dp, ep }));
      return tp * pp * dp === S.n_chips && (ep === 1 || ep === S.n_chips && pp === 1);
    },
    chips: (text) => offered("only", text) && Object.assign(S, { only: text }),
    model: (text) => offered("model", known("model", text))
      && Object.assign(S, { model: known("model", text) }),
    sure: (text) => ["yes", "1", "0"].includes(text) && Object.assign(S, { sure: text !== "0" }),
    wide: (text) => ["1", "0"].includes(text) && Object.assign(S, { keep: text === "1" ? { attention: "bf16" }
      : {} }),
    length: (text) => {
      if (has(D.accepted, text)) return Object.assign(S, { curve: text });
      put("length", text);
      return true;
    },
    prices: (text) => Object.assign(S, { prices: text.split(";").join("\n").slice(0, 4000) }),
    own: (text) => Object.assign(S, { own: ownOf(text) }).own,
    mode: (text) => ["step", "request", "decide"].includes(text) && Object.assign(S, { mode: text }),
    share: (text) => (put("cached", text + "%"), true),
    speed: (text) => (put("token", text && text + " tokens/s"), true),
    wait: (text) => (put("first_token", text), true),
    ms: (text) => (put("goal", text && text + " ms"), true),
    usd: (text) => (put("dollars", text), true),
  };
  const ORDER = ["mode", "model", "chip", "n_chips", "machine"];
  const follow = (hash) => {
    const [slug, pairs] = (hash || "").replace(/^#/, "").split("?");
    if (slug !== "ask" || !pairs) return false;
    S = { ...START, changed: {} };
    refused = {};
    ensure("step");
    const given = [];
    pairs.split("&").forEach((pair) => {
      const at = pair.indexOf("=");
      try { given.push([pair.slice(0, at), pair.slice(at + 1)].map(decodeURIComponent)); }
      catch (e) { refused[pair.slice(0, 40)] = "The link is damaged at " + pair.slice(0, 40); }
    });
    const place = ([key]) => (ORDER.includes(key) ? ORDER.indexOf(key) - ORDER.length : 0);
    given.sort((a, b) => place(a) - place(b)).forEach(([key, value]) => {
      const c = /^\w+$/.test(key) && control(key), told = key.slice(0, 40) + ": " + value.slice(0, 60);
      if (has(FIELDS, key)) { if (!FIELDS[key](value)) refused[key] = told + " is not offered"; }
      else if (!c) refused[key.slice(0, 40)] = "The link asks for " + key.slice(0, 40)
        + ", which is no input here";
      else if (c.tagName !== "SELECT") put(key, value);
      else if (offered(key, value)) { S[key] = value; if (key === "chip") Object.assign(S,
        { changed: {}, price: undefined }); }
      else refused[key] = told + " is not offered";
    });
    if (S.arrivals && !given.some(([key]) => key === "users")) S.users = null; // places of a machine
    const old = given.some(([key, value]) => has(form.older, key) || (key === "layout" && offered("layout",
      value)));
    part("older").hidden = !old;
    if (old) part("newer").href = link();
    return true;
  };

  // --- Controls --------------------------------------------------------------------------------------------
  // Sliders go by doublings, those of a share by per cent.
  const plain = (range) => range.dataset.for === "cached", steps = (range) => range.dataset.for === "n_chips";
  const most = (range) => (steps(range) ? 1024 : form.slides[/batch|users/.test(range.dataset.for) ? "users"
    : "tokens"]);
  const toRange = (range, v) => (!plain(range) ? Math.log2(Math.max(v, 1))
    : String(v).endsWith("%") ? parseFloat(v) : (100 * v) / S.prompt);
  const fromRange = (range, p) => {
    const v = Math.pow(2, steps(range) ? Math.round(p) : p);
    if (plain(range)) return p + "%";
    return v >= 64 && +v.toPrecision(2) > 9999 ? Math.round(v / 1024) * 1024 || 1024 : Math.round(v);
  };
  all("input[type=range]").forEach((range) => {
    const high = plain(range) ? 99 : Math.log2(most(range));
    Object.assign(range, { min: 0, max: high, step: plain(range) || steps(range) ? 1 : high / 200 });
  });
  const showControls = (besides) => {
    all("[data-mode]").forEach((row) => { row.hidden = !row.dataset.mode.split(" ").includes(S.mode); });
    all("[data-layout]").forEach((row) =>
      { if (!row.dataset.layout.split(" ").includes(S.layout)) row.hidden = true; });
    all("[data-key]").forEach((c) => {
      const key = c.dataset.key;
      if (c.type === "radio") { c.checked = c.value === S.mode; return; }
      if (c.type === "checkbox") { c.checked = S[key]; return; }
      if (c.tagName === "SELECT") { c.value = S[key]; return; }
      if (key === "keep" && c !== besides && !refused.keep) c.value = A.keeps(S.keep) || "";
      if (key === "keep") return;
      c.setAttribute("aria-invalid", key in refused ? "true" : "false");
      if (c === besides || key in refused) return;
      const { values, peaks } = A.chips[S.chip], own = key === "peak_16" ? values.chip_flops
        : key.startsWith("peak_") ? peaks[key.slice(5)] : values["chip_" + key];
      const v = isChanged(key) ? (has(S.changed, key) ? S.changed[key] : own)
        : key === "price" ? A.hourly(asked(), S.chip) : S[key];
      c.value = v == null ? "" : A.told(key, v);
    });
    all("input[type=range]").forEach((range) => { if (range !== besides) range.value = toRange(range,
      S[range.dataset.for]); range.setAttribute("aria-valuetext", A.told(range.dataset.for,
        S[range.dataset.for])); });
    control("model").classList.toggle("aside", Boolean(S.own));
    part("own").textContent = S.own ? "Asked: " + S.own.name + ", which the link brings." : "";
    const { weights, cache } = A.formats({ ...asked(), weights: "", cache: "", keep: {} }, A.model(asked()));
    [["weights", weights.kernel], ["cache", cache]].forEach(([key, name]) => {
      control(key).options[0].textContent = "the checkpoint's, " + name; });
    part("split-label").textContent = S.layout === "stages" ? "Stages" : "TP of a copy";
    const cost = A.hourly(asked(), S.chip), list = listed();
    part("price-note").textContent = S.price != null ? "$ an hour and chip, yours"
      : list.found[S.chip] !== undefined ? "$ an hour, your list" : cost == null ? "no list price: type one"
      : "$/h, " + D.chips[S.chip].source.split(",")[0];
    part("price-note").title = D.chips[S.chip].source;
    part("changed-label").textContent = Object.keys(S.changed).length ? "Numbers of this chip: "
      + Object.keys(S.changed).length + " changed" : "Numbers of this chip";
    part("prices-error").textContent = list.wrong.length ? "Not read: " + list.wrong.join("; ") : "";
    part("prices-label").textContent = Object.keys(list.found).length ? "Your price list: "
      + Object.keys(list.found).length + " chips" : "A price list of your own";
    const area = root.querySelector(".prices textarea");
    if (area !== besides) area.value = S.prices;
    const l = A.layout(asked(), A.model(asked()));
    part("words").textContent = Number.isInteger(l.tp) && Number.isInteger(l.dp) && Number.isInteger(l.pp)
      ? A.words(l) : "";
  };

  // --- Pictures --------------------------------------------------------------------------------------------
  const hue = (name) => "c" + (D.palette[name] ?? 7);
  const ticks = (low, high) => {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) (high / low < 12
      ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]).forEach((m) => { const t = m * Math.pow(10, e);
      if (t >= low * 0.999 && t <= high * 1.001) found.push(t); });
    return found.length > 9 ? found.filter((t) => /^1/.test(t.toExponential())) : found;
  };
  const plane = (x, y, draw) => {
    const H = 202, L = 42, R = 8, T = 6, B = 38, X = (v) => L
      + ((W - L - R) * Math.log(v / x.low)) / Math.log(x.high / x.low), Y = (v) =>
      H - B - ((H - T - B) * Math.log(v / y.low)) / Math.log(y.high / y.low);
    const lines = ticks(x.low, x.high).map((t) => '<line class="grid" x1="' + X(t) + '" x2="' + X(t)
      + '" y1="' + T + '" y2="' + (H - B) + '"/><text x="' + X(t) + '" y="' + (H - B + 14)
      + '" text-anchor="middle">' + (t >= 1e4 ? t / 1e3 + "k" : +t.toPrecision(3)) + "</text>").join("")
      + ticks(y.low, y.high).map((t) => '<line class="grid" x1="' + L + '" x2="' + (W - R) + '" y1="' + Y(t)
        + '" y2="' + Y(t) + '"/><text x="' + (L - 5) + '" y="' + (Y(t) + 4) + '" text-anchor="end">'
        + +t.toPrecision(3) + "</text>").join("");
    return '<svg viewBox="0 0 ' + W + " " + H + '" role="group" aria-label="' + esc(x.label + " against "
      + y.label) + '">' + lines + '<text x="' + (L + W - R) / 2 + '" y="' + (H - 4)
      + '" text-anchor="middle">' + esc(x.label) + '</text><text transform="translate(11 ' + (T + H - B) / 2
      + ') rotate(-90)" text-anchor="middle">' + esc(y.label) + "</text>" + draw(X, Y) + "</svg>";
  };
  const path = (points, X, Y) => points.map(([x, y], k) => (k ? "L" : "M") + X(x).toFixed(1) + " "
    + Y(y).toFixed(1)).join("");
  const range = (values, least = 4) => { const low = Math.min(...values), high = Math.max(...values),
    mid = Math.sqrt(low * high); return high / low < least ? { low: mid / Math.sqrt(least) / 1.1,
    high: mid * Math.sqrt(least) * 1.1 } : { low: low / 1.15, high: high * 1.15 }; };
  const BATCHES = Array.from({ length: 53 }, (_, k) => Math.pow(2, k / 4));

  // What is drawn and compared: a step, or the time between tokens of a request, with its interval.
  const timeOf = (one) => (one.token == null ? [one.seconds, one.low, one.high]
    : [one.token, one.tokenLow, one.tokenHigh]);
  const overUsers = (q, all) => all.map(Math.round).flatMap((users) => {
    const one = A.request({ ...q, arrivals: null, users });
    return one.status === "ok" ? [{ batch: users, seconds: one.token }] : [];
  });
  const drawUsers = (q, one, near) => {
    const who = one.token == null || one.many ? one.batch : S.users || 1, stored = kernelOf(q);
    const most = Math.max(one.batch * 2, 1024), asked = BATCHES.filter((b, k) => b <= most
      && (S.mode === "step" || k % 4 === 0)), line = S.mode === "step" ? A.overBatches(q, one.context, asked)
      : overUsers(q, asked), at = timeOf(one), [seconds, low, high] = at;
    if (!line.length) return "";
    const bar = high / seconds, dots = near.filter((r) => r.same && !!r.output === (S.mode !== "step")
      && !(one.many && r.output)), own = S.measured
      ? [1e3 * S.measured] : [];
    const y = range([...own, ...line.map((p) => 1e3 * p.seconds), ...dots.map((r) => 1e3 * r.seconds),
      1e3 * low, 1e3 * high]), x = { low: 0.9, high: Math.max(line[line.length - 1].batch, who,
      ...dots.map((r) => r.users)) * 1.15 };
    return plane({ ...x, label: "users at a time" }, { ...y, label: "ms per token" }, (X, Y) => {
      const up = line.map((p) => [p.batch, Math.min(1e3 * p.seconds * bar, y.high)]), down = line.map((p) =>
        [p.batch, Math.max((1e3 * p.seconds) / bar, y.low)]).reverse();
      return '<path class="band" d="' + path(up.concat(down), X, Y) + 'Z"/><path class="curve c0" d="'
        + path(line.map((p) => [p.batch, 1e3 * p.seconds]), X, Y) + '"/>'
        + dots.map((r) => '<a href="' + esc(r.url)
          + '" target="_blank" rel="noopener" tabindex="-1" aria-label="' + esc(r.publisher + ", "
          + time(r.seconds) + ", " + r.users + " users") + '"><circle class="dot c3' + (r.n === q.n_chips
          && (!r.weights || D.same[r.weights] === D.same[stored]) ? "" : " other") + '" cx="'
          + X(Math.max(r.users, x.low)) + '" cy="' + Y(1e3 * r.seconds) + '" r="3.5"><title>'
          + esc(r.publisher + ": " + time(r.seconds) + " a token, " + r.n + " x " + r.chip + ", " + r.users
          + " users, " + digits(r.context) + " tokens" + (r.weights ? ", " + r.weights : ""))
          + "</title></circle></a>").join("")
        + '<circle class="here" cx="' + X(who) + '" cy="' + Y(1e3 * seconds) + '" r="5.5"/>'
        + own.map((v) => '<circle class="dot c1" cx="' + X(who) + '" cy="' + Y(v)
          + '" r="5.5"><title>mine: ' + digits(v) + " ms</title></circle>").join("");
    });
  };
  const counts = (q) => D.chips[q.chip].counts.concat([q.n_chips]).filter((n, k, list) =>
    list.indexOf(n) === k);
  const drawFrontier = (q, one) => {
    if (one.price == null) return '<p class="missing">No price of ' + esc(q.chip)
      + " is known, so nothing can be said of cost. Type one on the left.</p>";
    const points = [];
    counts(q).forEach((n) => ["tp", ...(A.sparse(A.model(q)) ? ["copies"] : [])].forEach((layout) => {
      const at = { ...q, n_chips: n, layout, split: 1 };
      if (layout === "copies" && n < 2) return;
      A.overBatches(at, one.context, BATCHES.filter((_, k) => k % 2 === 0)).forEach((p) =>
        points.push([1 / p.seconds, p.dollars, n, layout, p.batch]));
    }));
    let lowest = Infinity;
    const line = points.sort((a, b) => b[0] - a[0] || a[1] - b[1]).filter((p) => p[1] < lowest
      && ((lowest = p[1]), true)), here = [one.speed, one.dollars];
    if (!line.length) return "";
    return plane({ ...range([...line, here].map((p) => p[0])), label: "tokens/s for a user" },
      { ...range([...line, here].map((p) => p[1])), label: "$ a million tokens" }, (X, Y) =>
      '<path class="curve c0" d="' + path(line, X, Y) + '"/>' + line.map((p) => '<circle class="dot c0" cx="'
      + X(p[0]) + '" cy="' + Y(p[1]) + '" r="2.5"><title>' + esc(p[2] + " chips, " + (p[3] === "tp" ? "TP"
      : "DP + EP") + ", " + Math.round(p[4]) + " users") + "</title></circle>").join("")
      + '<circle class="here" cx="' + X(here[0]) + '" cy="' + Y(here[1]) + '" r="5.5"/>');
  };

  // --- Answers ---------------------------------------------------------------------------------------------
  const tile = (name, value, note) => '<div class="tile"><span>' + name + "</span><b>" + value
    + (note ? ' <small>' + note + "</small>" : "") + "</b></div>";
  const told = (cautions) => (cautions.length ? '<details class="cautions" open><summary>' + cautions.length
    + (cautions.length > 1 ? " cautions" : " caution") + "; each widens the interval</summary><ul>"
    + cautions.map((c) => "<li>" + esc(c) + "</li>").join("") + "</ul></details>"
    : '<p class="fine">No caution: questions like this were measured.</p>');
  const bar = (one) => {
    const others = one.others || 0, terms = one.terms.concat({ name: "prompts of others", seconds: others,
      counts: true });
    const [counted, hidden] = [true, false].map((counts) => terms.filter((t) => t.counts === counts
      && t.seconds > 0));
    return '<div class="stack" role="img" aria-label="Where the time goes">' + counted.map((t) =>
      '<i class="' + hue(t.name) + '" style="width:' + (100 * t.seconds) / (one.seconds + others)
      + '%" title="'
      + t.name + '"></i>').join("") + '</div><p class="legend">' + counted.map((t) => '<span><i class="'
      + hue(t.name) + '"></i>' + t.name + " <b>" + digits(1e3 * t.seconds) + "</b></span>").join("")
      + (hidden.length ? '<span class="note">hidden: ' + hidden.map((t) => t.name + " "
      + digits(1e3 * t.seconds)).join(", ") + "</span>" : "") + "</p>";
  };
  const gauge = (fit) => {
    if (!fit || fit.has == null) return '<p class="note">The chip states no memory.</p>';
    const share = fit.needs / fit.has, over = share > 1;
    return '<div class="gauge' + (over ? " over" : "")
      + '" role="img" aria-label="Memory"><i class="c2" style="width:' + Math.min(100, 100 * share)
      + '%"></i></div><p class="legend"><span><b>' + GB(fit.needs) + "</b> of " + GB(fit.has)
      + (over ? ": <strong>does not fit</strong>" : ", " + digits(100 * share) + " %") + "</span></p>";
  };
  const gains = (list) => '<ol class="gains">' + list.map((g) => '<li><span class="name">' + g.name
    + '</span><span class="meter"><i class="' + (g.gain >= 1 ? "c0" : "c3") + '" style="width:'
    + Math.min(100, (100 * Math.abs(g.gain - 1)) / Math.max(0.5, ...list.map((o) => Math.abs(o.gain - 1))))
    + '%"></i></span><b>' + (g.gain >= 1 ? "×" + g.gain.toFixed(2) : "×" + g.gain.toFixed(2))
    + "</b></li>").join("") + "</ol>";
  const kernelOf = (q) => A.formats(q, A.model(q)).weights.kernel;
  const rows = (near, q) => '<div class="scroll" tabindex="0" role="region" aria-label="Measured ' +
    'neighbours"><table class="near"><thead><tr><th scope="col">measured</th><th scope="col">on</th><th ' +
    'scope="col">users</th><th scope="col">tokens</th><th scope="col">ms</th><th scope="col" title="the ' +
    'same row, asked of this page">here</th></tr></thead><tbody>' + near.slice(0, 4).map((r) => {
    const layout = r.dp > 1 ? { layout: "copies", split: r.tp } : { layout: r.tp < r.n ? "stages" : "tp",
      split: r.tp < r.n ? r.n / r.tp : 2 };
    const again = { ...q, own: null, changed: {}, model: r.model, chip: r.chip, n_chips: r.n, ...layout,
      ...(r.alike && r.weights === kernelOf(q) ? {} : { weights: has(D.formats.each, r.weights) ? r.weights
        : "",
        keep: r.weights === "mxfp4" ? { attention: "bf16" } : {} }),
      drafted: 0, engine: "", users: r.users,
      cached: 0, output: r.output, prompt: r.context - r.output / 2 };
    const same = r.output ? A.request(again) : A.step(again, r.users, r.context);
      // served rows have prompts in between
    const [here, low, high] = same.status === "ok" ? timeOf(same) : [];
    return '<tr><th scope="row"><a href="' + esc(r.url) + '" target="_blank" rel="noopener">'
      + esc(r.publisher.replace("aiconfigurator silicon sample / ", "")) + "</a></th><td>"
      + esc((r.alike ? "" : r.model.replace(/^.*\//, "") + ", ") + A.ofChip(r.n, r.chip) + (r.weights ? ", "
      + r.weights : "")) + '</td><td class="n">' + digits(r.users) + '</td><td class="n">'
      + digits(r.context) + '</td><td class="n"><b>' + digits(1e3 * r.seconds) + '</b></td><td class="n">'
      + (here == null ? "n/a" : digits(1e3 * here) + (r.seconds < low || r.seconds > high ? " (outside)"
        : " (inside)")) + "</td></tr>";
  }).join("") + '</tbody></table></div><p class="note">Inside or outside: of the interval of 80 % that '
    + "this page states for the row.</p>";
  const reach = (q, one) => {
    const goals = [];
    if (S.goal != null) goals.push(["reach " + time(S.goal) + " a token", (s) => s <= S.goal]);
    if (S.dollars != null)
      goals.push(["reach $" + digits(S.dollars) + " a million", (s, cost) => cost != null
        && cost <= S.dollars]);
    if (!goals.length) return '<p class="note">Type a goal: what would have to change, one thing at a ' +
      'time?</p>';
    const holds = (s, cost) => goals.every(([, f]) => f(s, cost));
    if (one.many) return '<p class="note">Of one machine: leave the arrivals out.</p>';
    if (S.mode === "request" ? holds(one.token, one.million && one.million.output)
      : holds(one.seconds, one.dollars)) return '<p class="note">It is reached already.</p>';
    const found = A.needed(q, one.batch, one.context, holds);
    return '<ol class="gains">' + found.filter((f) => f.factor).sort((a, b) =>
      a.factor - b.factor).map((f) => '<li><span class="name">' + f.name + "</span><b>"
      + (/users/.test(f.name) ? digits(/more/.test(f.name) ? Math.ceil(one.batch * f.factor)
      : Math.floor(one.batch / f.factor)) + " users" : "×" + digits(f.less ? 1 / f.factor : f.factor))
      + "</b></li>").join("") + '</ol><p class="note">' + (found.every((f) => !f.factor)
      ? "No single change reaches it." : "Alone not enough: " + found.filter((f) => !f.factor).map((f) =>
      f.name).join(", ") + ".") + "</p>";
  };
  const tabs = () => '<div class="tabs" role="group" aria-label="Which picture">'
    + [["users", "ms over users"], ["frontier", "Frontier"]].map(([name, label]) =>
    '<button type="button" data-view="' + name + '" aria-pressed="' + (view === name) + '">' + label
    + "</button>").join("") + "</div>";

  const ensure = (kind) => {
    const panes = part("panes");
    if (panes.dataset.kind === kind) return;
    panes.dataset.kind = kind;
    panes.innerHTML = part("panes-" + kind).innerHTML;
  };
  const html = (name, text) => { const node = part(name); if (node && node.dataset.now !== text) {
    node.innerHTML = text; node.dataset.now = text; } };
  const refusal = (title, text, fit) => { html("head", '<p class="refusal" role="alert"><strong>' + title
    + "</strong> " + esc(text) + "</p>"); ["gains", "near", "picture", "reach", "tabs"].forEach((name) =>
    html(name, "")); html("gauge", fit ? gauge(fit) : ""); };

  const costLine = (q, one) => (one.price == null ? '<p class="missing">No price of ' + esc(q.chip)
    + " is known: no cost is shown. Type one.</p>" : "");
  // How many machines for the arrivals, prompts read by all or apart, and the command for percentiles.
  const fleets = (q, one) => [one.many, one.apart].filter(Boolean).map((f) => '<p class="drafted">'
    + (f.readers ? "Prompts read apart: " + f.readers + " that read at " + digits(100 * f.readerLoad)
    + " % load, " : "All machines read and decode: ") + "<b>" + f.n + " × ("
    + esc(A.ofChip(q.n_chips, q.chip)) + ")</b> at " + digits(100 * f.state.busy) + " %, "
    + digits(f.state.held) + " answers at a time in each; <b>" + time(f.state.token)
    + "</b> a token, first token " + time(f.state.first)
    + (f.state.waits < 5e-4 ? ", nobody" : ", " + time(f.state.waits) + " of it") + " in line"
    + (f.slow.waits < 5e-4 ? "; " : " (" + time(f.slow.waits) + " at the slow end of the interval); ")
    + (f.hour ? usd(f.hour) + " an hour, <b>" + usd(f.million) + "</b> a million out" : "no price is known")
    + "</p>").join("") + '<p class="note">Means of a formula. Percentiles, simulated:</p>'
    + '<pre class="python">' + esc(A.simulate(q)) + "</pre>";
  const drawStep = (q) => {
    const r = S.mode === "request", one = r ? A.request(q) : A.step(q, q.batch, q.context);
    shown = one;
    if (one.status !== "ok") { refusal(one.status === "n/a" ? "No answer:" : "Does not fit:", one.reason,
      one.fit); return; }
    const big = r
      ? '<div class="big"><b>' + time(one.first) + '</b> to the first token<small>80 %: '
        + span(one.firstLow, one.firstHigh) + '</small></div><div class="big"><b>' + time(one.token)
        + "</b> a token then<small>80 %: " + span(one.tokenLow, one.tokenHigh) + "</small></div>"
      : '<div class="big"><b>' + time(one.seconds) + "</b> a token<small>80 %: " + span(one.low, one.high)
        + "</small></div>";
    const tiles = r
      ? [tile("tokens/s a user", digits(one.speed)), tile(one.many ? "users in a machine" : "users served",
        digits(one.running)),
        tile("tokens/s in all", digits(one.sum)),
        tile("$ a million in", one.million ? usd(one.million.input) : "n/a"), tile("cached", one.million
        ? usd(one.million.cached) : "n/a"), tile("out", one.million ? usd(one.million.output) : "n/a"),
        tile("a request", one.request == null ? "n/a" : digits(100 * one.request) + " ¢"),
        tile("joules a token", one.joules == null ? "n/a" : digits(one.joules), one.promptJoules == null ? ""
        : "prompt " + digits(one.promptJoules)), tile("bound by", one.binding)]
      : [tile("tokens/s a user", digits(one.speed)), tile("tokens/s a chip", digits(one.perChip)),
        tile("$ a million", usd(one.dollars)), tile("joules a token", one.joules == null ? "n/a"
        : digits(one.joules)), tile("bound by", one.binding)];
    html("head", '<div class="bigs">' + big + '<div class="tiles">' + tiles.join("") + "</div></div>"
      + (one.drafts ? '<p class="drafted">With ' + S.drafted + " drafts: <b>" + time(one.drafts.token)
      + "</b> a token, ×" + one.drafts.gain.toFixed(2) + ' <small>(verifying ' + time(one.drafts.verify)
      + ", a draft " + time(one.drafts.draft) + "; all else here without drafts)</small></p>" : "")
      + (one.many ? fleets(q, one) : "") + bar(one) + costLine(q, one) + told(one.cautions));
    const near = A.neighbours(q, one.batch, one.context, 60);
    html("gains", gains(A.changes(q, one.batch, one.context)));
    html("gauge", gauge(one.fit));
    html("near", rows(near, q));
    html("mine", S.measured && mine(r ? one.token : one.seconds) + " of this page's; of the sources', below");
    html("tabs", tabs());
    html("picture", view === "users" ? drawUsers(q, one, near) : drawFrontier(q, one));
    html("reach", reach(q, one));
  };

  // The search runs in slices of a frame.
  const drawDecide = (q) => {
    const ticket = ++search, out = A.search(), list = A.machines(q), before = performance.now();
    shown = null;
    let k = 0;
    if (!list.length) { refusal("Nothing to choose from:",
      "no chip has a price. Give one in the price list."); html("offers", ""); html("misses", ""); return; }
    const slice = () => {
      if (ticket !== search) return;
      const until = performance.now() + 12;
      while (k < list.length && performance.now() < until) A.judge(q, list[k++], out);
      if (k < list.length) { if (k > 40) html("head", '<p class="note">' + k + " of " + list.length
        + " machines asked</p>"); setTimeout(slice, 0); return; }
      drawDecision(q, A.decided(out), list.length, performance.now() - before);
    };
    slice();
  };
  const drawDecision = (q, out, tried, took) => {
    shown = out;
    const best = out.best, count = {};
    out.misses.forEach((m) => { count[m.reason] = (count[m.reason] || 0) + 1; });
    const failed = Object.entries(count).map(([reason, n]) => reason + " " + n).join(", ");
    if (!best) html("head", '<p class="refusal"><strong>Nothing keeps the promise.</strong> ' + tried
      + " machines were asked: " + failed + ".</p>");
    else html("head", '<div class="bigs"><div class="big"><b>' + esc(A.ofChip(best.n, best.chip)) + "</b> "
      + best.layout + ", " + best.users + " users<small>the cheapest of " + out.offers.length
      + " that keep the promise" + esc(out.untried) + "; " + tried + " machines asked</small>"
      + (out.narrower ? "<small>" + esc(out.narrower) + "</small>" : "")
      + "<small>80 %: " + span(best.tokenLow, best.tokenHigh) + " a token, "
      + span(best.firstLow, best.firstHigh)
      + ' to the first</small></div><div class="tiles">' + [tile("a request", digits(100 * best.dollars)
      + " ¢"), tile("$ a million out", usd(best.million)), tile("tokens/s a user", digits(best.speed)),
      tile("first token", time(best.first))].join("") + "</div></div>" + told(best.cautions));
    const offers = best ? [best, ...out.runnersUp] : [];
    html("offers", offers.length
      ? '<div class="scroll" tabindex="0" role="region" aria-label="Offers"><table><thead><tr><th ' +
        'scope="col">machine</th><th scope="col">layout</th><th scope="col">users</th><th ' +
        'scope="col">tokens/s</th><th scope="col">first token</th><th scope="col">¢ a request</th><th ' +
        'scope="col">$/M out</th><th scope="col" title="cautions" ' +
        'aria-label="cautions">⚠</th></tr></thead><tbody>' + offers.map((o, k) =>
        '<tr><th scope="row"><button type="button" data-offer="' + k + '" title="Look at it as a request">'
        + esc(A.ofChip(o.n, o.chip)) + "</button></th><td>" + o.layout + '</td><td class="n">' + o.users
        + '</td><td class="n">' + digits(o.speed) + '</td><td class="n">' + time(o.first)
        + '</td><td class="n"><b>' + digits(100 * o.dollars) + '</b></td><td class="n">' + usd(o.million)
        + '</td><td>' + (o.cautions.length ? '<span title="' + esc(o.cautions.join("; ")) + '">'
        + o.cautions.length + "</span>" : "none") + "</td></tr>").join("") + "</tbody></table></div>" : "");
    html("misses", '<p class="note">' + (failed ? "Of " + tried + " machines: " + failed + "." : "None.")
      + "</p><ul>" + out.misses.slice().sort((a, b) => a.times - b.times).slice(0, best ? 3 : 6).map((m) =>
      "<li>" + esc(A.ofChip(m.n, m.chip)) + ", " + m.layout + ": " + m.reason + ", " + esc(m.detail)
      + "</li>").join("") + "</ul>");
    const line = out.frontier;
    html("picture", line.length ? plane({ ...range(line.map((p) => p.speed)), label: "tokens/s for a user" },
      { ...range(line.map((p) => 100 * p.dollars)), label: "¢ a request" }, (X, Y) =>
      '<path class="curve c0" d="' + path(line.map((p) => [p.speed, 100 * p.dollars]), X, Y) + '"/>'
      + line.map((p) => '<circle class="dot c0" cx="' + X(p.speed) + '" cy="' + Y(100 * p.dollars)
      + '" r="3"><title>' + esc(p.n + " x " + p.chip + ", " + p.layout + ", " + p.users
      + " users, first token " + time(p.first)) + "</title></circle>").join("")
      + (q.speed && q.speed > range(line.map((p) => p.speed)).low ? '<line class="now" x1="' + X(q.speed)
      + '" x2="' + X(q.speed) + '" y1="6" y2="164"/>' : "") + (best ? '<circle class="here" cx="'
      + X(best.speed) + '" cy="' + Y(100 * best.dollars) + '" r="5.5"/>' : "")) : "");
    say();
  };

  // --- The five sources -----------------------------------------------------------------------------------
  // How many times as long as an answer the time is that the reader measured.
  const mine = (seconds) => (S.measured ? " ×" + (S.measured / seconds).toFixed(2) : "");
  const drawSources = () => {
    const fold = part("sources-fold"), q = asked();
    fold.hidden = S.mode === "decide";
    if (!fold.open || S.mode === "decide") return;
    const found = A.sources(q, shown && shown.status === "ok" ? shown.batch : q.batch, shown
      && shown.status === "ok" ? shown.context : q.context);
    if (found.refused) { html("sources", '<p class="note">' + esc(found.refused) + "</p>"); return; }
    const longest = Math.max(...found.answers.map((a) => a.value || 0));
    html("sources", '<div class="scroll" tabindex="0" role="region" aria-label="The five sources"><table ' +
      'class="five"><tbody>' + found.answers.map((a) => '<tr><th scope="row">' + esc(a.name) + "</th><td>"
      + (a.na ? '<span class="note">' + esc(a.na) + "</span>" : '<div class="stack" style="width:'
      + (100 * a.value) / longest + '%">' + a.terms.filter((t) => t.counts).map((t) => '<i class="'
      + hue(t.name) + '" style="width:' + (100 * t.seconds) / a.value + '%" title="' + t.name
      + " " + digits(1e3 * t.seconds) + ' ms"></i>').join("") + "</div>") + '</td><td class="n"><b>'
      + (a.na ? "" : digits(1e3 * a.value) + " ms" + mine(a.value)) + "</b></td><td>" + (a.na ? ""
      : esc(a.terms.filter((t) => t.counts).sort((x, y) => y.seconds - x.seconds)[0].name)) + "</td><td>"
      + esc(a.chosen || "") + "</td></tr>").join("")
      + '</tbody></table></div><p class="note">One tensor-parallel instance on all chips, weights of one ' +
      'size without scales. The chapters search more layouts.</p>');
  };

  // --- Python, CSV, speech ----------------------------------------------------------------------------
  const python = () => A.python(asked());
  const csv = () => {
    const cell = (v) => (/[",\n]/.test(v) ? '"' + String(v).replace(/"/g, '""') + '"' : String(v)),
      table = [["kind", "name", "value", "unit"]];
    const given = { mode: S.mode, ...A.said(asked()) };
    for (const key in given) table.push(["input", key, given[key], ""]);
    if (S.mode === "decide") {
      table.push([], ["chip", "chips", "layout", "users", "tokens_per_second", "first_token_s",
        "usd_per_request", "usd_per_million_output"]);
      (shown ? shown.offers : []).forEach((o) => table.push([o.chip, o.n, o.layout, o.users, o.speed,
        o.first, o.dollars, o.million]));
    } else if (shown && shown.status === "ok") {
      shown.terms.forEach((t) => table.push([t.counts ? "term" : "hidden term", t.name, t.seconds, "s"]));
      [["seconds", "s"], ["low", "s"], ["high", "s"], ["first", "s"], ["token", "s"],
        ["dollars", "$ a million"], ["request", "$"], ["joules", "J"]].forEach(([k, unit]) =>
        { if (shown[k] != null) table.push(["output", k, shown[k], unit]); });
      shown.cautions.forEach((c) => table.push(["caution", c, "", ""]));
    } else table.push(["refusal", shown ? shown.reason : Object.values(refused).join("; "), "", ""]);
    return table.map((row) => row.map(cell).join(",")).join("\n") + "\n";
  };
  let speaking = 0;
  const say = () => { clearTimeout(speaking); speaking = setTimeout(() => { part("said").textContent =
    part("head").textContent.replace(/\s+/g, " ").slice(0, 400); }, 900); };

  // --- Redraw -----------------------------------------------------------------------------------------
  const draw = (besides) => {
    const begun = performance.now();
    search += 1;
    accepted();
    ensure(S.mode === "decide" ? "decide" : "step");
    showControls(besides);
    part("python").hidden = true;
    ["link", "python"].forEach((act) => { root.querySelector('[data-act="' + act + '"]').disabled =
      Object.keys(refused).length > 0; });
    if (Object.keys(refused).length) { shown = null;
      refusal("Not asked:", Object.values(refused).join("; ")); html("offers", ""); html("misses", ""); }
    else if (S.mode === "decide") drawDecide(asked());
    else drawStep(asked());
    drawSources();
    say();
    root.dataset.took = (performance.now() - begun).toFixed(1);
  };
  let waiting = false;
  const later = (besides) => { if (waiting) return; waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(besides); }); };
  root.addEventListener("input", (event) => {
    const c = event.target;
    if (c.dataset.for) { delete refused[c.dataset.for]; S[c.dataset.for] = fromRange(c, +c.value); }
    else if (c.dataset.key) { if (c.dataset.key === "arrivals" && !S.arrivals) S.users = null; // places
      put(c.dataset.key, c.type === "checkbox" ? c.checked : c.type === "radio"
      ? c.value : c.value); if (c.tagName === "SELECT") chose(c.dataset.key); }
    else if (c.closest(".prices")) S.prices = c.value.slice(0, 4000);
    else return;
    later(c);
  });
  let linked = false;
  const remember = () => { try { history.replaceState(null, "", link()); linked = true; } catch (e) {
    linked = false; } };
  root.addEventListener("change", (event) => { if (event.target.dataset.key || event.target.dataset.for) {
    later(null); if (linked && !Object.keys(refused).length) remember(); } });
  root.addEventListener("submit", (event) => event.preventDefault());
  const brief = (button, text) => { const before = button.textContent; button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 2200); };
  const copy = (text, button, done) => (navigator.clipboard ? navigator.clipboard.writeText(text).then(() =>
    brief(button, done), () => brief(button, "see the address")) : brief(button, "see the address"));
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const act = button.dataset.act;
    if (button.dataset.view) { view = button.dataset.view; later(null); }
    else if (button.dataset.offer) {
      const o = [shown.best, ...shown.runnersUp][+button.dataset.offer];
      S = { ...S, mode: "request", chip: o.chip, n_chips: o.n, users: o.users, ...A.placed(o.l), changed: {},
        price: undefined };
      later(null);
    } else if (act === "reset") { S = { ...START, changed: {} }; refused = {};
      later(null); }
    else if (act === "link") { remember(); copy(location.href, button, "copied"); }
    else if (act === "python") { const text = python(); copy(text, button, "copied");
      part("python").textContent = text; part("python").hidden = false; }
    else if (act === "csv") { const file = document.createElement("a");
      file.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" })); file.download = "ask.csv";
      file.click(); setTimeout(() => URL.revokeObjectURL(file.href), 1000); }
  });
  part("sources-fold").addEventListener("toggle", () => later(null));
  follow(location.hash);
  linked = location.hash.startsWith("#ask?");
  ensure(S.mode === "decide" ? "decide" : "step");
  draw();
  window.addEventListener("hashchange", () => { if (follow(location.hash)) later(null); });
  if (linked) window.addEventListener("load", () => root.scrollIntoView());
  return { A, state: () => S, set: (key, value) => { put(key, value);
    if (control(key).tagName === "SELECT") chose(key); draw(); return +root.dataset.took; }, link, python,
    csv, answer: () => shown };
};
