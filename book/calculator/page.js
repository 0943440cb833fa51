// The page of the instrument: what a reader sets goes into one state; what is drawn comes from ask.js.
globalThis.inferlibPage = function (root, D) {
  "use strict";
  const { digits, esc, plane, once, copy, pairsOf, addressed } = inferlibShared;
  const A = inferlibAsk(D), K = inferlibCheck(D, A), { known, machineOf } = A, { form } = D;
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const all = (query) => [...root.querySelectorAll(query)];
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const control = (key) => root.querySelector(`[data-key="${key}"]`);
  const time = (s) => (s == null ? "n/a" : s >= 1 ? `${digits(s)} s` : `${digits(1e3 * s)} ms`);
  const span = (a, b) => (b === Infinity ? `${time(a)} or more`
    : `${digits(b >= 1 ? a : 1e3 * a)} to ${time(b)}`);
  const usd = (v) => (v == null ? "n/a" : `$${v > 0 && v < 1e-3 ? v.toFixed(6) : digits(v)}`);
  const GB = (bytes) => `${digits(bytes / 1e9)} GB`;
  const people = (n) => `${digits(n)} user${n === 1 ? "" : "s"}`;
  const percent = (part) => `${digits(100 * part)} %`;
  const many = (list, of) => list.map(of).join("");
  const tag = (name, kind, inside, more = "") =>
    `<${name}${kind && ` class="${kind}"`}${more && ` ${more}`}>${inside}</${name}>`;
  const bold = (text) => tag("b", "", text), note = (text) => tag("p", "note", text);

  // --- The state -------------------------------------------------------------------------------------------
  const START = { ...Object.fromEntries(form.fields.map((name) => [name, null])), own: null, mix: null,
    changed: {}, goal: null, budget: null, ...form.start, price: undefined };
  // What a link leaves out is what Python takes where nothing is given.
  const UNSAID = { ...START, batch: 1, concurrency: 1, tpot: null, ttft: null };
  let S = { ...START }, refused = {}, shown = null, search = 0;
  const CHIP = all(".changed [data-key]").map((c) => c.dataset.key), isChanged = (key) => CHIP.includes(key);
  const pricesOf = (text) => {
    const pairs = text.split(/[;\n]/).filter((line) => line.trim()).map((line) => line.split(/[:=]\s*\$?/))
      .map(([name, usd = "", more]) => [known("chip", name.trim()), more == null && A.read("price", usd)]);
    const good = ([chip, usd]) => has(D.chips, chip) && usd > 0 && usd <= 1e4;
    return pairs.every(good) && new Set(pairs.map(([chip]) => chip)).size === pairs.length
      ? Object.fromEntries(pairs) : null;
  };
  // What a state asks: of what to rent the machine, its price and its users are the answer.
  const CHOSEN = { price: undefined, electricity: null, pue: null, changed: {}, concurrency: null,
    replicas: null, prefill_machine: null, draft_tokens: 0, layout: "" };
  const asked = (of = S) => A.mixed({ ...of, prices: pricesOf(of.prices), ...(of.mode === "decide"
    ? { ...CHOSEN, chip: of.only || of.chip } : { usd_per_million: null }) });
  const label = (c) => c.ariaLabel
    || (c.labels && c.labels[0] ? c.labels[0].textContent.trim() : c.dataset.key);
  const unreadable = (key, text, allowed) => {
    const c = control(key), said = String(text).slice(0, 60) || "empty";
    refused[key] = `${c ? label(c) : key} is ${said}, but must be ${allowed}`;
  };
  // Fields of words: what their words stand for, nothing where they are none, and an example.
  const WORDS = {
    layer_formats: [A.keepOf, "attention=bf16"], layout: [(text) => A.layout({ layout: text }) && text,
      "DP8 EP8"],
    prefill_machine: [(text) => (!text || machineOf(text) ? text : null), "2x H100"],
    prices: [(text) => pricesOf(text) && text, "H100 SXM: 2.10; B300: 5"],
  };
  const LENGTHS = ["prompt_tokens", "output_tokens", "cached", "shared_prefix"];
  // Fields that may not be empty.
  const NEEDED = ["n_chips", "batch", "context", "prompt_tokens", "output_tokens"];
  const put = (key, text) => {
    const c = control(key), { units, whole, least } = form.numbers[key] || {};
    delete refused[key];
    if (LENGTHS.includes(key)) S.mix = null; // of a file of requests
    if (key === "acceptance_length") misfit = false;
    if (has(WORDS, key)) {
      const [read, example] = WORDS[key], found = text.trim() === "" ? START[key] : read(text);
      if (found === null && text.trim()) unreadable(key, text, `like ${example}`);
      else S[key] = found;
    } else if (!units) S[key] = c.type === "checkbox" ? text === true : text;
    else if (String(text).trim() === "" && !NEEDED.includes(key)) {
      if (isChanged(key)) { S.changed = { ...S.changed }; delete S.changed[key]; }
      else S[key] = key === "concurrency" ? null : UNSAID[key];
    } else {
      const v = A.read(key, text), named = whole ? [] : Object.keys(units).filter(Boolean).slice(0, 6);
      const told = has(units, "%") ? "% up to 100%, as in 40% or 0.4" : named.join(", ");
      const words = key === "acceptance_length" ? has(D.accepted, text)
        : ["prompt_tokens", "output_tokens"].includes(key) && A.lengths(key, text).every(Number.isFinite);
      const [, , top] = units[""] || [];
      const most = top < 1e9 && !has(units, "%") ? `, without a unit at most ${top}` : "";
      const from = (least === 0 || least >= 1 ? `of at least ${least}` : "above 0") + most;
      if (Number.isNaN(v) && !words)
        unreadable(key, text, `a ${whole ? "whole " : ""}number ${from}${told && `; units: ${told}`}${
          key === "acceptance_length" ? ": 1 + drafts × the share of drafts that is accepted" : ""}`);
      else if (isChanged(key)) S.changed = { ...S.changed, [key]: v };
      else S[key] = Number.isNaN(v) ? text : v;
    }
  };
  // Choosing a chip brings its own numbers and its own price or none.
  const chose = (key) => {
    if (key === "model") S.own = null;
    if (key !== "chip") return;
    Object.assign(S, { changed: {}, price: undefined });
    [...CHIP, "price"].forEach((k) => delete refused[k]);
  };
  // A measured curve says how many tokens a step yields; no measurement has more drafts.
  let misfit = false;
  const accepted = () => {
    const lengths = has(D.accepted, S.acceptance_length) && D.accepted[S.acceptance_length];
    if (misfit) delete refused.acceptance_length;
    const none = S.acceptance_length == null, most = lengths ? lengths.length : S.acceptance_length - 1;
    misfit = S.draft_tokens && !refused.acceptance_length && (none || (lengths ? S.draft_tokens > most
      : S.draft_tokens < most));
    if (misfit && none) refused.acceptance_length = D.paired;
    else if (misfit) unreadable("acceptance_length", S.acceptance_length, lengths ?
      `with ${most} drafts at most, as measured` : "at most the drafts and one");
  };
  // A link says the fields that differ from the question at the start, in words.
  const addressOf = (pairs) => `#ask?${pairs.map(([key, value]) =>
    `${key}=${encodeURIComponent(value)}`).join("&")}`;
  const link = (of = S) => {
    if (of.mode === "check") return addressOf([["mode", "check"], ["machine", `${of.n_chips}x ${of.chip}`],
      ["command", of.command], ["measured", of.measured]]);
    const said = (of) => ({ ...A.said(asked(of)), layout: of.layout, cached: of.mix ? null : of.cached,
      shared_prefix: of.mix ? null : of.shared_prefix,
      goal: of.goal && A.told("goal", of.goal), budget: of.budget, prices: of.prices, trace: null });
    const now = said(of), start = said({ ...UNSAID, mode: of.mode });
    const pairs = [["mode", of.mode], of.own ? ["own", JSON.stringify(of.own)] : ["model", of.model]];
    const text = (value) => (value == null ? "" : value === true ? "yes" : String(value));
    for (const key in { ...start, ...now }) {
      const differs = key === "machine" || text(now[key]) !== text(start[key]);
      if (key !== "model" && differs && !(of.mix && LENGTHS.includes(key))) pairs.push([key, text(now[key])]);
    }
    if (of.mix) pairs.push(["mix", JSON.stringify(of.mix)]);
    for (const key in of.changed)
      pairs.push([key, +(of.changed[key] / form.numbers[key].units[""][0]).toPrecision(12)]);
    return addressOf(pairs);
  };
  // What a link brings as tokenprice.permalink counts it; null where this page cannot ask it.
  const brought = (text, of) => {
    try { return of(JSON.parse(text)); } catch (e) { return null; }
  };
  // A model: its parameters and formats.
  const ownOf = (told) => {
    const { name } = told, own = { told: [], ...told, name: typeof name === "string" && name
      ? name.slice(0, 80) : "a model of yours" };
    const tried = A.step({ ...START, own, n_chips: 1 }, 1, 1);
    return own.told.every((t) => typeof t === "string") && [tried.fit.needs, ...own.stored].every(
      Number.isFinite) && (tried.status !== "ok" || tried.low > 0) ? { own } : null;
  };
  // Lengths of a file of requests, which means of prompts and answers stand for in the form.
  const mixOf = (mix) => {
    const { trace, prompt, output, cached, reads, answers, varies, context, longest, prefix } = mix;
    const some = [prompt, output, context, longest, ...answers, ...reads.flatMap(([n, whole, held]) =>
      [n, whole - held])], none = [cached, varies, prefix, ...reads.flatMap((read) => read.slice(2))];
    return some.every((n) => n > 0) && none.every((n) => n >= 0) && typeof trace === "string"
      ? { prompt_tokens: prompt, output_tokens: output, cached, mix } : null;
  };
  const among = (key, value) => [...control(key).options].some((o) => o.value === value) && { [key]: value };
  // What a field of a link sets, where the page shows it in parts; nothing where it cannot be read.
  const FIELDS = {
    mode: (text) => ["step", "request", "decide", "check"].includes(text) && { mode: text },
    model: (text) => among("model", known("model", text)),
    machine: (text) => machineOf(text) && { ...machineOf(text), changed: {}, price: undefined },
    chips: (text) => among("only", known("chip", text)),
    sure: (text) => ["yes", "no"].includes(text) && { sure: text === "yes" },
    own: (text) => brought(text, ownOf), mix: (text) => brought(text, mixOf),
  };
  const ORDER = ["mode", "model", "machine"];
  const follow = (hash) => {
    const given = pairsOf(hash, "ask");
    if (!given) return false;
    S = { ...UNSAID, changed: {} };
    refused = {};
    ensure("step");
    const place = ([key]) => (ORDER.includes(key) ? ORDER.indexOf(key) : key === "mix" ? 9 : 5);
    given.sort((a, b) => place(a) - place(b)).forEach(([key, value, damaged]) => {
      const c = /^\w+$/.test(key) && control(key), own = has(FIELDS, key), name = key.slice(0, 40);
      const found = own ? FIELDS[key](value) : c && c.tagName === "SELECT" && among(key, value);
      if (damaged) refused[name] = `The link is damaged at ${name}`;
      else if (found) Object.assign(S, found);
      else if (own || (c && c.tagName === "SELECT"))
        refused[name] = `${name}: ${value.slice(0, 60)} is not offered`;
      else if (c) put(key, value);
      else refused[name] = `The link asks for ${name}, which is no input here`;
    });
    if (S.request_rate && !given.some(([key]) => key === "concurrency")) S.concurrency = null;
    return true;
  };

  // --- Controls --------------------------------------------------------------------------------------------
  // Sliders go by doublings, those of a share by per cent.
  const plain = ({ dataset }) => dataset.for === "cached", steps = ({ dataset }) => dataset.for === "n_chips";
  const most = (range) => (steps(range) ? 1024
    : form.slides[/batch|concurrency/.test(range.dataset.for) ? "users" : "tokens"]);
  const toRange = (range, v) => (!plain(range) ? Math.log2(Math.max(parseFloat(v), 1))
    : String(v).endsWith("%") ? parseFloat(v) : (100 * v) / asked().prompt_tokens);
  const fromRange = (range, p) => {
    const v = Math.pow(2, steps(range) ? Math.round(p) : p);
    if (plain(range)) return `${p}%`;
    return v >= 64 && +v.toPrecision(2) > 9999 ? Math.round(v / 1024) * 1024 || 1024 : Math.round(v);
  };
  all("input[type=range]").forEach((range) => {
    const high = plain(range) ? 99 : Math.log2(most(range));
    Object.assign(range, { min: 0, max: high, step: plain(range) || steps(range) ? 1 : high / 200 });
  });
  // What a control shows: words of a number, of a chip its own one where none was changed.
  const valueOf = (key) => {
    if (key === "layer_formats") return A.keeps(S.layer_formats) || "";
    if (!has(form.numbers, key)) return S[key] == null ? "" : S[key];
    const { values, peaks } = A.chips[S.chip], own = key === "peak_16" ? values.chip_flops
      : key.startsWith("peak_") ? peaks[key.slice(5)] : values[`chip_${key}`];
    const v = isChanged(key) ? (has(S.changed, key) ? S.changed[key] : own)
      : key === "price" ? A.hourly(asked(), S.chip) : S[key];
    return v == null ? "" : A.told(key, v);
  };
  const showControls = (besides) => {
    all("[data-mode]").forEach((row) => { row.hidden = !row.dataset.mode.split(" ").includes(S.mode); });
    all("[data-key]").forEach((c) => {
      const { key } = c.dataset, text = /^text/.test(c.type);
      if (c.type === "radio") c.checked = c.value === S.mode;
      else if (c.type === "checkbox") c.checked = S[key];
      else if (!text || (c !== besides && !(key in refused))) c.value = valueOf(key);
      if (text) c.setAttribute("aria-invalid", String(key in refused));
    });
    all("input[type=range]").forEach((range) => {
      const key = range.dataset.for;
      if (range !== besides) range.value = toRange(range, S[key]);
      range.setAttribute("aria-valuetext", A.told(key, S[key]));
    });
    control("model").classList.toggle("aside", Boolean(S.own));
    const q = asked(), m = A.model(q), cost = A.hourly(q, S.chip), { prices } = q;
    const { weights, cache } = A.formats({ ...q, weights: "", kv_cache_dtype: "", layer_formats: {} }, m);
    [["weights", weights.kernel], ["kv_cache_dtype", cache]].forEach(([key, name]) => {
      control(key).options[0].textContent = `${name}, the checkpoint's`;
    });
    const changed = Object.keys(S.changed).length, { source } = D.chips[S.chip], notes = {
      own: S.own ? `Asked: ${S.own.name}, which the link brings.` : "",
      mix: S.mix ? `Lengths of ${S.mix.trace}, which the link brings, and their means.` : "",
      "price-note": S.price != null ? "$ an hour and chip, yours" : has(prices, S.chip)
        ? "$ an hour, your list" : cost == null ? "no list price: type one" : `$/h, ${source.split(",")[0]}`,
      "changed-label": `Numbers of this chip${changed ? `: ${changed} changed` : ""}`,
    };
    for (const name in notes) part(name).textContent = notes[name];
    part("price-note").title = source;
    part("layouts").innerHTML = many(A.layouts(m, A.chips[S.chip], S.n_chips), (l) =>
      tag("option", "", "", `value="${A.words(l)}"`));
  };

  // --- Pictures --------------------------------------------------------------------------------------------
  const hue = (name) => `c${D.palette[name] ?? 7}`;
  const drawing = (x, y, draw) => `<svg viewBox="0 0 430 202" role="group" aria-label="${
    esc(`${x.label} against ${y.label}`)}">${plane({ L: 42, R: 414, T: 6, B: 164 }, x, y, draw)}</svg>`;
  const path = (points, X, Y) =>
    points.map(([x, y], k) => `${k ? "L" : "M"}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`).join("");
  const linked = (url, inside, more) => tag("a", "", inside, `href="${esc(url)}" ${more || ""}`);
  const dot = (kind, x, y, r, title = "") => tag("circle", kind, title && tag("title", "", esc(title)),
    `cx="${x}" cy="${y}" r="${r}"`);
  const range = (values, least = 4) => {
    const low = Math.min(...values), high = Math.max(...values), middle = Math.sqrt(low * high);
    const wide = 1.12 * Math.sqrt(Math.max(least, high / low));
    return { low: middle / wide, high: middle * wide };
  };

  // What is drawn and compared: a step, or the time between tokens of a request, with its interval.
  const timeOf = (one) => (one.token == null ? [one.seconds, one.low, one.high]
    : [one.token, one.tokenLow, one.tokenHigh]);
  // A line of such answers over users; those for whom there is no room are left out.
  const overUsers = (q, context, all, kept = {}) => all.map(Math.round).flatMap((users) => {
    const one = S.mode === "step" ? A.step(q, users, context)
      : A.request({ ...q, request_rate: null, prefill_machine: null, concurrency: users }, kept);
    return one.status === "ok" ? [{ batch: users, seconds: timeOf(one)[0] }] : [];
  });
  const drawUsers = (q, one, near) => {
    const step = S.mode === "step", who = one.token == null || one.many ? one.batch : S.concurrency || 1;
    const most = Math.log2(Math.max(one.batch * 2, 1024)), each = step ? 2 : 1;
    const counts = Array.from({ length: Math.min(13, most) * each + 1 }, (_, k) => Math.pow(2, k / each));
    const line = overUsers(q, one.context, counts);
    if (!line.length) return "";
    const [seconds, low, high] = timeOf(one);
    const rows = near.filter((r) => r.same && !!r.output === !step && !(one.many && r.output));
    const y = range([...[...line, ...rows].map((p) => 1e3 * p.seconds), 1e3 * low, 1e3 * high]);
    const last = Math.max(line[line.length - 1].batch, who, ...rows.map((r) => r.users));
    const x = { low: 0.9, high: last * 1.15, label: "users at a time" };
    return drawing(x, { ...y, label: "ms per token" }, (X, Y) => {
      const at = (by) => line.map((p) => [p.batch, Math.min(Math.max(1e3 * p.seconds * by, y.low), y.high)]);
      const band = at(high / seconds).concat(at(seconds / high).reverse());
      const measured = many(rows, (r) => {
        const alike = r.n === q.n_chips && (!r.weights || D.same[r.weights] === D.same[kernelOf(q)]);
        const told = `${r.publisher}: ${time(r.seconds)} a token, ${A.ofChip(r.n, r.chip)}, ${
          people(r.users)}, ${digits(r.context)} tokens${r.weights && `, ${r.weights}`}`;
        const place = [X(Math.max(r.users, x.low)), Y(1e3 * r.seconds)];
        const at = dot(`dot c3${alike ? "" : " other"}`, ...place, 3.5, told);
        return linked(r.url, at, `target="_blank" rel="noopener" tabindex="-1" aria-label="${esc(told)}"`);
      });
      const drawn = (kind, d) => `<path class="${kind}" d="${d}"/>`;
      return drawn("band", `${path(band, X, Y)}Z`) + drawn("curve c0", path(at(1), X, Y)) + measured
        + dot("here", X(who), Y(1e3 * seconds), 5.5);
    });
  };

  // --- Answers ---------------------------------------------------------------------------------------------
  const table = (name, kind, heads, rows) => {
    const head = many(heads, (text) => tag("th", "", text, 'scope="col"'));
    const body = many(rows, ([first, ...cells]) => tag("tr", "", tag("th", "", first, 'scope="row"')
      + many(cells, (text, k) => tag("td", k ? "n" : "", text))));
    const whole = tag("table", kind, tag("thead", "", tag("tr", "", head)) + tag("tbody", "", body));
    return tag("div", "scroll", whole, `tabindex="0" role="region" aria-label="${name}"`);
  };
  const list = (items, kind = "") => tag("ul", kind, many(items, (item) => tag("li", "", item)));
  const tile = ([name, value, more]) => tag("div", "tile", tag("span", "", name) + bold(value + (more
    ? ` ${tag("small", "", more)}` : "")));
  const big = (value, says, small) => tag("div", "big", `${bold(value)} ${says}${tag("small", "", small)}`);
  const top = (bigs, tiles) => tag("div", "bigs", bigs + tag("div", "tiles", many(tiles, tile)));
  const told = (cautions) => {
    if (!cautions.length) return tag("p", "fine", "No caution: model, chip, formats, layout and lengths lie "
      + "within what was measured.");
    const how = `${cautions.length} caution${cautions.length > 1 ? "s" : ""}; each widens the interval`;
    return tag("details", "cautions", tag("summary", "", how) + list(cautions.map(esc)), "open");
  };
  const swatch = (name, more = "") => tag("i", hue(name), "", more);
  const bar = (one) => {
    const others = { name: "prompts of others", seconds: one.others || 0, counts: true };
    const terms = one.terms.concat(others).filter((t) => t.seconds > 0), ms = (t) => digits(1e3 * t.seconds);
    const counted = terms.filter((t) => t.counts), hidden = terms.filter((t) => !t.counts);
    const wide = (t) => (100 * t.seconds) / (one.seconds + others.seconds);
    const stack = many(counted, (t) => swatch(t.name, `style="width:${wide(t)}%" title="${t.name}"`));
    const legend = many(counted, (t) => tag("span", "", `${swatch(t.name)}${t.name} ${bold(ms(t))}`));
    const behind = `hidden: ${hidden.map((t) => `${t.name} ${ms(t)}`).join(", ")}`;
    return tag("div", "stack", stack, 'role="img" aria-label="Where the time goes"')
      + tag("p", "legend", legend + (hidden.length ? tag("span", "note", behind) : ""));
  };
  const gauge = (fit) => {
    if (!fit || fit.has == null) return note("The chip states no memory.");
    const over = fit.needs > fit.left, wide = Math.min(100, (100 * fit.needs) / fit.has);
    const says = over ? `: ${tag("strong", "", "does not fit")}` : `, ${percent(fit.needs / fit.left)}`;
    const told = `${bold(GB(fit.needs))} of ${GB(fit.left)} that engines leave of ${GB(fit.has)}${says}`;
    return tag("div", `gauge${over ? " over" : ""}`, tag("i", "c2", "", `style="width:${wide}%"`),
      'role="img" aria-label="Memory"') + tag("p", "legend", tag("span", "", told));
  };
  const gains = (found) => {
    const most = Math.max(0.5, ...found.map((o) => Math.abs(o.gain - 1)));
    return list(found.map(({ name, gain }) => {
      const wide = `style="width:${(100 * Math.abs(gain - 1)) / most}%"`;
      const meter = tag("span", "meter", tag("i", gain >= 1 ? "c0" : "c3", "", wide));
      return `${tag("span", "name", name)}${meter}${bold(`×${gain.toFixed(2)}`)}`;
    }), "gains");
  };
  const kernelOf = (q) => A.formats(q, A.model(q)).weights.kernel;
  // A measured row asked of this page: its estimate, and whether the row lies in the interval.
  const against = (r, q) => {
    const rest = r.n / r.tp, copies = { dp: rest, pp: 1, ep: A.sparse(r) ? r.n : 1 };
    const layout = A.words({ tp: r.tp, ...(r.dp > 1 ? copies : { dp: 1, pp: rest, ep: 1 }) });
    const known = has(D.formats.each, r.weights), keep = r.weights === "mxfp4" ? { attention: "bf16" } : {};
    const stored = r.alike && r.weights === kernelOf(q) ? {} : { weights: known ? r.weights : "",
      layer_formats: keep };
    const mode = r.output ? "request" : "step";
    const again = { ...q, mode, own: null, mix: null, changed: {}, model: r.model, chip: r.chip,
      n_chips: r.n, layout, ...stored, draft_tokens: 0, engine: "", concurrency: r.users, request_rate: null,
      prefill_machine: null, cached: 0, output_tokens: r.output, prompt_tokens: r.context - r.output / 2 };
    // served rows have prompts in between
    const same = r.output ? A.request(again) : A.step(again, r.users, r.context);
    if (same.status !== "ok") return { here: "n/a", side: "" };
    const [here, low, high] = timeOf(same);
    return { here: digits(1e3 * here), side: r.seconds < low || r.seconds > high ? "outside" : "inside" };
  };
  const nameOf = (r, machine) => (r.alike ? "" : `${r.model.replace(/^.*\//, "")}, `) + machine;
  const rows = (near, q) => table("Measured neighbours", "near", ["measured", "on", "users", "tokens", "ms",
    '<span title="the same row, asked of this page">here</span>'], near.slice(0, 4).map((r) => {
    const { here, side } = against(r, q), on = nameOf(r, A.ofChip(r.n, r.chip));
    const publisher = esc(r.publisher.replace("aiconfigurator silicon sample / ", ""));
    return [linked(r.url, publisher), esc(on + (r.weights && `, ${r.weights}`)), digits(r.users),
      digits(r.context), bold(digits(1e3 * r.seconds)),
      here + (side && ` <abbr title="${side}">${side === "inside" ? "✓" : "✗"}</abbr>`)];
  })) + note(`✓: measured inside the interval of ${CASES} that this page states for the row; ✗: outside.`);
  const CASES = `${Math.round(100 * D.facts.confidence)} %`;
  const reach = (q, one) => {
    const goals = [];
    if (S.goal != null) goals.push((s) => s <= S.goal);
    if (S.budget != null) goals.push((s, cost) => cost != null && cost <= S.budget);
    if (!goals.length) return note("Type a goal: what would have to change, one thing at a time?");
    const holds = (s, cost) => goals.every((good) => good(s, cost));
    if (one.many) return note("Of one machine: leave the arrivals out.");
    if (S.mode === "request" ? holds(one.token, one.million && one.million.output)
      : holds(one.seconds, one.dollars)) return note("It is reached already.");
    const found = A.needed(q, one.batch, one.context, holds), none = found.filter((f) => !f.factor);
    const users = ({ name, factor }) => (/more/.test(name) ? Math.ceil(one.batch * factor)
      : Math.floor(one.batch / factor));
    const said = (f) => (/users/.test(f.name) ? people(users(f))
      : `×${digits(f.less ? 1 / f.factor : f.factor)}`);
    const reached = found.filter((f) => f.factor).sort((a, b) => a.factor - b.factor);
    return list(reached.map((f) => tag("span", "name", f.name) + bold(said(f))), "gains")
      + note(none.length === found.length ? "No single change reaches it."
        : `Alone not enough: ${none.map((f) => f.name).join(", ")}.`);
  };

  const ensure = (kind) => {
    const panes = part("panes");
    if (panes.dataset.kind === kind) return;
    panes.dataset.kind = kind;
    panes.innerHTML = part(`panes-${kind}`).innerHTML;
  };
  const html = (name, text) => {
    const node = part(name);
    if (!node) return;
    node.dataset.turn = search; // which state it shows
    if (node.dataset.now === text) return;
    node.innerHTML = text;
    node.dataset.now = text;
  };
  const refusal = (title, text, fit, remarks = []) => {
    html("head", tag("p", "refusal", `${tag("strong", "", title)} ${esc(text)}`, 'role="alert"')
      + many(remarks, (one) => note(esc(one))));
    ["gains", "near", "picture", "reach", "offers", "misses", "numbers", "explained", "next"]
      .forEach((name) => html(name, ""));
    html("gauge", fit ? gauge(fit) : "");
  };
  const monthly = (f) => `${usd(D.facts.month * f.hour)} a month`;
  // Machines of a fleet, at which load, and how many more requests may come.
  const limited = (f) => (f.limit ? ` with max_num_seqs ${f.limit}` : "");
  const machinesOf = (f, chip, n) => {
    const box = (count, n, chip) => `${count} × (${esc(A.ofChip(n, chip))})`, load = percent(f.state.busy);
    const { at } = f.reader || {}, reads = f.readers && box(f.readers, at.n, at.c.name);
    return (reads ? `${reads} that read at ${percent(f.readerLoad)} load, ` : "")
      + `${bold(box(f.n, n, chip))} at ${load} load${limited(f)}, room for ${
        digits(f.headroom)} × as many requests`;
  };
  const waits = ({ state, slow }) => {
    return `first token ${time(state.first)}, ${time(state.waits)} of it until its prompt is read`
      + (slow.waits < 5e-4 ? "" : ` (${slow.waits < Infinity ? time(slow.waits)
        : "without end"} at the slow end)`);
  };
  const simulated = (why, line) => note(why) + tag("pre", "python", esc(line));
  // How many machines for the arrivals, prompts read by all or apart, and the command for percentiles.
  const fleets = (q, { many: first, apart }) => many([first, apart].filter(Boolean), (f) => {
    const paid = f.hour ? `${usd(f.hour)} an hour, ${monthly(f)}, ${bold(usd(f.million))} a million out`
      : "no price is known";
    const who = !f.readers ? "All machines read and decode"
      : `Prompts read apart${f.play ? "" : ", by formula"}`;
    return tag("p", "drafted", `${who}: ${
      machinesOf(f, q.chip, q.n_chips)}; ${bold(time(f.state.token))} a token, ${waits(f)}; ${paid}`)
      + (f.better ? note(`Memory full: ${A.filled(D.limit.full, { most: f.better[0],
        gain: digits(f.better[1]) })}.`) : "");
  }) + simulated("Means of simulated requests, of TPOT over all tokens. Percentiles:", A.simulate(q));
  const drawStep = (q) => {
    const r = S.mode === "request", one = r ? A.request(q) : A.step(q, q.batch, q.context);
    shown = one;
    if (one.status !== "ok") {
      refusal(one.status === "n/a" ? "No answer:" : "Does not fit:", one.reason, one.fit, one.remarks);
      return;
    }
    const { drafts, million: paid = {} } = one, ends = (a, b) => `${CASES}: ${span(a, b)}`;
    const bigs = r ? big(time(one.first), "to the first token", ends(one.firstLow, one.firstHigh))
      + big(time(one.token), "a token then", ends(one.tokenLow, one.tokenHigh))
      : big(time(one.seconds), "a token", ends(one.low, one.high));
    const cents = one.request == null ? "n/a" : `${digits(100 * one.request)} ¢`;
    const joules = ["joules a token", digits(one.joules),
      [r && one.promptJoules != null && `prompt ${digits(one.promptJoules)}`,
        q.electricity && "paid: rated power"].filter(Boolean).join("; ")];
    const used = S.paid_hours_used ? "" : "of used hours";
    const tiles = [["tokens/s a user", digits(one.speed)], ...(r
      ? [[one.many ? "users in a machine" : "users served", digits(one.running)],
        ["tokens/s in all", digits(one.sum)], ["$ a million in", usd(paid.input)],
        ["cached", usd(paid.cached)], ["out", usd(paid.output)],
        ["a request", cents, one.many ? "" : used]]
      : [["tokens/s a chip", digits(one.perChip)], ["$ a million", usd(one.dollars), used]]),
    joules,
    ["bound by", one.binding, r ? `prompt ${one.readBy}` : ""]];
    const drafted = drafts && `With ${S.draft_tokens} drafts and length ${digits(drafts.length)}: ${
      bold(time(drafts.token))} a token, ×${drafts.gain.toFixed(2)}; ${time(drafts.verify)} to verify, ${
      time(drafts.draft)} a draft.${drafts.gain < 1 ? " A step yields too few tokens to pay for them." : ""}`;
    const unpriced = `No price of ${esc(q.chip)} is known: no cost is shown. Type one.`;
    html("head", top(bigs, tiles) + (drafts ? tag("p", "drafted", drafted) : "")
      + (one.many ? fleets(q, one) : "") + bar(one) + (one.price == null ? tag("p", "missing", unpriced) : "")
      + many(one.remarks, (said) => note(esc(said))) + told(one.cautions));
    const near = A.neighbours(q, one.batch, one.context, 60);
    const changes = A.changes(q, one.batch, one.context);
    html("gains", gains(changes)
      + many(changes.filter((c) => c.later), (c) => note(`${c.name}: ${c.later}.`))
      + (drafts ? note("Without drafts.") : ""));
    html("gauge", gauge(one.fit));
    html("near", rows(near, q));
    html("picture", drawUsers(q, one, near));
    html("reach", reach(q, one));
    html("sources", esc(A.everybody(q)));
  };

  // A launch command and a benchmark: each number beside its interval, causes, and a flag.
  const drawCheck = () => {
    const terminal = note("In a terminal:") + tag("pre", "python", esc(K.terminal(S)));
    shown = null;
    const { command, measured, chip, n_chips } = S;
    try { shown = K.check(command, measured, { chip, n_chips }); } catch (error) {
      if (!error.refused) throw error;
      refusal("Not checked:", error.message);
      html("next", terminal);
      return;
    }
    const { numbers, explained, state: q, one, next, notes, left, far, impossible } = shown, { names } = K;
    const timed = (name) => ["tpot", "ttft", "e2e"].includes(name);
    const said = (name, v) => (timed(name) ? time(v) : digits(v));
    const ends = ({ name, low, high }) => (timed(name) ? span(low, high)
      : `${digits(low)} to ${digits(high)}`);
    const off = numbers.filter((n) => !n.inside), times = (n) => `${digits(n.measured / n.middle)} ×`;
    const users = q.request_rate ? `${digits(q.request_rate)} requests/s`
      : people(q.concurrency || 1);
    const load = q.mode === "step" ? `batch ${q.batch}, context ${digits(q.context)}`
      : `${users}, prompt ${q.prompt_tokens}, output ${q.output_tokens}`;
    const who = `${A.model(q).name} on ${A.ofChip(q.n_chips, q.chip)}, ${one.layout}, ${load}`;
    const should = "what this deployment should give";
    const misses = off.map((n) => `${names[n.name]} ${times(n)}`);
    html("head", tag("div", "bigs", big(off.length ? "Outside" : "Inside", off.length ? `${should}: ${
      misses.join(", ")}` : should, esc(who))) + many(notes, (text) => note(esc(text))) + told(one.cautions));
    const plain = ({ name, statistic: of }) => names[name] + (of === "mean" ? "" : ` (${of})`);
    const rows = numbers.map((n) => [plain(n), ends(n), bold(said(n.name, n.measured)), n.inside ? "inside"
      : bold("outside"), times(n)]);
    const few = left.map((name) => names[name]).join(", ");
    html("numbers", table("Numbers", "", ["", "expected", "yours", "", "of the middle"], rows)
      + note(`Expected in ${CASES} of cases.${few && ` Not compared: ${few}; give prompt and output.`}`));
    const none = `None of these causes explains it (${K.causes.join(", ")}); ${shown.faster ? K.faster
      : K.slower}`;
    const wrong = far ? "; a miss this large has another cause, or the model is wrong" : "";
    const each = (e) => numbers.filter((n) => n.name in e.told).map((n) =>
      `${names[n.name]} ${said(n.name, e.told[n.name][0])}`).join(", ");
    const least = Object.entries(impossible || {}).map(([name, v]) => `${names[name]} at least ${time(v)}`);
    html("explained", impossible
      ? note(`${bold("Impossible: ")}${K.impossible.replace("{}", least.join(", "))}.`)
      : !off.length ? note("Nothing has to be explained.") : !explained.length
      ? note(`${none}${wrong}.`) : list(explained.map((e) => `${bold(esc(e.says))}: ${each(e)}`)));
    const gives = next && tag("p", "", `${tag("code", "", esc(next.flag))} should give ${
      next.gain ? `${digits(next.gain)} times the tokens per second; by the model ` : ""}${
      bold(time(next.seconds))} a token, ${bold(digits(next.tokens_per_second))} tokens/s in all.`);
    const no = impossible || shown.faster ? "" : note("No flag that was tried gains much.");
    html("next", (gives || no) + terminal);
  };

  // The search runs in slices of a frame.
  const drawDecide = (q) => {
    const ticket = search, out = A.search(), machines = A.machines(q);
    shown = null;
    const none = A.twice(q) || (machines.length ? "" : "no chip has a price. Give one in the price list.");
    if (none) { refusal("Nothing to choose from:", none); return; }
    let k = 0;
    const slice = () => {
      if (ticket !== search) return;
      const until = performance.now() + 12;
      while (k < machines.length && performance.now() < until) A.judge(q, machines[k++], out);
      if (k === machines.length) { drawDecision(q, A.decided(out, q), k); return; }
      if (k > 40) html("head", note(`${k} of ${machines.length} machines asked`));
      setTimeout(slice, 0);
    };
    slice();
  };
  // The question about one offer: its machine, and as many users, or as many machines for the arrivals.
  const stateOf = (o) => ({ ...S, mode: "request", chip: o.chip, n_chips: o.n, layout: A.words(o.l),
    changed: {}, price: undefined, ...(o.many ? { concurrency: null, replicas: o.many.n,
      max_num_seqs: o.many.limit || S.max_num_seqs,
      prefill_machine: o.many.readers
      ? `${o.many.reader.at.n}x ${o.chip}` : null } : { concurrency: o.users }) });
  // The measured row that is nearest to an offer, and on which side of this page's interval for it.
  const nearest = (o) => {
    const q = asked(stateOf(o)), [r] = A.neighbours(q, o.users, q.mix.context, 1);
    const machine = r.same && r.n === o.n ? "" : `${nameOf(r, A.ofChip(r.n, r.chip))}, `;
    const row = linked(r.url, esc(`${machine}${people(r.users)}`));
    return `${against(r, q).side || "not answered"}: ${time(r.seconds)}<br>${row}`;
  };
  const rowOf = (o, place, [best]) => {
    const { many: f, sure } = o, dearer = place ? `<br>${digits(o.dollars / best.dollars)} × the first` : "";
    const cautions = tag("span", "", o.cautions.length || "none", `title="${esc(o.cautions.join("; "))}"`);
    const name = linked(link(stateOf(o)), esc(A.ofChip(o.n, o.chip)));
    const seen = [digits(o.speed), time(o.first)], known = [nearest(o), cautions];
    if (!f) return [name, o.layout, o.users, ...seen, bold(digits(100 * o.dollars)) + dearer, usd(o.million),
      ...known];
    const reads = f.readers ? `<br>${f.readers} × (${A.ofChip(f.reader.at.n, o.chip)}) read prompts` : "";
    const month = (f) => usd(D.facts.month * f.hour);
    const reading = f.readers ? `, ${percent(f.readerLoad)} reading` : "";
    const slow = sure === undefined ? "" : sure ? `<br>to ${month(sure.many)}` : "<br>to none";
    const formula = f.play ? "" : "<br>by formula";
    return [`${f.n} × (${name})${reads}${limited(f)}${formula}`, f.chips, bold(month(f)) + dearer + slow,
      `${percent(f.state.busy)}${reading}<br>× ${digits(f.headroom)}`, ...seen, ...known];
  };
  const HEADS = {
    one: ["machine", "layout", "users", "tokens/s", "first token", "¢ a request", "$/M out"],
    fleet: ["machines", "chips", "$ a month", "load, room", "tokens/s", "first token"],
    both: ["nearest measured", '<abbr title="cautions">⚠</abbr>'],
  };
  // What meets the SLO at the slow end as well.
  const surely = ({ chip, n, many, sure }) => {
    if (sure === undefined) return "";
    if (!sure) return note("At the slow end no number of this chip's machines is enough.");
    const [own, slow] = [[many, chip, n], [sure.many, sure.chip, sure.n]].map((of) => machinesOf(...of));
    return note(own === slow ? "This is enough at the slow end too."
      : `Enough at the slow end too: ${slow}, ${monthly(sure.many)}.`);
  };
  const drawDecision = (q, out, tried) => {
    shown = out;
    const { best, misses, narrower } = out, count = {}, offers = best ? [best, ...out.runnersUp] : [];
    const f = best && best.many, fewer = narrower && note(`${esc(narrower)}.`);
    misses.forEach((m) => { count[m.reason] = (count[m.reason] || 0) + 1; });
    const failed = Object.entries(count).map((pair) => pair.join(" ")).join(", ");
    const none = tag("strong", "", `Nothing would ${A.goal(q)}.`);
    if (!best) html("head", tag("p", "refusal", `${none} ${tried} `
      + `machines were asked: ${failed}.`) + fewer);
    else {
      const among = `the cheapest of ${out.offers.length} that ${A.goal(q)}; ${tried} machines asked`;
      // a fleet's price is that of its machines, which are counted
      const ends = [best.least, best.factor].map((by) => digits(100 * best.dollars * by));
      const spans = `${CASES}: ${span(best.tokenLow, best.tokenHigh)} a token, ${span(best.firstLow,
        best.firstHigh)} to the first${f ? "" : `, ${ends.join(" to ")} ¢ a request`}`;
      const bigs = f ? big(monthly(f), `for ${machinesOf(f, best.chip, best.n)}`, among)
        : big(esc(A.ofChip(best.n, best.chip)), `${best.layout}, ${people(best.users)}`, among);
      const tiles = [["a request", `${digits(100 * best.dollars)} ¢`], ["$ a million out",
        usd(best.million)], ["tokens/s a user", digits(best.speed)], ["first token", time(best.first)]];
      const line = f && (q.tpot || q.ttft ? A.percentiles(q) : A.simulate(asked(stateOf(best))));
      html("head", top(bigs, tiles) + note(spans) + surely(best) + fewer + told(best.cautions)
        + (f ? simulated("Means of simulated requests, of TPOT over all tokens. For 99 of 100:", line) : ""));
    }
    const heads = HEADS[f ? "fleet" : "one"].concat(HEADS.both);
    const side = (f ? "By formula: not simulated, so its waits may be longer. The second price is enough "
      + "at the slow end of the interval too; none: no number of that chip's machines is. " : "")
      + (offers.some(A.unsure)
      ? "Copies that share experts and prefill are ranked by the slow end of their interval. " : "")
      + (offers.some((o) => o.many && o.many.limit) ? `${D.limit.chosen} ` : "")
      + "The link asks for one offer; inside or outside: of this page's interval for that row.";
    html("offers", best ? table("Offers", "", heads, offers.map(rowOf)) + note(side) : "");
    const nearly = misses.slice().sort((a, b) => a.times - b.times).slice(0, best ? 3 : 6);
    html("misses", note(failed ? `Of ${tried} machines: ${failed}.` : "None.") + list(nearly.map((m) =>
      esc(`${A.ofChip(m.n, m.chip)}, ${m.layout}: ${m.reason}, ${m.detail}`))));
    const line = out.frontier.map((p) => [p.speed, 100 * p.dollars]);
    const [x, y] = [0, 1].map((k) => range(line.map((p) => p[k])));
    html("picture", !line.length ? "" : drawing({ ...x, label: "tokens/s for a user" },
      { ...y, label: "¢ a request" }, (X, Y) => `<path class="curve c0" d="${path(line, X, Y)}"/>`
        + many(out.frontier, (p) => dot("dot c0", X(p.speed), Y(100 * p.dollars), 3,
          `${A.ofChip(p.n, p.chip)}, ${p.layout}, ${people(p.users)}, first token ${time(p.first)}`))
        + (best ? dot("here", X(best.speed), Y(100 * best.dollars), 5.5) : "")));
    say();
  };

  // --- Speech, redraw -------------------------------------------------------------------------------------
  let speaking = 0;
  const say = () => {
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      part("said").textContent = part("head").textContent.replace(/\s+/g, " ").slice(0, 400);
    }, 900);
  };
  const draw = (besides) => {
    const begun = performance.now(), wrong = () => Object.values(refused).join("; ");
    root.dataset.turn = ++search;
    accepted();
    ensure(["decide", "check"].includes(S.mode) ? S.mode : "step");
    showControls(besides);
    part("python").hidden = true;
    ["link", "python"].forEach((act) => { root.querySelector(`[data-act="${act}"]`).disabled = !!wrong(); });
    if (wrong()) { shown = null; refusal("Not asked:", wrong()); }
    else if (S.mode === "decide") drawDecide(asked());
    else if (S.mode === "check") drawCheck();
    else drawStep(asked());
    say();
    root.dataset.took = (performance.now() - begun).toFixed(1);
  };
  const later = once(draw), address = addressed(link);
  root.addEventListener("input", (event) => {
    const c = event.target, { key } = c.dataset;
    if (c.dataset.for) put(c.dataset.for, String(fromRange(c, +c.value)));
    else if (key) {
      put(key, c.type === "checkbox" ? c.checked : c.value);
      if (c.tagName === "SELECT") chose(key);
    } else return;
    const [one, other] = ["request_rate", "concurrency"]; // of which a question has one
    const given = c.dataset.for || key;
    if (given === one && S[one]) put(other, "");
    if (given === other && S[other]) put(one, "");
    later(c);
  });
  root.addEventListener("change", (event) => {
    if (!event.target.dataset.key && !event.target.dataset.for) return;
    later(null);
    if (!Object.keys(refused).length) address.moved();
  });
  root.addEventListener("submit", (event) => event.preventDefault());
  const ACTS = {
    reset: () => { S = { ...START, changed: {} }; refused = {}; later(null); },
    link: (button) => { address.hold(); copy(location.href, button); },
    python: (button) => {
      const text = S.mode === "check" ? K.python(S) : A.python(asked());
      copy(text, button);
      Object.assign(part("python"), { textContent: text, hidden: false });
    },
  };
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button) ACTS[button.dataset.act](button);
  });
  address.open(root, follow, draw);
  const set = (key, value) => {
    put(key, value);
    if (control(key).tagName === "SELECT") chose(key);
    draw();
    return +root.dataset.took;
  };
  return { A, K, state: () => S, set, link, answer: () => shown };
};
