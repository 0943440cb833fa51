// Asks the generated functions: which numbers belong to a question, which functions answer it, what is searched. What is
// computed is printed from the library's equations; here numbers are looked up, compared and sorted.
globalThis.inferlibAsk = function (D) {
  "use strict";
  const key = (what, part) => (what + "_" + part).replace(/[ -]/g, "_");
  const structures = {};
  for (const name in D.functions) structures[name] = D.functions[name].map((f) => f || D.functions[name][0]);

  // --- Numbers of a question ---------------------------------------------------------------------------------
  // A model by name, or one of the reader's own, whose parameters are counted from its dimensions.
  const shapes = new Map();
  const model = (S) => {
    if (!S.own) {
      const known = D.models[S.model];
      if (!shapes.has(S.model)) {
        const values = {};
        D.structures[known.structure].forEach((name, k) => { values[name] = known.values[k]; });
        shapes.set(S.model, { ...known, values, name: S.model });
      }
      return shapes.get(S.model);
    }
    const values = { ...S.own.values }, counted = D.shape[S.own.structure][S.own.tied ? 1 : 0](values);
    D.stored.forEach((name, k) => { values[name] = counted[k]; });
    return { structure: S.own.structure, values, name: "my model", new: S.own.structure === "dense" || !values.stored_experts ? 0 : 1 };
  };
  const groups = (m) => D.places[m.structure].map((_, k) => k).filter((k) => m.values["l" + k + "_count"] > 0);
  const layers = (m) => groups(m).reduce((n, k) => n + m.values["l" + k + "_count"], 0);
  const heads = (m) => groups(m).map((k) => m.values["l" + k + "_n_heads"]);
  const experts = (m) => groups(m).map((k) => m.values["l" + k + "_n_experts"]).filter((n) => n !== undefined && m.structure !== "dense");
  const sparse = (m) => m.values.stored_experts > 0;

  const FIELDS = ["memory_capacity", "memory_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size", "power"];
  const chip = (S) => {
    const known = D.chips[S.chip], changed = S.changed || {}, values = { ...known.values }, peaks = { ...known.peaks };
    FIELDS.forEach((field) => { if (changed[field] != null) values["chip_" + field] = changed[field]; });
    if (changed.peak_16 != null) { values.chip_flops = changed.peak_16; ["bf16", "fp16"].forEach((f) => { if (f in peaks) peaks[f] = changed.peak_16; }); }
    ["fp8", "fp4"].forEach((f) => { if (changed["peak_" + f] != null) peaks[f] = changed["peak_" + f]; });
    return { ...known, values, peaks, name: S.chip };
  };
  const price = (S, name) => {
    if (name === S.chip && S.price !== undefined) return S.price;
    const listed = (S.prices || {})[name];
    return listed !== undefined ? listed : D.chips[name].values.chip_price;
  };

  const layout = (S, m) => {
    const n = S.n_chips, split = S.split || 1;
    if (S.layout === "copies") return { tp: split, pp: 1, dp: n / split, ep: sparse(m) && n > split ? n : 1 };
    if (S.layout === "stages") return { tp: n / split, pp: split, dp: 1, ep: 1 };
    return { tp: n, pp: 1, dp: 1, ep: 1 };
  };
  const words = (l) => {
    const cut = (l.pp > 1 ? ["PP" + l.pp] : []).concat(l.tp > 1 ? ["TP" + l.tp] : []);
    if (l.dp > 1 && l.ep > 1) return "attention " + ["DP" + l.dp, ...cut].join(" x ") + " with EP" + l.ep;
    return (l.dp > 1 ? ["DP" + l.dp, ...cut] : cut).join(" x ") || "one chip";
  };

  // Everything that the functions take, but for the workload; or why there is no answer.
  const machine = (S, m, c, n, l) => {
    const q = { rows: 1, ...m.values, ...c.values, ...D.engines[S.engine].values, n_chips: n, tp: l.tp, pp: l.pp, dp: l.dp, n_layers: layers(m), exchange_share: D.facts.exchange_share };
    const known = D.kernels[c.lender], weights = D.formats.weights[S.weights], mixed = sparse(m);
    const spread = l.ep > 1 && l.dp > 1 && mixed, part = weights.parts[mixed ? 1 : 0];
    let late = ""; // what the kernels lack is asked after the memory, as in the library
    const fail = (reason) => { late = late || reason; };
    for (const name of D.parts) {
      const format = name === "attention" && S.wide ? "bf16" : part[name], [bytes, peaks] = D.formats.each[format], kernel = known.gemm[format];
      if (typeof kernel === "string") fail(kernel);
      else D.kernel.gemm.forEach((field, k) => { q[key("gemm", name) + "_" + field] = kernel[k]; });
      q[key("bytes", name)] = bytes;
      const peak = peaks.find((p) => p in c.peaks);
      q[key("peak", name)] = peak ? c.peaks[peak] : c.values.chip_flops;
    }
    const block = known.experts[part.experts], pairs = known.attention[S.cache];
    if (mixed && typeof block === "string") fail(block);
    else if (mixed) D.kernel.experts.forEach((field, k) => { q["block_" + field] = block[k]; });
    if (typeof pairs === "string") fail(pairs);
    else D.kernel.attention.forEach((field, k) => { q["pairs_" + field] = pairs[k]; });
    q.cache_bytes = D.formats.cache[S.cache];
    ["reduce", "library"].forEach((kind) => D.degrees.forEach((degree, k) => { [q[kind + "_" + degree + "_latency"], q[kind + "_" + degree + "_bandwidth"]] = known[kind][k]; }));
    if (!q.chip_scale_up_size) q.chip_scale_up_size = n;
    if (spread && (n <= Math.min(n, q.chip_scale_up_size) ? q.chip_scale_up_bandwidth : q.chip_scale_out_bandwidth) == null) fail(c.name + " states no bandwidth to send tokens to experts over");
    return { q, F: structures[m.structure][spread ? 1 : 0], spread, m, c, l, n, late };
  };
  const whole = (l, n) => Number.isInteger(l.tp) && Number.isInteger(l.dp) && Number.isInteger(l.pp) && l.tp * l.pp * l.dp === n;
  const asked = (S) => {
    const m = model(S), l = layout(S, m);
    if (!whole(l, S.n_chips)) return { refused: S.n_chips + " chips cannot be divided into " + (S.layout === "copies" ? "copies of " + S.split + " chips" : S.split + " stages") };
    if (l.pp > layers(m)) return { refused: l.pp + " stages, but the model has " + layers(m) + " layers" };
    const at = machine(S, m, chip(S), S.n_chips, l);
    return at;
  };

  // --- Answers ----------------------------------------------------------------------------------------------
  const run = (at, name, more) => at.F[name].f(Object.assign(at.q, more));
  const total = (values) => values[values.length - 1];
  // Stages add; within a stage the longest group counts and hides the others.
  const terms = (plan, values) => {
    const found = [];
    let k = 0;
    plan.forEach((stage) => {
      const inside = stage.map((group) => group.map((name) => ({ name, seconds: values[k++] }))), sums = inside.map((group) => group.reduce((s, t) => s + t.seconds, 0));
      const longest = sums.indexOf(Math.max(...sums));
      inside.forEach((group, g) => group.forEach((t) => found.push({ ...t, counts: g === longest })));
    });
    return found;
  };
  const named = (prefix, plan, values) => {
    const found = {};
    D.drawing.forEach((name) => { found[key(prefix, name)] = 0; });
    plan.flat(2).forEach((name, k) => { if (D.drawing.includes(name)) found[key(prefix, name)] = values[k]; });
    return found;
  };
  const even = (v) => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v)); // as Python rounds
  const filled = (texts, beyond, facts) => texts.filter((_, k) => beyond[k] > 0).map((text) => text.replace(/\{(\w+)(:[^}]*)?\}/g, (_, name) => (typeof facts[name] === "number" ? even(facts[name]).toLocaleString("en-US") : facts[name])));
  const short = (S, at, needs, has) => D.short.replace("{need:.0f}", (needs * at.n / 1e9).toFixed(0)).replace("{have:.0f}", (has * at.n / 1e9).toFixed(0)).replace("{system}", at.n + " × " + at.c.name);

  const facts = (S, at, batch, context, more) => ({
    ...D.facts, context, batch, tp: at.l.tp, expert_chips: at.l.dp > 1 ? at.n : 0, domain: Math.min(at.n, at.q.chip_scale_up_size), heads: Math.min(...heads(at.m)),
    new_chip: at.c.new, chip: at.c.name, lender: at.c.lender, lent: at.c.lent, format: D.formats.weights[S.weights].told, new_format: D.formats.weights[S.weights].new, new_experts: at.m.new, copies: at.l.dp, ...more,
  });
  const cautions = (S, at, batch, context, more) => {
    const told = facts(S, at, batch, context, more), found = filled(D.cautions.step.texts, D.cautions.step.f(told), told);
    return more ? found.concat(filled(D.cautions.request.texts, D.cautions.request.f(told), told)) : found;
  };
  const kind = (at) => (at.l.dp > 1 ? "copies" : sparse(at.m) ? "experts" : "dense");
  const spread = (S, at) => D.engines[S.engine].factor[kind(at)];

  // A decode step of so many sequences of a context.
  const step = (S, batch, context) => {
    const at = asked(S);
    if (at.refused) return { status: "n/a", reason: at.refused };
    return stepAt(S, at, batch, context);
  };
  const stepAt = (S, at, batch, context) => {
    Object.assign(at.q, { batch, context });
    const [needs, has] = run(at, "fit"), fit = { needs: needs * at.n, has: has == null ? null : has * at.n };
    if (has != null && needs > has) return { status: "infeasible", reason: short(S, at, needs, has), fit };
    if (at.late) return { status: "n/a", reason: at.late, fit };
    const values = run(at, "step"), seconds = total(values), found = terms(at.F.step.plan, values), bar = spread(S, at), cost = price(S, at.c.name);
    const counted = found.filter((t) => t.counts).sort((a, b) => b.seconds - a.seconds);
    const drawn = { ...at.q, step: seconds, running: batch, ...named("step", at.F.step.plan, values), batch };
    const drafts = S.drafted ? draftedAt(S, at, seconds) : null;
    const [speed, perChip, low, high] = D.glue.rates({ ...drawn, spread: bar });
    return {
      status: "ok", seconds, low, high, terms: found, binding: counted[0].name, fit, batch, context,
      speed, perChip, dollars: cost == null ? null : D.glue.cost({ ...drawn, price: cost })[0], price: cost,
      joules: at.q.chip_power == null ? null : D.glue.joules(drawn)[0], cautions: cautions(S, at, batch, context), layout: words(at.l), at, drafts,
    };
  };
  // A token with drafts: one step verifies them, a head of one layer (the last) made them one by one.
  const draftedAt = (S, at, plain) => {
    const last = groups(at.m).slice(-1)[0], head = { ...at.q, n_layers: 1 };
    groups(at.m).forEach((k) => { head["l" + k + "_count"] = k === last ? 1 : 0; });
    const verify = total(at.F.step.f({ ...at.q, rows: S.drafted + 1 })), draft = total(at.F.step.f(head)), [token] = D.glue.drafted({ step: verify, draft, drafted: S.drafted, length: S.length });
    return { token, verify, draft, gain: plain / token };
  };

  // A request: question, answer, users at a time.
  const reading = (at, tokens, cached) => run(at, "prompt", { tokens, cached });
  const rooms = (at, length) => (at.q.chip_memory_capacity == null ? Infinity : run(at, "room", { length })[0]);
  const passes = (at, tokens, cached) => {
    const read = reading(at, tokens, cached), fresh = cached ? total(reading(at, tokens - cached, 0)) : total(read);
    return { read, fresh };
  };
  const request = (S) => {
    const { prompt: tokens, output, users } = S, cached = Math.min(S.cached || 0, tokens - 1), at = asked(S);
    if (at.refused) return { status: "n/a", reason: at.refused };
    const places = rooms(at, tokens + output);
    if (!(places >= 1)) {
      const one = stepAt(S, at, at.l.dp, tokens + output);
      return { status: "infeasible", reason: "users is " + users + ", but " + at.n + " × " + at.c.name + " has no room for one of them beside the weights", fit: one.fit };
    }
    const running = Number.isFinite(places) ? D.glue.running({ users, places })[0] : users, context = tokens + output / 2;
    const one = stepAt(S, at, running, context);
    if (one.status !== "ok") return one;
    const { read, fresh } = passes(at, tokens, cached), values = run(at, "step", { batch: running, context });
    const all = { ...at.q, output, tokens, cached, users, running, step: one.seconds, read: total(read), fresh, ...named("step", at.F.step.plan, values), ...named("read", at.F.prompt.plan, read) };
    const [first, token] = D.glue.waiting(all), bar = spread(S, at), more = D.facts.first_factor, known = at.q.chip_power != null, cost = price(S, at.c.name);
    const between = (seconds, factor) => D.glue.rates({ ...all, batch: running, step: seconds, spread: factor }), [speed, , tokenLow, tokenHigh] = between(token, bar), [, , firstLow, firstHigh] = between(first, more);
    const found = { ...one, status: "ok", running, first, firstLow, firstHigh, token, tokenLow, tokenHigh, speed, reading: total(read) };
    if (cost != null) {
      const [request, input, kept, answer] = D.glue.paid({ ...all, price: cost });
      Object.assign(found, { request, million: { input, cached: cached ? kept : null, output: answer } });
    }
    if (known) Object.assign(found, { joules: D.glue.joules(all)[0], promptJoules: D.glue.prompt_joules(all)[0] });
    found.cautions = cautions(S, at, users, context, { users, running });
    return found;
  };

  // What each change buys: times before over times after.
  const changes = (S, batch, context) => {
    const before = asked(S);
    if (before.refused || before.late) return [];
    const base = total(run(before, "step", { batch, context }));
    return D.changes.map(({ name, scale: one, copies }) => {
      const at = asked(S), more = {}, scale = copies && S.layout === "copies" ? copies : one;
      Object.assign(at.q, { batch, context });
      for (const field in scale) if (at.q[field] != null) more[field] = at.q[field] * Math.pow(2, scale[field]);
      const after = total(run(at, "step", more));
      return { name, gain: base / after };
    }).sort((a, b) => b.gain - a.gain);
  };

  // A line of steps over batches; points that do not fit are left out.
  const overBatches = (S, context, batches) => {
    const at = asked(S);
    if (at.refused || at.late) return [];
    return batches.map((batch) => {
      const [needs, has] = run(at, "fit", { batch, context });
      const seconds = has != null && needs > has ? null : total(run(at, "step")), cost = price(S, at.c.name);
      return seconds === null ? null : { batch, seconds, dollars: cost == null ? null : D.glue.cost({ ...at.q, step: seconds, price: cost })[0] };
    }).filter(Boolean);
  };

  // --- Decide: every machine that keeps a promise, cheapest first; the search of inferlib.decide ---------------
  const layouts = (m, c, n) => {
    const found = [], all = heads(m), blocks = experts(m), domain = Math.min(n, c.values.chip_scale_up_size || n), degrees = [];
    for (let d = 1; d <= n; d *= 2) if (n % d === 0 && all.every((h) => h % d === 0)) degrees.push(d);
    const inside = degrees.filter((d) => d <= domain), last = inside[inside.length - 1], stages = n / last;
    if (degrees.includes(n)) found.push({ tp: n, pp: 1, dp: 1, ep: 1 });
    if (stages > 1 && stages <= layers(m)) found.push({ tp: last, pp: stages, dp: 1, ep: 1 });
    const sends = n <= domain ? c.values.chip_scale_up_bandwidth : c.values.chip_scale_out_bandwidth;
    if (sparse(m) && n > 1 && n <= Math.min(...blocks) && sends != null) inside.filter((d) => d <= 8 && d < n).forEach((d) => found.push({ tp: d, pp: 1, ep: n, dp: n / d }));
    return found;
  };
  const machines = (S) => {
    const m = model(S), found = [];
    const names = Object.keys(D.chips).filter((name) => D.chips[name].lender === name && price(S, name) != null && (!S.only || S.only === name));
    names.forEach((name) => {
      const c = name === S.chip ? chip(S) : chip({ chip: name });
      D.counts.forEach((n) => layouts(m, c, n).forEach((l) => found.push({ m, c, n, l, cost: price(S, name) })));
    });
    return found;
  };
  // The time of an answer is asked for powers of two of users a copy, then between the last good one and the next.
  const judge = (S, one, out) => {
    const { m, c, n, l, cost } = one, { prompt: tokens, output } = S, cached = Math.min(S.cached || 0, tokens - 1), context = tokens + output / 2;
    const miss = (reason, detail, times) => out.misses.push({ chip: c.name, n, layout: words(l), reason, detail, times: times === undefined ? Infinity : times });
    const at = machine(S, m, c, n, l);
    if (at.late) return miss("not described", at.late);
    const places = rooms(at, tokens + output), rounds = Math.floor(Math.min(places, D.most) / l.dp);
    if (!(rounds >= 1)) return miss("does not fit", "room for " + +Math.max(places, 0).toPrecision(3) + " users");
    const { read, fresh } = passes(at, tokens, cached), all = { ...at.q, output, tokens, cached, read: total(read), fresh, price: cost };
    const sure = S.sure ? [spread(S, at), D.facts.first_factor] : [1, 1], who = l.dp === 1 ? "1 user" : l.dp + " users";
    const serve = (round) => {
      const users = l.dp * round, seconds = total(run(at, "step", { batch: users, context }));
      Object.assign(all, { users, running: users, step: seconds });
      const [first, token] = D.glue.waiting(all), [dollars, , , million] = D.glue.paid(all);
      const slow = S.speed ? token * sure[0] * S.speed > 1 : false, late = S.wait ? first * sure[1] > S.wait : false;
      return { chip: c.name, n, layout: words(l), l, users, first, token, speed: 1 / token, dollars, million, slow, late };
    };
    let best = 0, offer = null, first = null;
    for (let round = 1; round <= rounds; round *= 2) {
      const found = serve(round);
      if (round === 1) first = () => miss(found.slow ? "too slow" : "first token too late", found.slow ? +found.speed.toPrecision(3) + " tokens/s for " + who : +found.first.toPrecision(3) + " s for " + who, found.slow ? found.token * S.speed : found.first / S.wait);
      out.points.push(found);
      if (!found.slow && !found.late) { best = round; offer = found; }
    }
    if (!best) return first();
    let low = best, high = Math.min(2 * best, rounds + 1);
    while (high - low > 1) {
      const middle = (low + high) >> 1, found = serve(middle);
      if (found.slow || found.late) high = middle; else { low = middle; offer = found; }
    }
    out.offers.push({ ...offer, at, S: { ...S, chip: c.name, n_chips: n } });
    if (low !== best) out.points.push(offer);
    return undefined;
  };
  const decided = (out) => {
    out.offers.sort((a, b) => a.dollars - b.dollars || a.n - b.n);
    const seen = new Set();
    out.best = out.offers[0] || null;
    out.runnersUp = out.offers.filter((o) => !seen.has(o.chip) && seen.add(o.chip)).slice(1);
    let lowest = Infinity;
    out.frontier = out.points.filter((p) => !p.late).sort((p, q) => q.speed - p.speed || p.dollars - q.dollars).filter((p) => p.dollars < lowest && ((lowest = p.dollars), true));
    if (out.best) {
      const o = out.best, ends = (seconds, factor) => D.glue.rates({ batch: o.users, n_chips: o.n, step: seconds, spread: factor }).slice(2);
      [o.tokenLow, o.tokenHigh] = ends(o.token, spread(o.S, o.at));
      [o.firstLow, o.firstHigh] = ends(o.first, D.facts.first_factor);
    }
    out.offers.forEach((o) => { if (o === out.best || out.runnersUp.includes(o)) o.cautions = cautions(o.S, o.at, o.users, o.S.prompt + o.S.output / 2, { users: o.users, running: o.users }); });
    return out;
  };
  const search = () => ({ offers: [], points: [], misses: [] });
  const decide = (S) => { const out = search(); machines(S).forEach((one) => judge(S, one, out)); return decided(out); };

  // By how much one thing would have to change for a step to be good enough, all else left: by bisection.
  const needed = (S, batch, context, good) => D.levers.map(({ name, scale, limit, less }) => {
    const at = asked(S);
    if (at.refused || at.late) return { name, factor: null, limit, less };
    const q = Object.assign(at.q, { batch, context, price: price(S, at.c.name) }), moved = Object.entries(scale);
    const holds = (by) => {
      const now = { ...q };
      moved.forEach(([field, power]) => { if (now[field] != null) now[field] *= Math.pow(by, power); });
      const [needs, has] = at.F.fit.f(now), seconds = total(at.F.step.f(now));
      return (has == null || needs <= has) && good(seconds, now.price == null ? null : D.glue.cost({ ...now, step: seconds })[0]);
    };
    const tries = Array.from({ length: 61 }, (_, k) => Math.pow(limit, k / 60)), first = tries.findIndex(holds);
    if (first < 0) return { name, factor: null, limit, less };
    let low = tries[Math.max(0, first - 1)], high = tries[first];
    for (let k = 0; k < 40; k++) { const middle = Math.sqrt(low * high); if (holds(middle)) high = middle; else low = middle; }
    return { name, factor: high, limit, less };
  });

  // The measured rows nearest to a question: same model and chip first, then by ratios of users, chips and context.
  const neighbours = (S, batch, context, most) => {
    const names = D.measured.names, m = model(S), c = S.chip;
    const size = (name) => { const known = D.models[name]; return known ? D.stored.reduce((sum, _, k) => sum + known.values[known.values.length - D.stored.length + k], 0) : 0; };
    const own = D.stored.reduce((sum, name) => sum + m.values[name], 0), apart = (a, b) => Math.abs(Math.log2(Math.max(a, 1) / Math.max(b, 1)));
    const every = D.measured.rows.flatMap(([machine, found]) => found.map((row) => [...machine, ...row]));
    return every.map((row) => {
      const [model, chip, publisher, weights, engine, n, tp, dp, users, at, ms, first, output] = row, called = names.model[model];
      const shape = apart(size(called), own) * 2 + (called === m.name || Math.abs(size(called) / own - 1) < 1e-6 ? 0 : 3);
      const far = shape + (names.chip[chip] === c ? 0 : 4) + apart(users, batch) + 1.5 * apart(n, S.n_chips) + 0.5 * apart(at, context) + (dp > 1 === (S.layout === "copies") ? 0 : 1) + (D.same[names.weights[weights]] === D.same[S.weights] ? 0 : 1);
      return { far, model: called, chip: names.chip[chip], publisher: names.publisher[publisher][0], url: names.publisher[publisher][1], weights: names.weights[weights], engine: names.engine[engine], n, tp, dp, users, context: at, seconds: ms / 1e3, output, first: first == null ? null : first / 1e3, alike: shape === 0, same: shape === 0 && names.chip[chip] === c };
    }).sort((a, b) => a.far - b.far).slice(0, most);
  };

  // The five sources, of the same step: what they are asked in, and the best of the layouts that each offers here.
  const sources = (S, batch, context) => {
    const m = model(S), c = chip(S), v = m.values, F = D.five, none = (reason) => ({ refused: reason });
    const has = (k) => v["l" + k + "_count"] > 0, plain = (k) => v["l" + k + "_window"] >= D.families.no_window && v["l" + k + "_value_dim"] === v["l" + k + "_head_dim"];
    let kind = -1, at = 0;
    if (m.structure === "dense" && !has(1) && plain(0)) kind = (S.own ? S.own.tied : m.tied) ? 1 : 0;
    else if (m.structure === "experts" && !has(0) && !has(2) && plain(1)) [kind, at] = [2, 1];
    else if (m.structure === "latent" && has(0) && has(1)) [kind, at] = [3, 1];
    if (kind < 0 || (!S.own && m.five === false)) return none("Its layers differ, or see a window: the functions of the sources on this page do not describe such a model.");
    const missing = ["memory_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "scale_up_size"].find((f) => c.values["chip_" + f] == null);
    if (missing) return none(c.name + " states no " + missing.replace(/_/g, " ") + ", which the sources ask for.");
    const q = { ...c.values, n_chips: S.n_chips, batch, context, price: 1, n_layers: layers(m), n_dense: kind === 3 ? v.l0_count : 1, d_model: v.d_model, vocab_size: v.vocab_size, chip_gpu: D.gpus[c.name], chip_peak_bf16: c.peaks.bf16 || c.values.chip_flops, chip_peak_fp8: c.peaks.fp8 || null };
    ["n_heads", "n_kv_heads", "head_dim", "matrices", "n_experts", "n_active", "d_expert", "d_shared", "kv_rank", "q_rank", "nope_dim", "rope_dim", "value_dim"].forEach((name) => { q[name] = v["l" + at + "_" + name]; });
    q.d_ff = v["l0_d_ff"];
    const eight = D.same[S.weights] < 16 && S.weights !== "int4" && S.weights !== "int8" && c.peaks.fp8;
    Object.assign(q, { precision_weights: D.same[S.weights] / 8, precision_cache: D.formats.cache[S.cache], precision_eight_bit: eight ? 1 : 0 });
    const raw = F.functions[kind](...F.args.map((name) => q[name])), views = F.plans[kind].views[0];
    return { answers: views.map(({ name, options }) => {
      let best = null, reason = "nothing fits";
      options.forEach((o) => {
        if ("na" in o) { reason = o.na; return; }
        if ("spare" in o && !(raw[o.spare] >= 0)) return;
        const plan = [];
        let k = 0;
        o.stages.forEach((sizes) => { plan.push(sizes.map((n) => o.names.slice(k, (k += n)))); });
        const found = terms(plan, raw.slice(o.at, o.at + o.names.length)), value = found.filter((t) => t.counts).reduce((sum, t) => sum + t.seconds, 0);
        if (Number.isFinite(value) && (!best || value < best.value)) best = { name, value, terms: found, chosen: o.label };
      });
      return best || { name, na: reason };
    }) };
  };

  return { sources, model, chip, layout, words, step, request, changes, overBatches, machines, judge, search, decided, decide, needed, neighbours, price, layers, sparse };
};
