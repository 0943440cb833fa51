// Asks the generated functions: which numbers belong to a question, which functions answer it, what is
// searched.
// What is computed is printed from the library's equations; here numbers are looked up, added up and sorted.
globalThis.inferlibAsk = function (D) {
  "use strict";
  const key = (what, part) => (what + "_" + part).replace(/[ ,-]+/g, "_");
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const named = (names, values) => Object.fromEntries(names.map((name, k) => [name, values[k]]));
  const total = (list, of) => list.reduce((sum, one) => sum + of(one), 0);
  // Of functions for experts that every chip of an instance cuts, that are spread over all copies or inside
  // an instance: the one that holds.
  const of = (list, at) => list[Math.min(at.spread, list.length - 1)];

  const digits = (v) => {
    if (v == null || !Number.isFinite(v)) return "n/a";
    const size = Math.abs(v);
    if (v === 0) return "0";
    if (size >= 1e7 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3));
  };
  const chips = Object.fromEntries(Object.entries(D.chips).map(([name, known]) =>
    [name, { ...known, values: named(D.chip, known.values) }]));

  // --- Numbers of a question --------------------------------------------------------------------------
  // A model by name, or one that a link brings.
  const made = new WeakMap();
  const kindOf = (name) => D.kinds[name] || D.kinds.find((kind) => kind.name === name);
  const opened = (known, name) => {
    const part = (placed) => placed && { ...kindOf(placed[0]), own: named(kindOf(placed[0]).names,
      placed.slice(1)) };
    const groups = known.layers.map(([count, ...both]) => ({ count, parts: both.map(part).filter(Boolean),
      whole: both.map((placed) => placed && D.kinds.indexOf(kindOf(placed[0]))) }));
    const values = { d_model: known.d_model, vocab_size: known.vocab_size };
    groups.forEach((g) => { g.seen = g.parts.find((p) => p.kept); });
    values.n_layers = total(groups, (g) => (g.count * g.parts.length) / 2);
    const plain = groups.every((g) => g.parts.every((p) => !p.kept || p.plain));
    values.hosted = plain ? 0 : values.n_layers;
    D.stored.forEach((part, k) => { values[key("stored", part)] = known.stored[k]; });
    return { ...known, groups, values, name, size: total(known.stored, Number) };
  };
  const model = (S) => {
    const known = S.own || D.models[S.model];
    if (!made.has(known)) made.set(known, opened(known, S.own ? S.own.name : S.model));
    return made.get(known);
  };
  const layers = (m) => total(m.groups, (g) => g.count);
  const every = (m, name) => m.groups.flatMap((g) => g.parts.filter((p) => name in p.own).map((p) =>
    p.own[name]));
  const heads = (m) => every(m, "n_heads");
  const sparse = (m) => m.values.stored_experts > 0;

  // A model or a chip by any name that the catalogue knows; else as it was typed.
  const known = (what, text) => {
    const words = text.toLowerCase().replace(/^.*\//, "").split(/[\s_-]+/);
    return D.names[what][words.join("")] || D.names[what][words.slice(0, -1).join("")] || text;
  };
  const machineOf = (text) => {
    const [, n, name] = /^\s*(\d+)\s*[x×]\s*(.+?)\s*$/i.exec(text) || [];
    const named = name && known("chip", name);
    return n >= 1 && has(chips, named) ? { chip: named, n_chips: +n } : null;
  };

  // Formats of weights, of each part and of the cache: as given, else the checkpoint's. A format is a name,
  // or bytes of a weight and whose kernels serve it.
  const formats = (S, m) => {
    const [own, parts, cache] = m.formats, kept = S.keep || {}, weights = S.weights || own;
    const all = S.weights ? D.formats.each[S.weights][4][sparse(m) ? 1 : 0] : parts;
    const each = Object.fromEntries(D.parts.map((name, k) => [name, format(kept[name] || all[k])]));
    return { weights: format(weights), each, cache: S.cache || cache };
  };
  const format = (name) => {
    const [bytes, peaks, kernel, fresh] = D.formats.each[Array.isArray(name) ? name[1] : name];
    return { bytes: Array.isArray(name) ? name[0] : bytes, peaks, kernel, fresh };
  };

  // Dollars of an hour of a chip, and of one that is used.
  const hourly = (S, name) => {
    const listed = S.prices || {};
    if (name === S.chip && S.price != null) return S.price;
    return has(listed, name) ? listed[name] : chips[name].values.chip_price;
  };
  const price = (S, name) => {
    const hour = hourly(S, name), more = { electricity: S.electricity, pue: S.pue || 1 };
    if (hour == null) return null;
    const { chip_power } = name === S.chip ? chip(S).values : chips[name].values;
    return (S.electricity == null ? hour : D.glue.hourly({ ...more, price: hour, chip_power })[0])
      / (S.utilisation || 1);
  };
  const chip = (S) => {
    const known = chips[S.chip], values = { ...known.values }, peaks = { ...known.peaks };
    for (const [field, value] of Object.entries(S.changed || {})) {
      if (!field.startsWith("peak_")) values["chip_" + field] = value;
      else if (field !== "peak_16") peaks[field.slice(5)] = value;
      else { values.chip_flops = value; ["bf16", "fp16"].forEach((f) => { if (f in peaks) peaks[f] = value;
        }); }
    }
    return { ...known, values, peaks, name: S.chip };
  };

  const layout = (S, m) => {
    const n = S.n_chips, split = S.split || 1;
    if (S.layout === "copies") return { tp: split, pp: 1, dp: n / split, ep: sparse(m) && n > split ? n : 1 };
    if (S.layout === "stages") return { tp: n / split, pp: split, dp: 1, ep: 1 };
    return { tp: n, pp: 1, dp: 1, ep: S.layout === "experts" && sparse(m) ? n : 1 };
  };
  // The fields of the form that say a layout.
  const placed = ({ tp, pp, dp, ep }) => ({ layout: dp > 1 ? "copies" : pp > 1 ? "stages" : ep > 1 ? "experts"
    : "tp", split: dp > 1 ? tp : pp > 1 ? pp : 2 });
  const words = (l) => {
    const cut = (l.pp > 1 ? ["PP" + l.pp] : []).concat(l.tp > 1 ? ["TP" + l.tp] : []);
    if (l.dp > 1 && l.ep > 1) return "attention " + ["DP" + l.dp, ...cut].join(" x ") + " with EP" + l.ep;
    const more = l.ep > 1 ? ["EP" + l.ep] : [];
    return [...(l.dp > 1 ? ["DP" + l.dp] : []), ...cut, ...more].join(" x ") || "one chip";
  };

  // The timed block nearest to a class of engine, a width and formats, as Operators.block finds it.
  const nearest = (name, lender, engine, width, size, cache) => {
    const rows = D.kernels[D.kernels[lender].lends[name]].timed[name];
    const far = ([by, wide, bytes, kept]) =>
      [by !== engine, Math.abs(wide - width), bytes == null ? 0 : Math.abs(bytes - size),
        kept !== cache].map(Number);
    const nearer = (a, b) => { const k = a.findIndex((v, i) => v !== b[i]); return k >= 0 && a[k] < b[k]; };
    return rows.reduce((best, row) => (nearer(far(row), far(best)) ? row : best)).slice(4);
  };

  // Everything that the functions take, but for the workload; or why there is no answer.
  const machine = (S, m, c, n, l) => {
    const q = { rows: 1, ...m.values, ...c.values, ...D.engines[S.engine].values, n_chips: n, tp: l.tp,
      pp: l.pp, dp: l.dp, ep: l.ep, lanes: l.dp * l.pp, share: S.memory || D.facts.share,
      workspace: D.facts.workspace[l.tp > 1 ? 1 : 0] };
    q.counted = S.engine === "compiled" ? q.share : 1;
    q.exchange_share = D.facts.exchange_share;
    const known = D.kernels[c.lender], stored = formats(S, m), { each, cache } = stored, mixed = sparse(m);
    const spread = mixed && l.ep > 1 ? (l.dp > 1 ? 1 : 2) : 0;
    let late = ""; // what the kernels lack is asked after the memory, as in the library
    const put = (prefix, kind, found) => {
      if (typeof found === "string") late = late || found;
      else D.kernel[kind].forEach((field, k) => {
        q[prefix + "_" + field] = c.program && (field === "start" || field === "depth") ? 0 : found[k];
      });
    };
    for (const name of D.parts) {
      const { bytes, peaks, kernel } = each[name];
      put(key("gemm", name), "gemm", known.gemm[kernel]);
      q[key("bytes", name)] = bytes;
      const peak = peaks.find((p) => p in c.peaks);
      q[key("peak", name)] = peak ? c.peaks[peak] : c.values.chip_flops;
    }
    const parts = m.groups.flatMap((g) => g.parts);
    if (mixed) put("block", "experts", known.experts[each.experts.kernel]);
    if (parts.some((p) => p.pairs)) put("pairs", "attention", known.attention[cache]);
    const blocks = (by) => {
      const found = {};
      for (const name of new Set(parts.flatMap((p) => p.timed))) {
        const asked = D.sparse.includes(name) ? [m.d_model, q.bytes_attention, cache] : [0, 0, ""];
        nearest(name, c.lender, by, ...asked).forEach((v, k) => { found[key("timed", name) + "_"
          + D.timed[name][k]] = v; });
      }
      return found;
    };
    // Prompts are read by the blocks of an engine that serves.
    const compiled = S.engine === "compiled", reading = compiled ? blocks(0) : {};
    Object.assign(q, blocks(compiled ? 1 : 0));
    q.cache_bytes = D.formats.cache[cache];
    ["reduce", "library"].forEach((kind) => D.degrees.forEach((degree, k) => {
      const at = kind + "_" + degree;
      [q[at + "_latency"], q[at + "_bandwidth"]] = known[kind][k];
    }));
    if (!q.chip_scale_up_size) q.chip_scale_up_size = n;
    const sends = n <= q.chip_scale_up_size ? q.chip_scale_up_bandwidth : q.chip_scale_out_bandwidth;
    if (spread === 1 && sends == null) late = late || c.name
      + " states no bandwidth to send tokens to experts over";
    return { q, reading, spread, m, c, l, n, late, stored, groups: m.groups };
  };
  const whole = (l, n) => [l.tp, l.dp, l.pp].every(Number.isInteger) && l.tp * l.pp * l.dp === n;
  const asked = (S) => {
    const m = model(S), l = layout(S, m), n = S.n_chips, deep = layers(m);
    const parts = S.layout === "copies" ? "copies of " + S.split + " chips" : S.split + " stages";
    if (S.electricity == null && S.pue != null)
      return { refused: "pue belongs to electricity: give dollars for a kilowatt-hour" };
    const dark = (S.reader ? [S.chip, machineOf(S.reader).chip] : [S.chip]).find((name) =>
      hourly(S, name) != null && (name === S.chip ? chip(S) : chips[name]).values.chip_power == null);
    if (S.electricity != null && dark)
      return { refused: "electricity has a price, but the power of " + dark + " is not known" };
    if (!whole(l, n)) return { refused: n + " chips cannot be divided into " + parts };
    if (l.pp > deep) return { refused: l.pp + " stages, but the model has " + deep + " layers" };
    const uneven = heads(m).find((one) => one % l.tp);
    if (uneven) return { refused: words(l) + " cuts " + uneven + " heads in " + l.tp
      + " parts, which cannot be" };
    return machine(S, m, chip(S), n, l);
  };

  // --- Answers ----------------------------------------------------------------------------------------
  // Seconds by term: groups of layers add, terms of one stage overlap, and the longest counts.
  const binding = (terms) => terms.filter((t) => t.counts)
    .reduce((a, b) => (b.seconds > a.seconds ? b : a)).name;
  const timed = (at, what, q = at.q) => {
    const found = {};
    const add = (count, made, own) => made.f(q, own).forEach((seconds, k) => {
      const term = D.terms[made.terms[k]];
      found[term] = (found[term] || 0) + at.c.slower * count * seconds;
    });
    let sums = 0; // how often the chips of an instance add their parts together
    at.groups.forEach((g) => g.parts.forEach((part) => {
      sums += g.count * of(part.sums, at);
      add(g.count, of(part[what], at), part.own);
    }));
    add(sums, D.whole.sums[what === "step" ? 0 : 1]);
    add(1, of(D.whole[what], at));
    const terms = [];
    let sum = 0;
    for (const stage of D.stages) {
      const inside = stage.filter((name) => name in found);
      if (!inside.length) continue;
      const most = inside.reduce((a, b) => (found[b] > found[a] ? b : a));
      inside.forEach((name) => terms.push({ name, seconds: found[name], counts: name === most }));
      sum += found[most];
    }
    return { terms, total: sum };
  };
  const run = (at, more) => timed(at, "step", Object.assign(at.q, more)).total;
  const kept = (at, length, q) => {
    const each = at.groups.filter((g) => g.seen).map((g) => g.seen.kept({ ...q, length },
      g.seen.own).map((n) => g.count * n));
    return Object.assign(q, { length, kept: total(each, (n) => n[0]), state: total(each, (n) => n[1]) });
  };
  const fits = (at, q = at.q) => of(D.whole.fit, at)(kept(at, q.context, q));
  const drawn = (prefix, terms) => {
    const found = Object.fromEntries(D.drawing.map((name) => [key(prefix, name), 0]));
    terms.forEach(({ name, seconds }) => { if (D.drawing.includes(name)) found[key(prefix, name)] = seconds;
      });
    return found;
  };
  const even = (v) => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v)); // as Python rounds
  const shown = (v) => (typeof v === "number" ? even(v).toLocaleString("en-US") : v);
  const filled = (text, facts) => text.replace(/\{(\w+)(:[^}]*)?\}/g, (_, name) => shown(facts[name]));
  const ofChip = (n, name) => n + (/NVL\d/.test(name) ? n === 1 ? " GPU of " : " GPUs of " : " × ") + name;
  const short = (at, needs, own, left) => {
    const said = (bytes) => (Math.max(bytes, 0) * at.n / 1e9).toFixed(0);
    return filled(D.short[needs > own ? 0 : 1].replace(/:\.0f/g, ""), { system: ofChip(at.n, at.c.name),
      need: said(needs), have: said(own), left: said(left) });
  };

  // The chips whose timings stand for blocks of attention that a chip has none of.
  const blocksOf = (at) => {
    const kinds = D.sparse.filter((name) => at.groups.some((g) => g.parts.some((p) =>
      p.timed.includes(name))));
    const lenders = new Set(kinds.sort().map((name) => D.kernels[at.c.lender].lends[name]));
    return [...lenders].filter((name) => name !== at.c.name);
  };
  // Which cautions hold, and by how much they widen an interval: errors of their own add by their squares.
  const doubts = (lists, S, at, batch, context, more) => {
    const c = at.c, { kernel, fresh } = at.stored.weights, seen = at.groups.filter((g) => g.seen).map((g) =>
      g.seen.own.n_heads), borrowed = blocksOf(at);
    const told = {
      ...D.facts, context, batch, tp: at.l.tp, expert_chips: at.l.ep > 1 ? at.n : 0, heads: Math.min(...seen),
      domain: Math.min(at.n, at.q.chip_scale_up_size), new_chip: c.new, other_maker: c.maker, equal: 0,
        chip: c.name,
      lender: c.lender, lent: c.lent, format: kernel, new_format: fresh, new_experts: at.m.new,
      copies: at.l.dp, stages: at.l.pp, slower: c.slow, shared: c.pcie && at.l.tp > 1 ? 1 : 0,
      drafted: S.drafted || 0, timed_on: borrowed.join(", "),
      borrowed: borrowed.length, unscored: at.m.unscored, new_kind: at.m.unscored ? 1 : 0,
      params: at.m.size / 1e6,
      widened: kernel.startsWith("fp8") && !c.peaks.fp8 ? 1 : 0, ...more,
    };
    const held = lists.flatMap((name) => {
      const { texts, widens, f } = D.cautions[name], by = f(told);
      return texts.map((text, k) => [by[k] > 0, filled(text, told), Math.min(by[k], 1) * Math.log(widens[k])])
        .filter(([holds]) => holds);
    });
    return { texts: held.map(([, text]) => text), wider: (factor) => Math.exp(Math.hypot(Math.log(factor),
      ...held.map(([, , by]) => by))) };
  };
  const cautions = (S, at, ...put) => [...doubts(put[2] ? ["step", "request", "first"] : ["step"], S, at,
    ...put).texts, ...(at.m.told || [])];
  // How far an answer may be off: what rows left out say, and the cautions that hold; the second of a first
  // token.
  const spread = (S, at, ...put) => {
    const kind = at.l.dp > 1 ? "copies" : sparse(at.m) ? "experts" : "dense", [token, copies] = at.m.factors
      || [1, 1];
    const bar = Math.max(D.engines[S.engine].factor[kind], token, at.l.dp > 1 ? copies : 1);
    return doubts(put[2] ? ["step", "request"] : ["step"], S, at, ...put).wider(bar);
  };
  const firstSpread = (S, at, ...put) =>
    doubts(["step", "request", "first"], S, at, ...put).wider(Math.max(D.facts.first_factor,
      (at.m.factors || [1, 1, 1])[2]));

  // A decode step of so many sequences of a context.
  const step = (S, batch, context) => {
    const at = asked(S);
    return at.refused ? { status: "n/a", reason: at.refused } : stepAt(S, at, batch, context);
  };
  const stepAt = (S, at, batch, context) => {
    Object.assign(at.q, { batch, context });
    const [needs, own, left] = fits(at), sum = (bytes) => (own == null ? null : Math.max(bytes, 0) * at.n);
    const fit = { needs: needs * at.n, left: sum(left), has: sum(own) };
    if (own != null && needs > left)
      return { status: "infeasible", reason: short(at, needs, own, left), fit };
    if (at.late) return { status: "n/a", reason: at.late, fit };
    const plain = timed(at, "step"), drafts = S.drafted ? draftedAt(S, at, plain.total) : null;
    const { terms, total: seconds } = drafts || plain, cost = price(S, at.c.name);
    const all = { ...at.q, step: seconds, running: batch, ...drawn("step", terms), batch };
    const [speed, perChip, low, high] = D.glue.rates({ ...all, spread: spread(S, at, batch, context) });
    return {
      status: "ok", seconds, low, high, terms, binding: binding(terms), fit, batch, context, speed, perChip,
      dollars: cost == null ? null : D.glue.cost({ ...all, price: cost })[0], price: cost,
      joules: at.q.chip_power == null ? null : D.glue.joules({ ...all, together: all.running })[0],
      cautions: cautions(S, at, batch, context), layout: words(at.l), at, drafts,
    };
  };
  // A token with drafts: one step verifies them, a head of one layer (the last) made them one by one.
  const draftedAt = (S, at, plain) => {
    const last = at.groups[at.groups.length - 1], experts = last.parts.some((p) => "n_experts" in p.own);
    const head = { ...at, spread: experts ? at.spread : 0, groups: [{ ...last, count: 1 }] };
    const verifying = timed(at, "step", { ...at.q, rows: S.drafted + 1 });
    const alone = { ...at.q, n_layers: last.parts.length / 2, engine_base: 0, engine_rank: 0, pp: 1,
      n_chips: at.n / at.l.pp, // on the last stage
      batch: Math.max(at.q.batch / at.l.pp, Math.min(at.q.batch, 1)) };
    const draft = timed(head, "step", alone).total + of(D.whole.join, at)(alone)[0];
    const given = { draft, drafted: S.drafted, length: S.length };
    const [token] = D.glue.drafted({ ...given, step: verifying.total }), [drafting] = D.glue.drafted({
      ...given, step: 0 });
    const terms = verifying.terms.map((t) => ({ ...t, seconds: t.seconds / S.length }));
    terms.push({ name: "drafting", seconds: drafting, counts: true });
    return { total: token, token, verify: verifying.total, draft, terms, gain: plain / token };
  };

  // A request: question, answer, users at a time.
  const passes = (at, tokens, cached) => {
    const pass = (tokens, cached) => timed(at, "prompt", { ...at.q, ...at.reading, tokens, cached });
    const read = pass(tokens, cached);
    return { read, fresh: cached ? pass(tokens - cached, 0).total : read.total };
  };
  const rooms = (at, S) => {
    if (at.q.chip_memory_capacity == null) return Infinity;
    const compiled = S.engine === "compiled", most = S.prompt + S.output;
    const q = { ...at.q, longest: kept(at, most, { ...at.q }).kept };
    return of(D.whole.room, at)(kept(at, compiled ? most : most - S.output / 2, q))[0];
  };
  const clamped = (S) => Math.min(S.cached || 0, S.prompt - 1);

  // A fleet as in tokenprice.fleet. A machine is a queue: seconds of its steps, asked when they are needed,
  // and of the prompts.
  const queue = (S, at, room, context) => {
    const { lanes } = at.q, known = [], most = Math.min(room, S.users || D.most, D.most);
    const step = (n) => {
      if (n in known) return known[n];
      const seconds = run(at, { batch: n * lanes, context });
      return (known[n] = S.drafted ? draftedAt(S, at, seconds).total : seconds);
    };
    return { at, lanes, context, step, places: Math.max(Math.floor(most / lanes), 1),
      ...passes(at, S.prompt, clamped(S)) };
  };
  // Means over the requests of a copy, null where they pile up; copies in step slow one another.
  const steady = (s, all, before) => {
    let met = 0, clings = 0, found = null;
    for (let k = 0, last = NaN; k < 200 && !(Math.abs(met - last) < 1e-9); k++) {
      found = copy(s, all, before, met, clings);
      if (!found) return null;
      const asked = { ...s, arrivals: all / s.lanes, step: found.step - met * s.own };
      const [next, cling, keeps] = D.glue.others(asked);
      if (keeps === 1 || !s.own) return found;
      [last, met, clings] = [met, next, cling];
    }
    return found;
  };
  const copy = (s, all, before, met, clings) => {
    const arrivals = all / s.lanes, busy = arrivals * s.full, logs = [0], own = s.own * (1 - met);
    const took = (n) => s.step(n) + met * s.own;
    if (!(busy < 1)) return null;
    let line = Infinity, most = 0;
    for (let n = 1; n <= s.places && !(line < 1 && logs[n - 1] < most + NEVER); n++) {
      line = arrivals * s.output * took(n) / n / (1 - arrivals * own);
      logs.push(logs[n - 1] + Math.log(line));
      most = Math.max(most, logs[n]);
    }
    const odds = logs.map((v) => Math.exp(v - most)), full = odds.length > s.places;
    if (full && !(line < 1)) return null;
    if (full) odds[s.places] /= 1 - line;
    const mean = (of) => odds.reduce((sum, odd, n) => sum + odd * of(n), 0);
    const step = mean(Number) / mean((n) => n && n / took(n)), kind = s.own ? "queue" : "apart";
    const blocked = full ? odds[s.places] / mean(() => 1) : 0;
    const asked = { ...s, arrivals, before, step, line, blocked, met, clings };
    const [reading] = D.glue[kind]({ ...asked, cleared: 1 }), stays = 1 - 1 / s.output;
    const reads = s.own ? arrivals * reading : 0;
    if (!(reads < 1 && before >= 0)) return null;
    let y = 1; // the root of tokenprice.fleet.clearing
    for (let k = 0; k < 50; k++) {
      const left = stays * Math.exp(-reads * y);
      y -= (left + y - 1) / (1 - reads * left);
    }
    const [, waits, token, first] = D.glue[kind]({ ...asked, cleared: y });
    return { busy, held: all * (reading + (s.output - 1) * token), waits, token, first, step };
  };
  const NEVER = -60; // logarithm of the odds of a state that nobody sees
  const fewest = (good) => {
    let low = 0, high = 1;
    while (high <= 2 ** 20 && !good(high)) [low, high] = [high, 2 * high];
    while (high - low > 1) { const n = (low + high) >> 1; if (good(n)) high = n; else low = n; }
    return high <= 2 ** 20 && high;
  };
  // As few machines as have a steady state at both ends that is good; a reader is the queue of those that do
  // nothing but read prompts.
  const fleet = (S, one, reader, good = () => true) => {
    const { arrivals, output, prompt } = S, { at, lanes, places, context } = one, { read } = reader || one;
    const put = [S, at, lanes, context, { users: lanes, running: lanes, prompt }], factor = spread(...put);
    const own = reader ? 0 : read.total, soon = firstSpread(...put);
    const full = D.glue.full({ ...at.q, own, output, step: one.step(places), users: places })[0];
    const late = reader ? 0 : D.glue.late({ ...at.q, read: read.total })[0];
    const ends = [1, factor].map((by) => ({ ...at.q, output, places, late, own: own * by,
      read: read.total * by, step: (n) => by * one.step(n), full: full * by }));
    // What a request waits where m machines read its prompt; none are counted yet without m.
    const before = ({ read }, m) => {
      if (!reader || !m) return reader ? read : 0;
      const each = { arrivals: arrivals / m / reader.lanes, read };
      return each.arrivals * read < 1 ? read + D.glue.turn(each)[0] : NaN;
    };
    const states = (n, m) => {
      const [now, slow] = ends.map((s) => steady(s, arrivals / n, before(s, m)));
      if (!slow) return null;
      slow.first = Math.max(slow.first, now.first * soon);
      return good(now, slow) && [now, slow];
    };
    const n = S.machines || fewest((k) => states(k)), readers = reader && n ? fewest((m) => states(n, m)) : 0;
    const found = n && readers !== false && states(n, readers);
    if (!found) return null;
    const [state, slow] = found, load = arrivals * full / lanes, parts = [[n, at]];
    if (readers) parts.push([readers, reader.at]);
    const hours = parts.map(([k, of]) => ({ chips: k * of.n, price: price(S, of.c.name) }));
    const readerLoad = readers && arrivals * read.total / reader.lanes / readers;
    return { n, reader, readers, hours, chips: total(hours, (h) => h.chips), state, slow, factor, load,
      readerLoad, hour: hours.some((h) => h.price == null) ? null : total(hours, (h) => h.chips * h.price),
      headroom: 1 / factor / Math.max(load / n, readerLoad) };
  };
  const crowded = (S, ...more) => {
    const enough = fleet({ ...S, machines: null }, ...more), percent = (v) => even(100 * v) + "%";
    return enough ? S.machines + (S.machines > 1 ? " machines would be asked for "
      : " machine would be asked for ") + percent(enough.load / S.machines)
      + " of what they can do; above " + percent(1 / enough.factor) + " the slow end of the interval has no "
      + "steady state; " + enough.n + " are enough" : "no number of machines has a steady state";
  };
  const twice = ({ arrivals, utilisation }) => (arrivals && utilisation
    ? "utilisation follows from arrivals: leave one of them out" : "");
  const together = (at, output, running) => D.glue.together({ lanes: at.q.lanes, output, running })[0];
  const request = (S) => {
    const at = asked(S), { prompt, output, arrivals } = S, refused = (reason) => ({ status: "n/a", reason });
    if (twice(S)) return refused(twice(S));
    if (S.reader && !arrivals) return refused("reader belongs to arrivals on this page: give arrivals, or "
      + "ask tokenprice in Python or a terminal");
    if (at.refused) return refused(at.refused);
    const places = rooms(at, S), fits = arrivals ? at.q.lanes : 1, context = prompt + output / 2;
    if (!(places >= fits)) {
      const { fit, reason } = stepAt(S, at, fits, prompt + output);
      const each = fits > 1 ? " in each copy and stage" : "";
      return { status: "infeasible", fit, reason: ofChip(at.n, at.c.name)
        + " has no room for one user beside the weights" + each + ": "
        + (reason || "another one does not fit") };
    }
    const users = arrivals ? 1 : S.users || 1, running = Number.isFinite(places)
      ? D.glue.running({ users, places })[0] : users;
    const step = stepAt(S, at, arrivals ? running : together(at, output, running), context);
    if (step.status !== "ok") return step;
    if (!arrivals) return served(S, { at, context, ...passes(at, prompt, clamped(S)) }, step, users, running);
    const reads = S.reader && machineOf(S.reader), same = reads && reads.chip === S.chip;
    const one = queue(S, at, places, context), own = same && reads.n_chips === at.n ? one
      : reads && reading(S, at.m, same ? at.c : chip({ chip: reads.chip }), reads.n_chips);
    const many = fleet(S, one, own);
    if (!many) return refused(crowded(S, one, own));
    const apart = S.machines || own ? null : fleet(S, one, one), found = inFleet(S, one, many);
    const other = apart ? inFleet(S, one, apart) : found;
    return other.status === "ok" ? { ...found, apart } : other;
  };
  // So many chips as a queue that reads prompts, each on all of them.
  const reading = (S, m, c, n) => {
    const at = machine(S, m, c, n, { tp: n, pp: 1, dp: 1, ep: 1 });
    return { at, lanes: 1, ...passes(at, S.prompt, clamped(S)) };
  };
  // The mean request of a fleet.
  const inFleet = (S, one, many) => {
    const users = Math.max(many.state.held, 1), step = stepAt(S, one.at, Math.max(users, one.lanes),
      one.context);
    return served(S, one, step, users, users, many);
  };
  const served = (S, one, step, users, running, many) => {
    const { at, context } = one, { prompt: tokens, output, arrivals } = S, cached = clamped(S);
    const { reader } = many || {}, { read, fresh } = reader || one, answered = reader ? running
      : together(at, output, running);
    const all = { ...at.q, output, tokens, cached, users, running, step: step.seconds, read: read.total,
      fresh, ...drawn("step", step.terms), ...drawn("read", read.terms) };
    const put = [S, at, users, context, { users, running, prompt: tokens }], hour = price(S, at.c.name);
    const spent = { ...all, users: answered, own: reader ? 0 : D.glue.own(all)[0] };
    const taken = D.glue.machine(spent)[0];
    const between = (seconds, factor) => D.glue.rates({ ...all, batch: running, step: seconds,
      spread: factor });
    const [first, token, sum] = many ? [many.state.first, many.state.token, arrivals * output]
      : D.glue.waiting(all);
    let [speed, , tokenLow, tokenHigh] = between(token, spread(...put));
    let [, , firstLow, firstHigh] = between(first, firstSpread(...put));
    if (many) [tokenHigh, firstHigh] = [Math.max(tokenHigh, many.slow.token), Math.max(firstHigh,
      many.slow.first)];
    // What holds whatever the model.
    const least = run(at, { batch: many ? at.q.lanes : Math.min(at.q.lanes, running), context });
    const told = { token, tokens: sum, received: users * output / (first + output * token),
      first_token: first, reading: read.total, machine: taken,
      parts: spent.own + output * step.seconds / spent.users,
      alone: S.drafted ? draftedAt(S, at, least).total : least, everybody: D.glue.everybody(all)[0],
      made: many ? arrivals * output * many.n / many.load : output / taken, token_low: tokenLow,
      token_high: tokenHigh, first_low: firstLow, first_high: firstHigh };
    const wrong = D.bounds.find(([kind, at]) => !(many && kind === "loop")
      && !(D.glue["bounds_" + kind](told)[at] >= 0));
    if (wrong) return { status: "n/a", reason: wrong[2] };
    const found = { ...step, running, sum, first, firstLow, firstHigh, token, tokenLow, tokenHigh, speed,
      reading: read.total, readBy: binding(read.terms),
      others: Math.max(token - step.seconds, 0), many, factor: spread(...put) };
    if (found.others > Math.max(...step.terms.filter((t) => t.counts).map((t) => t.seconds)))
      found.binding = "prompts of others";
    if (many && reader && many.hour != null) {
      // Each kind of machine is paid for around the clock, whoever uses it.
      const shared = ({ chips, price }, batch, step = 1) => D.glue.cost({ step, batch, n_chips: chips,
        price })[0];
      const [decode, reads] = many.hours, part = fresh / read.total, again = tokens - cached;
      found.million = { input: shared(reads, arrivals * again, part), output: shared(decode, arrivals
        * output), cached: cached ? shared(reads, arrivals * cached, 1 - part) : null };
      found.request = total(many.hours, (one) => shared(one, arrivals)) / 1e6;
    } else if (!reader && hour != null) {
      // Dollars of a used hour: of a fleet, all that it costs over what it answers.
      const busy = many ? taken * arrivals / many.n : 1;
      const [request, input, again, answer] = D.glue.paid({ ...all, price: hour / busy });
      Object.assign(found, { request, million: { input, cached: cached ? again : null, output: answer } });
    }
    if (many && found.million) many.million = found.million.output;
    if (at.q.chip_power != null) {
      const { n_chips, lanes, chip_power } = (reader || one).at.q;
      found.promptJoules = chip_power == null ? null
        : D.glue.prompt_joules({ ...all, n_chips, lanes, chip_power, ep: reader ? 1 : all.ep })[0];
      found.joules = D.glue.joules({ ...all, together: answered })[0];
    }
    found.cautions = cautions(...put);
    return found;
  };

  // Seconds of a token, and what a million cost, of numbers as they are or changed; those of a request with
  // the prompts of others in between.
  const token = (S, at, q, alone) => {
    const { prompt: tokens, output } = S, cached = clamped(S);
    const step = timed(at, "step", alone ? q : { ...q, batch: together(at, output, q.batch) }).total;
    if (alone) return [step, q.price == null ? null : D.glue.cost({ ...q, step })[0]];
    const read = timed(at, "prompt", { ...q, ...at.reading, tokens, cached }).total, users = q.batch;
    const all = { ...q, output, tokens, cached, users, running: users, step, read, fresh: read };
    return [D.glue.waiting(all)[1], q.price == null ? null : D.glue.paid(all)[3]];
  };
  const alone = (S) => S.mode !== "request" || Boolean(S.arrivals);

  // What each change buys: times before over times after.
  const scaled = (q, scale, by) => {
    const now = { ...q };
    for (const field in scale) if (now[field] != null) now[field] *= Math.pow(by, scale[field]);
    return now;
  };
  const changes = (S, batch, context) => {
    const at = asked(S);
    if (at.refused || at.late) return [];
    Object.assign(at.q, { batch, context });
    const [base] = token(S, at, { ...at.q }, alone(S));
    return D.changes.map(({ name, scale: one, copies }) => {
      const scale = copies && S.layout === "copies" ? copies : one;
      return { name, gain: base / token(S, at, scaled(at.q, scale, 2), alone(S))[0] };
    }).sort((a, b) => b.gain - a.gain);
  };

  // A line of steps over batches; points that do not fit are left out.
  const overBatches = (S, context, batches) => {
    const at = asked(S);
    if (at.refused || at.late) return [];
    const cost = price(S, at.c.name);
    return batches.flatMap((batch) => {
      Object.assign(at.q, { batch, context });
      const [needs, own, left] = fits(at);
      if (own != null && needs > left) return [];
      const seconds = run(at);
      return [{ batch, seconds, dollars: cost == null ? null : D.glue.cost({ ...at.q, step: seconds,
        price: cost })[0] }];
    });
  };

  // --- Decide: every machine that keeps a promise, cheapest first; the search of tokenprice.decide ------
  const layouts = (m, c, n) => {
    const found = [], all = heads(m), domain = Math.min(n, c.values.chip_scale_up_size || n), degrees = [];
    for (let d = 1; d <= n; d *= 2) if (n % d === 0 && all.every((h) => h % d === 0)) degrees.push(d);
    const inside = degrees.filter((d) => d <= domain), last = inside[inside.length - 1], stages = n / last;
    if (degrees.includes(n)) found.push({ tp: n, pp: 1, dp: 1, ep: 1 });
    if (stages > 1 && stages <= layers(m)) found.push({ tp: last, pp: stages, dp: 1, ep: 1 });
    const sends = n <= domain ? c.values.chip_scale_up_bandwidth : c.values.chip_scale_out_bandwidth;
    if (!sparse(m) || n === 1 || n > Math.min(...every(m, "n_experts"))) return found;
    if (inside.includes(n)) found.push({ tp: n, pp: 1, dp: 1, ep: n });
    if (sends == null) return found;
    return found.concat(inside.filter((d) => d <= 8 && d < n).map((d) =>
      ({ tp: d, pp: 1, ep: n, dp: n / d })));
  };
  // The chips that may be offered: every one, the one that was chosen, or a list.
  const tried = (S) => (S.only ? [S.only].flat() : Object.keys(D.chips));
  const machines = (S) => {
    const m = model(S), own = (name) => D.chips[name].lender === name && price(S, name) != null;
    return tried(S).filter(own).flatMap((name) => {
      const c = chip(name === S.chip ? S : { chip: name }), cost = price(S, name);
      return c.counts.flatMap((n) => layouts(m, c, n).map((l) => ({ m, c, n, l, cost })));
    });
  };
  // Whether a state is as promised.
  const asPromised = (S, one) => !(S.token && one.token > S.token)
    && !(S.first_token && one.first > S.first_token);
  // The time of an answer is asked for powers of two of users a copy, then between the last good one and the
  // next; of arrivals, for the cheapest way to read prompts.
  const judge = (S, { m, c, n, l, cost }, out) => {
    const { prompt: tokens, output } = S, cached = clamped(S), context = tokens + output / 2;
    const name = { chip: c.name, n, layout: words(l), l }, most = S.dollars || Infinity;
    const few = (v) => +v.toPrecision(3);
    const miss = (reason, detail, times = Infinity) => out.misses.push({ ...name, reason, detail, times });
    const at = machine(S, m, c, n, l);
    if (at.late) return miss("not described", at.late);
    const places = rooms(at, S), rounds = Math.floor(Math.min(places, D.most) / l.dp);
    if (!(rounds >= 1)) return miss("does not fit", stepAt(S, at, l.dp, tokens + output).reason
      || "room for " + few(Math.max(places, 0)) + " users");
    const one = queue(S, at, places, context), who = l.dp === 1 ? "1 user" : l.dp + " users";
    const all = { ...at.q, output, tokens, cached, read: one.read.total, fresh: one.fresh, price: cost };
    const serve = (round) => {
      const users = l.dp * round, put = [S, at, users, context, { users, running: users, prompt: tokens }];
      Object.assign(all, { users, running: users });
      all.step = run(at, { batch: together(at, output, users), context });
      const [first, token] = D.glue.waiting(all), [dollars, , , million] = D.glue.paid(all);
      const [later, late] = S.sure ? [spread(...put), firstSpread(...put)] : [1, 1];
      const seen = { token: token * later, first: first * late };
      return { ...name, users, first, token, speed: 1 / token, dollars, million, seen,
        slow: seen.token > (S.token || Infinity), late: seen.first > (S.first_token || Infinity) };
    };
    const end = S.sure ? " at the slow end" : "";
    const dear = (least) => miss("too expensive", "$" + digits(least) + " per million at best", least / most);
    const missed = ({ slow, late, seen }, least) => (slow
      ? miss("too slow", few(1 / seen.token) + " tokens/s" + end + " for " + who, seen.token / S.token)
      : late ? miss("first token too late", few(seen.first) + " s" + end + " for " + who, seen.first
      / S.first_token) : dear(least));
    const offer = (found) => {
      if (found.status !== "ok") return miss("not described", found.reason);
      const { request: dollars, running: users, million: { output: million } } = found;
      if (million > most) return dear(million);
      return out.offers.push({ ...found, ...name, users, dollars, million, one, S: { ...S, chip: c.name,
        n_chips: n } });
    };
    if (S.arrivals) {
      const others = c.counts.filter((k) => k < n && heads(m).every((h) => h % k === 0)).map((k) =>
        reading(S, m, c, k)).filter((r) => rooms(r.at, { ...S, output: 1 }) >= 1);
      const good = (now, slow) => asPromised(S, S.sure ? slow : now);
      const found = [null, one, ...others].map((r) => fleet(S, one, r, good)).filter(Boolean);
      if (!found.length) return missed(serve(1), serve(1).million);
      // Of as many chips, those that keep the promise at the slow end as well come first.
      const late = (f) => !asPromised(S, f.slow);
      const order = (a, b) => a.chips - b.chips || late(a) - late(b);
      return offer(inFleet(S, one, found.sort(order)[0]));
    }
    const good = (found) => !found.slow && !found.late && found.million <= most;
    let low = 0, best = null, alone = null, least = Infinity;
    for (let round = 1; round <= rounds; round *= 2) {
      const found = serve(round);
      alone = alone || found;
      least = Math.min(least, found.million);
      out.points.push(found);
      if (good(found)) [low, best] = [round, found];
    }
    if (!low) return missed(alone, least);
    const power = low;
    let high = Math.min(2 * low, rounds + 1);
    while (high - low > 1) {
      const middle = (low + high) >> 1, found = serve(middle);
      if (good(found)) [low, best] = [middle, found]; else high = middle;
    }
    if (low !== power) out.points.push(best);
    const { users } = best, step = stepAt(S, at, together(at, output, users), context);
    return offer(served(S, one, step, users, users));
  };
  // Weights of fewer bits that keep the promise for less on the best one's chip, or at all if nothing does.
  const inFewerBits = (best, S) => {
    const m = model(S), own = formats(S, m).weights.bytes;
    const stem = "/" + m.name.split("/").pop().toLowerCase() + "-";
    return ["fp8", "fp4"].filter((w) => D.formats.each[w][0] < own).flatMap((w) => {
      const able = (name) => w in D.chips[name].peaks && (!best || name === best.chip);
      const only = tried(S).filter(able);
      const other = decide({ ...S, weights: w, only, bare: true }).best;
      const less = other && best ? 1 - other.dollars / best.dollars : 1;
      if (!other || less < 0.01) return [];
      const names = Object.keys(D.models).map((one) => [one, one.toLowerCase()]);
      const known = names.find(([, one]) => one.includes(stem) && one.endsWith(w));
      return ["With weights in " + w + (known ? " (" + known[0] + ")" : "") + ", "
        + ofChip(other.many ? other.many.chips : other.n, other.chip) + " would keep the promise"
        + (best ? " for " + even(100 * less) + "% less" : "")];
    }).join(". ");
  };
  const decided = (out, S) => {
    const ranked = (o) => +(o.dollars * (o.at.spread === 1 ? o.factor : 1)).toPrecision(9);
    out.offers.forEach((o) => { o.ranked = ranked(o); });
    out.offers.sort((a, b) => a.ranked - b.ranked || a.n - b.n || a.token - b.token);
    const seen = new Set();
    out.best = out.offers[0] || null;
    out.untried = out.best && out.best.at.c.new ? ", with nothing measured on " + out.best.chip : "";
    out.runnersUp = out.offers.filter((o) => !seen.has(o.chip) && seen.add(o.chip)).slice(1);
    let lowest = Infinity;
    const line = out.points.length ? out.points.filter((p) => !p.late) : out.offers.slice();
    out.frontier = line.sort((p, q) => q.speed - p.speed || p.dollars - q.dollars)
      .filter((p) => p.dollars < lowest && ((lowest = p.dollars), true));
    // of the chips that are shown, what the slow end needs
    const shown = out.best && out.best.many && !S.sure && !S.bare ? [out.best, ...out.runnersUp] : [];
    shown.forEach((o) => { o.sure = decide({ ...S, sure: true, only: o.chip, bare: true }).best; });
    out.narrower = S.bare ? "" : inFewerBits(out.best, S);
    return out;
  };
  const search = () => ({ offers: [], points: [], misses: [] });
  const decide = (S) => { const out = search(); machines(S).forEach((one) => judge(S, one, out));
    return decided(out, S); };

  // By how much one thing would have to change for a step to be good enough, all else left: by bisection.
  const needed = (S, batch, context, good) => D.levers.map(({ name, scale, limit, less }) => {
    const at = asked(S), none = { name, factor: null, limit, less };
    if (at.refused || at.late) return none;
    const q = Object.assign(at.q, { batch, context, price: price(S, at.c.name) });
    const holds = (by) => {
      const now = scaled(q, scale, by), [needs, own, left] = fits(at, now);
      if (own != null && needs > left) return false;
      return good(...token(S, at, now, alone(S)));
    };
    const tries = Array.from({ length: 61 }, (_, k) => Math.pow(limit, k / 60)),
      first = tries.findIndex(holds);
    if (first < 0) return none;
    let low = tries[Math.max(0, first - 1)], high = tries[first];
    for (let k = 0; k < 40; k++) { const middle = Math.sqrt(low * high); if (holds(middle)) high = middle;
      else low = middle; }
    return { name, factor: high, limit, less };
  });

  // The measured rows nearest to a question: same model and chip first, then by ratios of users, chips and
  // context.
  const neighbours = (S, batch, context, most) => {
    const names = D.measured.names, m = model(S), { kernel } = formats(S, m).weights;
    const apart = (a, b) => Math.abs(Math.log2(Math.max(a, 1) / Math.max(b, 1)));
    const size = (name) => (has(D.models, name) ? total(D.models[name].stored, Number) : 0);
    const shapes = names.model.map((name) => {
      const same = name === m.name || Math.abs(size(name) / m.size - 1) < 1e-6;
      return apart(size(name), m.size) * 2 + (same ? 0 : 8); // another model's only where this one has none
    });
    // users, seconds between tokens, and seconds to the first where answers have a length
    const cut = (list, n) => Array.from({ length: list.length / n }, (_, k) => list.slice(n * k, n * k + n));
    const every = D.measured.rows.flatMap(([alike, found]) => cut(found, alike.length - 7).map((row) =>
      [alike, row]));
    return every.map(([[model, chip, who, format, engine, n, tp, dp, at, output], [users, ms, first]]) => {
      const shape = shapes[model], weights = names.weights[format], same = names.chip[chip] === S.chip;
      const [publisher, url] = names.publisher[who];
      const far = shape + (same ? 0 : 4) + apart(users, batch) + 1.5 * apart(n, S.n_chips) + 0.5 * apart(at,
        context)
        + (dp > 1 === (S.layout === "copies") ? 0 : 1) + (D.same[weights] === D.same[kernel] ? 0 : 1);
      return { far, model: names.model[model], chip: names.chip[chip], publisher, url, weights,
        engine: names.engine[engine],
        n, tp, dp, users, context: at, seconds: ms / 1e3, output, first: first == null ? null : first / 1e3,
        alike: shape === 0, same: same && shape === 0 };
    }).sort((a, b) => a.far - b.far).slice(0, most);
  };

  // The five sources, of the same step: what they are asked in, and the best of the layouts that each offers
  // here.
  const sources = (S, batch, context) => {
    const m = model(S), c = chip(S), F = D.five, none = (reason) => ({ refused: reason });
    const at = machine(S, m, c, S.n_chips, { tp: S.n_chips, pp: 1, dp: 1, ep: 1 });
    const all = m.groups.map((g) => g.whole), q = { ...at.q, batch, context };
    const usual = ({ own }) => !(own.window < D.no_window) && (own.value_dim === own.head_dim
      || "kv_rank" in own);
    const shape = F.shapes.findIndex((shape) => String(shape) === String(all));
    if (shape < 0 || !m.groups.every((g) => usual(g.seen)))
      return none("Its layers differ, or see a window: the functions of the sources on this page do not " +
        "describe such a model.");
    const missing = ["memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size"];
    const without = missing.find((f) => c.values["chip_" + f] == null);
    if (without) return none(c.name + " states no " + without.replace(/_/g, " ")
      + ", which the sources ask for.");
    m.groups.forEach((g, k) => {
      q["l" + k + "_count"] = g.count;
      g.parts.forEach((part) => { for (const name in part.own) q["l" + k + "_" + name] = part.own[name]; });
    });
    const { kernel } = at.stored.weights, size = D.same[kernel] / 8;
    const eight = size < 2 && !kernel.startsWith("int") && c.peaks.fp8 ? 1 : 0;
    const bf16 = c.peaks.bf16 || c.values.chip_flops;
    Object.assign(q, { chip_gpu: F.gpus[c.name], chip_peak_bf16: bf16,
      chip_peak_fp8: c.peaks.fp8 || null,
      weight_size: size, eight_bit: eight });
    const { f, plan } = F.asked[shape === 0 && m.tied ? F.shapes.length : shape], raw = f(q);
    return { answers: plan.map(({ name, options }) => {
      let best = null, reason = "nothing fits";
      options.forEach((o) => {
        if ("na" in o) { reason = o.na; return; }
        if ("spare" in o && !(raw[o.spare] >= 0)) return;
        let k = o.at, value = 0;
        const found = [];
        o.stages.forEach((sizes) => {
          const groups = sizes.map((n) => raw.slice(k, (k += n))), sums = groups.map((g) =>
            total(g, Number)), most = Math.max(...sums);
          groups.forEach((g, i) => g.forEach((seconds) => found.push({ name: o.names[found.length], seconds,
            counts: i === sums.indexOf(most) })));
          value += most;
        });
        if (Number.isFinite(value) && (!best || value < best.value)) best = { name, value, terms: found,
          chosen: o.label };
      });
      return best || { name, na: reason };
    }) };
  };

  // --- The question in words: for links, and as the call that returns this very answer ----------------
  // A number in the words of its field: 8k, 95%, 500 ms, 50 tokens/s; a text where it is a share of another.
  const read = (key, text) => {
    const c = D.form.numbers[key],
      found = /^\s*\$?\s*(\d[\d,_]*\.?\d*(?:e-?\d+)?|\.\d+)\s*(\D*)$/i.exec(text);
    const unit = found && found[2].trim().toLowerCase(), number = found && +found[1].replace(/[,_]/g, "");
    if (!found || !has(c.units, unit) || (/\$/.test(text) && !has(c.units, "usd"))) return NaN;
    if (c.units[unit] === "share") return number <= 100 ? number + "%" : NaN;
    const [by, power, most] = c.units[unit], v = +(power > 0 ? number * by : by / number).toPrecision(15);
    return v >= c.least && v <= most && (!c.whole || Number.isInteger(v)) ? v : NaN;
  };
  const told = (name, v) => {
    const { units, show } = D.form.numbers[name], known = units[show === "" && !has(units, "") ? "usd"
      : show];
    if (typeof v === "string") return v;
    const n = known[1] > 0 ? v / known[0] : known[0] / v;
    return +n.toPrecision(10) + (show === "%" ? "%" : show && " " + show);
  };
  const keeps = (kept) => Object.entries(kept || {}).map((pair) => pair.join("=")).join(", ") || null;
  // Parts in another format, of a text such as attention=bf16; null where it cannot be read.
  const keepOf = (text) => {
    const pairs = text.split(",").filter((part) => part.trim()).map((part) => part.split("=").map((word) =>
      word.trim().toLowerCase()));
    return pairs.every(([part, name]) => D.parts.includes(part) && has(D.formats.each, name))
      ? Object.fromEntries(pairs) : null;
  };
  const said = (q) => {
    const own = { machine: q.n_chips + "x " + q.chip, layout: q.layout === "tp" ? null
      : words(layout(q, model(q))),
      keep: keeps(q.keep), weights: q.weights || null, cache: q.cache || null, cached: clamped(q) || null,
      drafted: q.drafted || null,
      length: q.drafted ? q.length : null, token: q.token && told("token", q.token), engine: q.engine || null,
      price: hourly(q, q.chip) === chips[q.chip].values.chip_price ? null : hourly(q, q.chip) };
    const found = { model: q.own ? "config.json" : q.model };
    for (const name of D.form.fields) {
      const value = has(own, name) ? own[name] : q[name];
      if (value != null && name !== "model" && D.form.modes[name].includes(q.mode)) found[name] = value;
    }
    if (q.mode === "decide" && q.only) found.chips = q.only;
    if (q.mode === "decide" && q.sure) found.sure = true;
    return found;
  };
  const python = (q) => {
    const quote = (v) => (v === true ? "True" : JSON.stringify(v)), { model: name, machine: box, ...given } =
      said(q);
    if (q.mode === "decide" && Object.keys(q.prices).length) given.prices = q.prices;
    const options = Object.entries(given).map(([field, value]) => field + "=" + quote(value));
    if (q.mode === "decide") return "tokenprice.decide(" + [quote(name), ...options].join(", ") + ")";
    const changed = Object.entries(q.changed || {}), plain = changed.filter(([field]) =>
      !field.startsWith("peak"));
    const fields = plain.map(([field, v]) => field + "=" + v);
    if (changed.length > plain.length) {
      const { values, peaks } = chip(q);
      fields.push("flops=" + values.chip_flops, "peaks=" + quote(peaks));
    }
    const record = "inferlib.load_chip(" + quote(q.chip) + ").replace(" + fields.join(", ") + ")";
    const machine = fields.length ? "inferlib.System(" + record + ", " + q.n_chips + ")" : quote(box);
    return "tokenprice.ask(" + [quote(name), machine, ...options].join(", ") + ")";
  };
  // What simulates a fleet: a line for the terminal, or the call where numbers of a chip were changed.
  const command = (verb, { model: name, machine: box, sure, ...given }, prices) => {
    const quote = (v) => (/^[\w.%]+$/.test(v) ? v : "'" + v + "'");
    const option = (field, v) => "--" + field.replace(/_/g, "-") + " " + quote(v);
    return ["tokenprice", verb, quote(name), ...(box ? [quote(box)] : []),
      ...Object.entries(given).map(([field, v]) => option(field, v)), ...(sure ? ["--sure"] : []),
      ...Object.entries(prices || {}).map(([chip, usd]) => option("prices", chip + "=" + usd))].join(" ");
  };
  const simulate = (q) => (Object.keys(q.changed || {}).length ? python(q).replace("ask", "simulate")
    : command("simulate", said(q)));
  // The same promise to 99 of 100 requests.
  const percentiles = (q) => {
    const { token, first_token, ...given } = said(q), promise = {};
    if (token) promise.token_p99 = token;
    if (first_token) promise.first_token_p99 = first_token;
    return command("decide", { ...given, ...promise }, q.prices);
  };
  return { digits, known, machineOf, chips, formats, hourly, keepOf, keeps, read, told, said, model, layout,
    placed, words, ofChip, step, request, changes, needed, overBatches, neighbours, sources, machines, judge,
    search, decided, decide, python, simulate, percentiles, twice };
};
