// Asks the generated functions: which numbers belong to a question, which functions answer it, what is
// searched. What is computed is printed from the library's equations; here numbers are looked up and added.
globalThis.inferlibAsk = function (D) {
  "use strict";
  const { digits, total, staged } = inferlibShared;
  const key = (what, part) => (what + "_" + part).replace(/[ ,-]+/g, "_");
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const named = (names, values) => Object.fromEntries(names.map((name, k) => [name, values[k]]));
  const mean = (list, of = Number) => total(list, of) / list.length;
  // Numbers of a question with some in place of others, which stand behind them.
  const over = (q, more) => Object.assign(Object.create(q), more);
  // Of functions for experts that every chip of an instance cuts, that are spread over all copies or inside
  // an instance: the one that holds.
  const of = (list, at) => list[Math.min(at.spread, list.length - 1)];
  const chips = Object.fromEntries(Object.entries(D.chips).map(([name, known]) =>
    [name, { ...known, name, values: named(D.chip, known.values) }]));

  // --- Numbers of a question --------------------------------------------------------------------------
  // A model by name, or one that a link brings.
  const made = new Map();
  const kindOf = (name) => D.kinds[name] || D.kinds.find((kind) => kind.name === name);
  const opened = (known, name) => {
    const part = ([kind, ...own]) => ({ ...kindOf(kind), own: named(kindOf(kind).names, own) });
    const groups = known.layers.map(([count, ...both]) => {
      const parts = both.filter(Boolean).map(part);
      return { count, parts, seen: parts.find((p) => p.kept) };
    });
    const n_layers = total(groups, (g) => (g.count * g.parts.length) / 2);
    const plain = groups.every((g) => g.parts.every((p) => !p.kept || p.plain));
    const [stored, drafting] = [known.stored, known.drafting].map((counts) =>
      named(D.stored.map((part) => key("stored", part)), counts));
    const { d_model, vocab_size } = known;
    const values = { d_model, vocab_size, n_layers, hosted: plain ? 0 : n_layers, ...stored };
    return { ...known, groups, values, drafting, name, size: total(known.stored) };
  };
  const model = (S) => {
    const known = S.own || D.models[S.model], key = S.own || S.model; // two names may share one entry
    if (!made.has(key)) made.set(key, opened(known, S.own ? S.own.name : S.model));
    return made.get(key);
  };
  const layers = (m) => total(m.groups, (g) => g.count);
  const every = (m, name) => m.groups.flatMap((g) => g.parts).filter((p) => name in p.own)
    .map((p) => p.own[name]);
  const sparse = (m) => m.values.stored_experts > 0;

  // A model or a chip by any name that the catalogue knows; else as it was typed.
  const wordsOf = (text) => {
    const all = text.toLowerCase().replace(/^.*\//, "").split(/[\s_-]+/).filter(Boolean);
    const words = all.filter((word, k) => !k || !D.ignored.endings.includes(word));
    return words.slice(+(words[0] === "meta" && words.length > 1));
  };
  const spelled = ([what, list]) => {
    const own = Object.keys(list).map((name) => [wordsOf(name).join(""), name]);
    return [what, { ...Object.fromEntries(own), ...D.names[what] }];
  };
  const spellings = Object.fromEntries(Object.entries({ model: D.models, chip: chips }).map(spelled));
  const known = (what, text) => {
    if (has(what === "chip" ? chips : D.models, text)) return text;
    const words = wordsOf(text);
    const called = (list) => has(spellings[what], list.join("")) && spellings[what][list.join("")];
    if (called(words) || what === "model") return called(words) || text;
    // a chip with its vendor or its memory, which must be the memory that it has
    const plain = words.filter((word) => !D.ignored.vendors.includes(word));
    const bare = plain.filter((word) => !/^(\d+gb?|hbm3e?)$/.test(word)), found = called(bare);
    if (called(plain)) return called(plain);
    const sizes = words.filter((word) => /^\d+gb?$/.test(word)).map((word) => 1e9 * parseInt(word, 10));
    const fits = (size) => Math.abs(size / chips[found].sold - 1) < D.ignored.sold;
    return found && sizes.every(fits) ? found : text;
  };
  const machineOf = (text) => {
    const said = text.trim(), named = (name) => [known("chip", name)].find((found) => has(chips, found));
    if (named(said)) return { chip: named(said), n_chips: 1 };
    const [, n, name] = /^([0-9]+)(?:\s*[x×*]\s*|\s+(?=\D))(.+)$/i.exec(said) || [];
    const [, last, count] = n ? [] : /^(.*?\S)\s*[x×*:]\s*([0-9]+)$/i.exec(said) || [];
    const chip = n ? named(name) || (/s$/i.test(name) && named(name.slice(0, -1))) : last && named(last);
    return chip && +(n || count) >= 1 ? { chip, n_chips: +(n || count) } : null;
  };

  // Formats of weights, of each part and of the cache: as given, else the checkpoint's. A format is a name,
  // or bytes of a weight and whose kernels serve it.
  const formats = (S, m) => {
    const [own, parts, cache] = m.formats, kept = S.layer_formats ||
      {}; // the same format is the same checkpoint
    const weights = [own].flat().pop() === S.weights ? own : S.weights || own;
    const all = weights !== own ? D.formats.each[S.weights][4][sparse(m) ? 1 : 0] : parts;
    const each = Object.fromEntries(D.parts.map((name, k) => [name, format(kept[name] || all[k])]));
    return { weights: format(weights), each, cache: S.kv_cache_dtype || cache };
  };
  const format = (name) => {
    const [bytes, peaks, kernel, fresh] = D.formats.each[Array.isArray(name) ? name[1] : name];
    return { bytes: Array.isArray(name) ? name[0] : bytes, peaks, kernel, fresh };
  };

  const bits = ({ bytes }) => Math.floor(8 * bytes); // of a value, without its part of the scales
  // Kernels that serve a format: a chip without fp4 reads 4 bits and multiplies in 16.
  const serving = (kind, name, { peaks }) => (!("fp4" in peaks) && ["fp4", "mxfp4"].includes(name)
    && !(kind === "experts" && name === "mxfp4") ? "fp4 w4a16" : name);

  // Dollars of an hour of a chip, and of one that is used.
  const hourly = (S, name) => {
    const listed = S.prices || {};
    if (name === S.chip && S.price != null) return S.price;
    return has(listed, name) ? listed[name] : chips[name].values.chip_price;
  };
  const powerOf = (S, name) => (name === S.chip ? chip(S) : chips[name]).values.chip_power;
  const price = (S, name) => {
    const hour = hourly(S, name), { electricity } = S;
    if (hour == null) return null;
    const paid = { price: hour, chip_power: powerOf(S, name), electricity, pue: S.pue || 1 };
    return (electricity == null ? hour : D.glue.hourly(paid)[0]) / (S.paid_hours_used || 1);
  };
  const chip = (S) => {
    const known = chips[S.chip], values = { ...known.values }, peaks = { ...known.peaks };
    for (const [field, value] of Object.entries(S.changed || {})) {
      if (field === "peak_16") {
        values.chip_flops = value;
        ["bf16", "fp16"].filter((name) => name in peaks).forEach((name) => { peaks[name] = value; });
      } else if (field.startsWith("peak_")) peaks[field.slice(5)] = value;
      else values["chip_" + field] = value;
    }
    const shown = known.shown && values.chip_memory_capacity === known.values.chip_memory_capacity;
    return { ...known, values, peaks, shown };
  };

  // A layout of words such as PP2 x TP4, null where they are none; one instance on all chips where none is.
  const DEGREE = /(tp|pp|dp|ep)\s*=?\s*([0-9]+)/gi;
  const LAYOUT = RegExp(String.raw`^(attention\s*)?D([\s,x×+]*(with\s*)?D)*$`
    .replace(/D/g, DEGREE.source), "i");
  const layout = ({ layout: said, n_chips }) => {
    const given = (said || "TP" + n_chips).trim(), found = [...given.matchAll(DEGREE)];
    if (!LAYOUT.test(given) && given.toLowerCase() !== "one chip") return null;
    const degrees = found.map(([, kind, n]) => [kind.toLowerCase(), +n]);
    const twice = new Set(degrees.map(([kind]) => kind)).size < degrees.length;
    if (twice || degrees.some(([, n]) => n < 1)) return null;
    return { tp: 1, pp: 1, dp: 1, ep: 1, ...Object.fromEntries(degrees) };
  };
  const words = ({ tp, pp, dp, ep }) => {
    const told = (...pairs) => pairs.filter(([, n]) => n > 1).map((pair) => pair.join("")).join(" x ");
    const all = [["DP", dp], ["PP", pp], ["TP", tp]];
    if (dp > 1 && ep > 1) return "attention " + told(...all) + " with EP" + ep;
    return told(...all, ["EP", ep]) || "one chip";
  };

  // The timed block nearest to a class of engine, a width and formats, as Operators.block finds it.
  const nearest = (name, lender, engine, width, size, cache) => {
    const rows = D.kernels[D.kernels[lender].lends[name]].timed[name];
    const far = ([by, wide, bytes, kept]) =>
      [by !== engine, Math.abs(wide - width), bytes == null ? 0 : Math.abs(bytes - size), kept !== cache];
    const nearer = (a, b) => { const k = a.findIndex((v, i) => +v !== +b[i]); return k >= 0 && a[k] < b[k]; };
    return rows.reduce((best, row) => (nearer(far(row), far(best)) ? row : best)).slice(4);
  };

  // Bytes of the engine's own; vLLM samples for as many sequences as it may run.
  const workspace = (S, m, c, { tp }) => {
    const { budget, seqs, rides } = scheduler(S, { c }), samples = rides && S.engine !== "compiled";
    return D.glue.workspace({ tp, logits: samples ? Math.min(seqs, budget) * m.values.vocab_size : 0 })[0];
  };
  // Everything that the functions take, but for the workload; or why there is no answer.
  const machine = (S, m, c, n, l) => {
    const q = { rows: 1, ...m.values, ...c.values, ...D.engines[S.engine].values, n_chips: n, ...l,
      lanes: l.dp * l.pp, share: S.memory_utilization || D.facts.share, workspace: workspace(S, m, c, l),
      exchange_share: D.facts.exchange_share };
    const compiled = S.engine === "compiled", stored = formats(S, m), { each, cache } = stored;
    q.counted = compiled ? q.share : 1;
    if (S.draft_tokens) Object.assign(q, m.drafting);
    if (each.experts.kernel === "mxfp4") q.stored_experts *= D.glue.padded(q)[0];
    const known = D.kernels[c.lender], spread = sparse(m) && l.ep > 1 ? (l.dp > 1 ? 1 : 2) : 0;
    let late = ""; // what the kernels lack is asked after the memory, as in the library
    const put = (prefix, kind, found) => {
      if (typeof found === "string") late = late || found;
      else D.kernel[kind].forEach((field, k) => {
        const zero = c.program && (field === "start" || field === "depth");
        const most = field === "share" && c.memory ? c.memory : Infinity; // of a kind that was not timed
        q[prefix + "_" + field] = zero ? 0 : Math.min(found[k], most);
      });
    };
    for (const name of D.parts) {
      const { bytes, peaks, kernel } = each[name], peak = peaks.find((p) => p in c.peaks);
      put(key("gemm", name), "gemm", known.gemm[serving("gemm", kernel, c)]);
      q[key("bytes", name)] = bytes;
      q[key("peak", name)] = peak ? c.peaks[peak] : c.values.chip_flops;
    }
    const parts = m.groups.flatMap((g) => g.parts);
    if (sparse(m)) put("block", "experts", known.experts[serving("experts", each.experts.kernel, c)]);
    if (parts.some((p) => p.pairs)) put("pairs", "attention", known.attention[cache]);
    const blocks = (by) => {
      const found = {};
      for (const name of new Set(parts.flatMap((p) => p.timed))) {
        const asked = D.sparse.includes(name) ? [m.d_model, q.bytes_attention, cache] : [0, 0, ""];
        const fields = D.timed[name].map((field) => key("timed", name) + "_" + field);
        Object.assign(found, named(fields, nearest(name, c.lender, by, ...asked)));
      }
      return found;
    };
    const reading = compiled ? blocks(0) : {}; // prompts are read by the blocks of an engine that serves
    Object.assign(q, blocks(compiled ? 1 : 0), { cache_bytes: D.formats.cache[cache] });
    const lender = chips[c.lender], own = q.chip_scale_up_bandwidth;
    const links = (lender.pcie && !c.linked) || own == null ? 1 : own / lender.values.chip_scale_up_bandwidth;
    ["reduce", "library"].forEach((kind) => D.degrees.forEach((degree, k) => {
      const [latency, bandwidth] = known[kind][k], sent = D.facts.bus * (c.slot || 1);
      const bus = (sent * degree) / (2 * (degree - 1));
      const least = lender.pcie ? bus : 0; // no box is slower than public ones
      q[`${kind}_${degree}_latency`] = latency;
      q[`${kind}_${degree}_bandwidth`] = Math.max(bandwidth * links, least);
    }));
    q.chip_scale_up_size = S.domain || q.chip_scale_up_size || n;
    const sends = n <= q.chip_scale_up_size ? q.chip_scale_up_bandwidth : q.chip_scale_out_bandwidth;
    if (spread === 1 && sends == null) late = late || c.name
      + " states no bandwidth to send tokens to experts over";
    const mix = (S.mix || {}).words ? S.mix : {};
    const drafting = S.draft_tokens ? [{ ...m.groups[m.groups.length - 1], count: 1 }] : [];
    return { q, reading, spread, m, c, l, n, late, stored, groups: m.groups,
      held: [...m.groups, ...drafting], mix };
  };
  const cut = (m, l) => {
    const uneven = every(m, "n_heads").find((one) => one % l.tp);
    return uneven ? words(l) + " cannot split " + uneven + " heads evenly into " + l.tp + " parts" : "";
  };
  const asked = (S) => {
    const m = model(S), l = layout(S), n = S.n_chips, none = (refused, at) => ({ refused, at });
    if (S.electricity == null && S.pue != null)
      return none("pue belongs to electricity: give dollars for a kilowatt-hour");
    const paid = S.prefill_machine ? [S.chip, machineOf(S.prefill_machine).chip] : [S.chip];
    const dark = paid.find((name) => hourly(S, name) != null && powerOf(S, name) == null);
    if (S.electricity != null && dark)
      return none("electricity has a price, but the power of " + dark + " is not known");
    if (cut(m, l)) return none(cut(m, l), { l, m });
    if (l.ep > 1 && !sparse(m)) return none(words(l) + " spreads experts, but the model has none", { l, m });
    const taken = l.tp * l.pp * l.dp, share = l.dp * l.tp;
    const bad = (refused) => none(refused, { l, m }); // another layout may fit
    if (taken !== n) return bad(`${words(l)} takes ${taken} chips, but the machine has ${n}`);
    if (share % l.ep)
      return bad(`${words(l)} cannot split ${share} chips evenly into ${l.ep} groups of experts`);
    if (l.ep > 1 && l.ep < l.dp * l.tp) return none("this page spreads experts over all chips or over none");
    if (l.pp > layers(m)) return bad(l.pp + " stages, but the model has " + layers(m) + " layers");
    if (l.pp > 1 && l.dp > 1) return bad("the kernel model describes stages or copies, not both");
    return machine(S, m, chip(S), n, l);
  };

  // --- A step -----------------------------------------------------------------------------------------
  // Seconds by term: groups of layers add, terms of one stage overlap, and the longest counts.
  const binding = (terms) => terms.filter((t) => t.counts)
    .reduce((a, b) => (b.seconds > a.seconds ? b : a)).name;
  const timed = (at, what, q = at.q) => {
    const found = {}, { slower } = software(at);
    const add = (count, made, own) => made.f(q, own).forEach((seconds, k) => {
      const term = D.terms[made.terms[k]];
      found[term] = (found[term] || 0) + slower * count * seconds;
    });
    let sums = 0; // how often the chips of an instance add their parts together
    at.groups.forEach((g) => g.parts.forEach((part) => {
      sums += g.count * of(part.sums, at);
      add(g.count, of(part[what], at), part.own);
    }));
    add(sums, D.whole.sums[what === "step" ? 0 : 1]);
    add(1, of(D.whole[what], at));
    const stages = D.stages.map((stage) => stage.filter((name) => name in found)).filter((s) => s.length);
    const names = stages.flat(), alone = stages.map((stage) => stage.map(() => 1));
    const { value, terms } = staged({ names, stages: alone, at: 0 }, names.map((name) => found[name]));
    return { terms, total: value };
  };
  // Seconds of reading and arithmetic alone, at the peaks of the data sheet: no answer is faster. How many
  // experts the rows reach depends on the text: without rows, as few as are possible.
  const atPeaks = (at, what, more) => {
    const q = over(at.q, more);
    for (const name in q) if (/^(gemm|block|pairs|timed)_/.test(name) && !name.endsWith("_entry"))
      q[name] = /_(share|prefill|projections|read|scores)$/.test(name) ? 1 : 0;
    const [terms, few] = [q, over(q, { batch: 0, lanes: 0 })].map((some) => timed(at, what, some).terms);
    const least = terms.map((term, k) => (term.name === "expert weights" ? few[k] : term));
    return total(D.stages, (stage) => Math.max(0, ...least.filter(({ name }) => stage.includes(name)
      && D.drawing.includes(name)).map(({ seconds }) => seconds))) / software(at).slower;
  };
  const stepAtPeaks = (S, at, more) =>
    atPeaks(at, "step", { ...more, rows: (S.draft_tokens || 0) + 1 }) / (S.draft_tokens ? accepted(S) : 1);
  // Weights alone, and all drafts accepted.
  const leastStep = (S) => stepAtPeaks({ ...S, acceptance_length: (S.draft_tokens || 0) + 1 }, asked(S),
    { batch: 0, lanes: 0, context: 1 });
  // How a chip runs what others were timed for: dense models in fp8, in 16 bits, in others, or experts.
  const software = ({ c, m, stored: { each } }) => {
    const { attention, "feed-forward": block } = each, alike = attention.kernel === block.kernel;
    const dense = alike ? ["fp8", "bf16"].indexOf(block.kernel) : -1;
    const made = c.made || [[0, "", 1]], found = made[sparse(m) ? 3 : dense < 0 ? 2 : dense];
    return named(["maker", "slow", "slower"], found || made[0]);
  };
  const run = (at, more) => timed(at, "step", Object.assign(at.q, more)).total;
  const kept = (at, length, q) => {
    const each = at.held.filter((g) => g.seen).map((g) => g.seen.kept(over(q, { length }), g.seen.own)
      .map((n) => g.count * n));
    return Object.assign(q, { length, kept: total(each, (n) => n[0]), state: total(each, (n) => n[1]) });
  };
  const bytes = (at, length) => (length ? kept(at, length, over(at.q)).kept : 0);
  const fits = (at, q = at.q) => {
    q.prefix = bytes(at, at.mix.prefix);
    return of(D.whole.fit, at)(kept(at, q.context - (at.mix.shared || 0), q));
  };
  const sharingNothing = (at) => ({ ...at, mix: {} });
  const drawn = (prefix, terms) => named(D.drawing.map((name) => key(prefix, name)), D.drawing.map((name) =>
    (terms.find((term) => term.name === name) || { seconds: 0 }).seconds));
  const even = (v) => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v)); // as Python rounds
  const shown = (v) => (typeof v === "number" ? even(v).toLocaleString("en-US") : v);
  const filled = (text, facts) => text.replace(/\{(\w+)(:[^}]*)?\}/g, (_, name) => shown(facts[name]));
  const ofChip = (n, name) => n + (/NVL\d/.test(name) ? n === 1 ? " GPU of " : " GPUs of " : " × ") + name;
  const short = (at, needs, own, left) => {
    const size = (bytes) => Math.max(bytes, 0) * at.n / 1e9;
    const less = Math.min(...[own, left].map((most) => size(needs) - size(most)).filter((less) => less > 0));
    const digits = Math.max(Math.ceil(-Math.log10(less)), 0); // as many as tell both numbers apart
    const GB = (bytes) => (size(bytes) >= 10 || digits ? size(bytes).toFixed(digits)
      : String(+size(bytes).toPrecision(2)));
    const seen = filled(D.seen[at.c.shown ? 1 : 0], { system: ofChip(at.n, at.c.name) });
    return filled(D.short[needs > own ? 0 : 1], { seen, need: GB(needs), have: GB(own), left: GB(left) });
  };

  // The chips whose timings stand for blocks of attention that a chip has none of.
  const blocksOf = (at) => {
    const timed = at.groups.flatMap((g) => g.parts).flatMap((p) => p.timed);
    const lenders = Object.keys(D.timed).filter((name) => timed.includes(name)).map((name) =>
      D.kernels[at.c.lender].lends[name]);
    return [...new Set(lenders)].filter((name) => name !== at.c.name);
  };
  // What stands in for kernels that were not timed in the formats of a model's parts: blocks.stand_ins.
  const standIns = ({ m, c, groups, stored: { each, cache } }) => {
    const parts = groups.flatMap((g) => g.parts), of = D.kernels[c.lender].stands_in;
    const plain = parts.some((p) => p.kept && !p.timed.some((name) => D.sparse.includes(name)));
    const used = D.parts.filter((name) => m.values[key("stored", name)] && (name !== "attention" || plain))
      .map((name) => [name === "experts" ? name : "gemm", each[name].kernel])
      .map(([kind, name]) => `${kind} ${serving(kind, name, c)}`);
    if (parts.some((p) => p.pairs)) used.push("attention " + cache);
    return [...new Set(used)].filter((name) => of[name]).map((name) => {
      const [kind, ...format] = name.split(" ");
      return `${D.formats.kinds[kind]} in ${format.join(" ")} (using those ${of[name]})`;
    });
  };
  // Which cautions hold, and by how much they widen an interval: errors of their own add by their squares.
  // How far an answer may be off, and a first token: what rows left out say, and the cautions that hold.
  // A separate prefill machine has the cautions that it has alone; they widen those of a first token only.
  const doubts = (S, at, batch, context, more, reader) => {
    const { c, l, m } = at, { kernel, fresh, peaks: [own] } = at.stored.weights, borrowed = blocksOf(at);
    const prefills = (reader || { at }).at;
    const untimed = standIns(at), tuned = software(at);
    const heads = Math.min(...at.groups.filter((g) => g.seen).map((g) => g.seen.own.n_heads));
    const told = {
      ...D.facts, context, batch, heads, ...l, expert_chips: l.ep > 1 ? at.n : 0, stages: l.pp,
      sparse: sparse(m) ? 1 : 0,
      domain: Math.min(at.n, c.values.chip_scale_up_size || at.n), shared: c.pcie && l.tp > 1 ? 1 : 0,
      prefilled: prefills.l.dp, unbalanced: reader ? 1 : l.dp,
      chip: c.name, new_chip: c.new, lender: c.lender, lent: c.lent,
      bus: c.bus || "", other_memory: c.memory ? 1 : 0,
      other_maker: tuned.maker, slower: tuned.slow,
      format: kernel, new_format: fresh,
      widened: ["fp4", "fp8", "bf16"].includes(own) && own === kernel && !c.peaks[own] ? 1 : 0,
      new_model: m.new, unscored: m.unscored, new_kind: m.unscored ? 1 : 0, params: m.size / 1e6,
      drafted: S.draft_tokens || 0, untold: S.draft_tokens && has(D.accepted, S.acceptance_length) ? 1 : 0,
      timed_on: borrowed.join(", "), borrowed: borrowed.length,
      untimed: untimed.join(", "), not_timed: untimed.length, ...more,
    };
    const [steps, first] = [["step", ...(more ? ["request"] : [])], more ? ["first"] : []].map((lists) =>
      lists.flatMap((name) => {
        const { texts, widens, f } = D.cautions[name], by = f(told);
        return texts.map((text, k) => ({ text, by: by[k], wide: Math.log(widens[k]) }))
          .filter(({ by }) => by > 0);
      }));
    const wider = (factor, held) =>
      Math.exp(Math.hypot(Math.log(factor), ...held.map(({ by, wide }) => Math.min(by, 1) * wide)));
    const [one, part] = D.engines[S.engine].factor, chips = l.tp * (l.ep > 1 ? l.dp : 1);
    const [token, copies, soon] = m.factors || [1, 1, 1];
    const bar = Math.max(one ** (1 + part * Math.log2(chips)), token, l.dp > 1 ? copies : 1);
    const reads = reader ? doubts(S, reader.at, batch, context) : { held: [], texts: [] };
    const held = steps.concat(first), largest = new Map();
    const texts = held.map(({ text }) => filled(text, told)).concat(m.told || []);
    for (const one of held.concat(reads.held))
      if (!(one.by <= largest.get(one.text)?.by)) largest.set(one.text, one);
    const factor = wider(bar, steps);
    return { held, texts: [...new Set(texts.concat(reads.texts))], factor, prefill: reads.factor || factor,
      soon: wider(Math.max(D.facts.first_factor, soon), [...largest.values()]) };
  };

  // What Python remarks: a sequence that is too long, a step that 16 bits make faster, what a file holds.
  const remarks = (S, at, longest, seconds, shared) => {
    const { most } = at.m, name = at.stored.weights.kernel, told = [];
    if (most && longest > most) told.push(filled(D.remarks.long, { longest, most }));
    const { l, m, stored } = at;
    const chips = sparse(m) && l.ep > 1 ? (l.dp > 1 ? l.tp * l.dp : l.tp) / l.ep : l.tp;
    const width = every(m, "d_expert").find((one) => one % 128 === 0 && one % (128 * chips));
    if (width && stored.each.experts.kernel === "fp8 block")
      told.push(filled(D.remarks.uneven, { width, chips }));
    const [own, parts] = m.formats, mixed = new Set(parts.slice(0, 4).map(String)).size > 1;
    if (mixed && S.weights && [own].flat().pop() !== S.weights && !keeps(S.layer_formats))
      told.push(filled(D.remarks.whole, { name: S.weights }));
    if (shared) told.push(D.remarks.prefix);
    if (!seconds && S.output_tokens === 1) told.push(D.remarks.one);
    if (seconds && !S.draft_tokens && D.same[name] < 16) {
      const plain = { ...S, weights: "bf16", layer_formats: {}, kv_cache_dtype: at.stored.cache };
      const wide = stepAt(plain, asked(plain), at.q.batch, at.q.context);
      const ms = digits(1e3 * wide.seconds);
      if (wide.seconds < seconds) told.push(filled(D.remarks.wide, { wide: ms, name }));
    }
    return told.concat((S.mix && S.mix.told) || []);
  };
  // Of no answer, where memory or heads are the reason: a layout of the same chips that fits.
  const without = (S, found, fits, at) => {
    const { l, m } = at || {};
    const other = l && layouts(m, chip(S), S.n_chips).find((o) => words(o) !== words(l)
      && fits({ ...S, layout: words(o) }, o));
    return { ...found, remarks: other ? [filled(D.remarks.fits, { layout: words(other) })] : [] };
  };

  // A decode step of so many sequences of a context.
  const step = (S, batch, context) => {
    const at = asked(S), fits = (S, l, at = asked(S)) =>
      !at.refused && stepAt({ ...S, draft_tokens: 0 }, at, batch, context).status === "ok";
    if (at.refused) return without(S, { status: "n/a", reason: at.refused }, fits, at.at);
    const found = stepAt(S, at, batch, context);
    if (found.status !== "ok") return without(S, found, fits, found.status === "infeasible" && at);
    const { texts, factor } = doubts(S, at, batch, context);
    let [, , low, high] = D.glue.rates(over(at.q, { step: found.seconds, spread: factor }));
    low = Math.max(low, stepAtPeaks(S, at));
    const told = remarks(S, at, context, found.seconds);
    return { ...found, low, high, cautions: texts, remarks: told };
  };
  const stepAt = (S, at, batch, context) => {
    Object.assign(at.q, { batch, context });
    const [needs, own, left] = fits(at), sum = (bytes) => (own == null ? null : Math.max(bytes, 0) * at.n);
    const fit = { needs: needs * at.n, left: sum(Math.min(left, own)), has: sum(own) };
    if (own != null && needs > left)
      return { status: "infeasible", reason: short(at, needs, own, left), fit };
    if (at.late) return { status: "n/a", reason: at.late, fit };
    const plain = timed(at, "step"), drafts = S.draft_tokens ? draftedAt(S, at, plain.total) : null;
    const { terms, total: seconds } = drafts || plain, cost = price(S, at.c.name);
    const told = { step: seconds, running: batch, ...drawn("step", terms), price: cost, spread: 1 };
    const all = over(at.q, told);
    const [speed, perChip] = D.glue.rates(all);
    return {
      status: "ok", seconds, terms, binding: binding(terms), fit, batch, context, speed, perChip,
      dollars: cost == null ? null : D.glue.cost(all)[0], price: cost, layout: words(at.l),
      joules: at.q.chip_power == null ? null : D.glue.joules(over(all, { together: batch }))[0], at, drafts,
    };
  };
  // A token with drafts: one step verifies them, a head of one layer (the last) made them one by one.
  const draftedAt = (S, at, plain) => {
    const last = at.groups[at.groups.length - 1], experts = last.parts.some((p) => "n_experts" in p.own);
    const head = { ...at, spread: experts ? at.spread : 0, groups: [{ ...last, count: 1 }] };
    const verifying = timed(at, "step", over(at.q, { rows: S.draft_tokens + 1 }));
    const alone = over(at.q, { n_layers: last.parts.length / 2, engine_rank: 0, pp: 1,
      n_chips: at.n / at.l.pp, // on the last stage
      batch: Math.max(at.q.batch / at.l.pp, Math.min(at.q.batch, 1)) });
    const draft = timed(head, "step", alone).total + of(D.whole.join, at)(alone)[0];
    const length = accepted(S), given = { draft, drafted: S.draft_tokens, length };
    const [token, drafting] = [verifying.total, 0].map((step) => D.glue.drafted({ ...given, step })[0]);
    const terms = verifying.terms.map((t) => ({ ...t, seconds: t.seconds / length }))
      .concat({ name: "drafting", seconds: drafting, counts: true });
    return { total: token, token, verify: verifying.total, draft, length, terms, gain: plain / token };
  };
  // Tokens that a step yields: a number, or what was measured on a task.
  const accepted = ({ draft_tokens: drafted, acceptance_length: length }) =>
    (has(D.accepted, length) ? D.accepted[length][drafted - 1] : length);

  // --- A request --------------------------------------------------------------------------------------
  // Equally likely lengths: 2k ± 50% evenly, 200-1k-8k between quantiles; or the one that is said.
  const lengths = (name, said) => {
    const [middle, ...parts] = String(said).replace(/\+\/?-/g, "±").split("±");
    const at = (text) => read(name, text);
    const share = parts.length && read("memory_utilization", parts.join("±"));
    const ends = parts.length ? [at(middle) * (1 - share), at(middle) * (1 + share)]
      : String(said).split(/(?<=\w)(?<!\de)\s*-/).map(at);
    if (ends.length < 2) return ends;
    const { least } = D.form.numbers[name];
    if (!ends.every((end, k) => end >= (k ? ends[k - 1] : least))) return [NaN];
    return Array.from({ length: D.facts.points }, (_, k) => {
      const place = (k + 0.5) / D.facts.points * (ends.length - 1), low = Math.floor(place);
      return ends[low] + (place - low) * (ends[low + 1] - ends[low]);
    });
  };
  // Lengths of answers that end with equal probability after each token: workload.geometric_lengths.
  const drawnLengths = (mean) => {
    const parts = D.facts.points, tail = (k) => (k === parts ? 0
      : (1 + Math.log(parts / (parts - k))) * (parts - k) / parts);
    return Array.from({ length: parts }, (_, k) => 1 + (mean - 1) * parts * (tail(k) - tail(k + 1)));
  };
  // What a formula takes of lengths: prompts with what is cached, the context of a token, the longest
  // sequence, how answers vary, and those to which equal parts of all tokens belong. A link may bring it.
  const mixed = (S) => {
    if (S.mode === "step" || (S.mix || {}).words) return S;
    if (S.mix) {
      const { trace, prompt, output, cached, reads } = S.mix, none = { prompt_tokens: null,
        output_tokens: null, cached: null, shared_prefix: null };
      const shared = total(reads, (read) => read[0] * read[3]) / total(reads, (read) => read[0]);
      return { ...S, prompt_tokens: prompt, output_tokens: output, cached,
        mix: { ...S.mix, shared, words: { trace, ...none } } };
    }
    const [prompts, said] = ["prompt_tokens", "output_tokens"].map((name) => lengths(name, S[name]));
    const alike = S.fixed_lengths ?? !S.request_rate, outputs = alike || said.length > 1 ? said
      : drawnLengths(said[0]);
    const part = (said) => /%\s*$/.test(said) && parseFloat(said) / 100, least = Math.min(...prompts);
    const own = part(S.shared_prefix), shared = own === false ? S.shared_prefix || 0 : own * least;
    const given = parseFloat(S.cached) ? S.cached : shared, share = part(given), output = mean(said);
    const held = (n) => (prompts.length > 1 || n * share >= 2 ? n * share : 0); // no parts of a token
    const reads = prompts.map((n) => [1, n, Math.min(share === false ? given : held(n), n - 1), shared]);
    const prompt = mean(prompts), cached = mean(reads, (read) => read[2]);
    const few = (n) => +(+n).toPrecision(6), differ = prompts.length > 1;
    const which = differ ? "the shortest prompt" : "prompt", most = Math.min(...reads.map((read) => read[2]));
    const over = share === false && +given >= least
      ? `${given === shared ? "shared_prefix" : "cached"} is ${few(given)}, but must be below ${which}, ${
        few(least)}` : shared > most
        ? `shared_prefix is ${few(shared)}, but must be a part of cached, ${few(most)}` : "";
    const varies = mean(outputs, (n) => n * n) / mean(outputs) ** 2 - 1;
    const mix = { reads, varies, over, shared, prefix: S.shared_prefix == null ? null : shared,
      context: prompt + (1 + varies) * output / 2,
      longest: Math.max(...prompts) + Math.max(...outputs), answers: outputs };
    const words = { prompt_tokens: S.prompt_tokens, output_tokens: S.output_tokens,
      cached: differ || share === false ? S.cached : cached };
    return { ...S, prompt_tokens: prompt, output_tokens: output, cached, mix: { ...mix, words } };
  };
  // How prompts are read: the mean by terms as far as they count, the fresh part, and how seconds vary.
  const passes = (at, S) => {
    const { reads } = S.mix, often = total(reads, (read) => read[0]);
    const mean = (of) => reads.reduce((sum, [n], k) => sum + n * of(each[k], k), 0) / often;
    const pass = (tokens, cached) => timed(at, "prompt", over(at.q, { ...at.reading, tokens, cached }));
    const each = reads.map(([, tokens, cached]) => pass(tokens, cached)), all = mean((one) => one.total);
    const terms = reads.length < 2 ? each[0].terms : each[0].terms.map(({ name }, k) =>
      ({ name, counts: true, seconds: mean(({ terms }) => terms[k].counts && terms[k].seconds) }));
    const fresh = S.cached ? mean((_, k) => pass(reads[k][1] - reads[k][2], 0).total) : all;
    const scatter = mean((one) => (one.total - all) ** 2), every = (of) => reads.flatMap((read, k) =>
      Array(read[0]).fill(of(read, each[k])));
    return { read: { terms, total: all }, fresh, uneven: 1 + scatter / all ** 2,
      added: (step) => every((_, { total, terms }) => D.glue.added({ read: total, beside: 1,
        ...drawn("read", terms), ...drawn("step", step) })[0]),
      passes: every((_, one) => one.total), freshTokens: every(([, tokens, held]) => tokens - held) };
  };
  const rooms = (at, { engine, prompt_tokens: prompt, mix: { longest, context, shared, prefix } }) => {
    if (at.q.chip_memory_capacity == null) return Infinity;
    const q = over(at.q, { longest: bytes(at, longest - shared), prefix: bytes(at, prefix) });
    const mean = engine === "compiled" ? 2 * context - prompt : context;
    return of(D.whole.room, at)(kept(at, mean - shared, q))[0];
  };

  // Why a machine has no place for so many, or nothing; and a question whose prompts alone take places.
  const unfit = (S, at, fits) => {
    if (rooms(at, S) >= fits) return null;
    const { fit, reason = "another one does not fit" } = stepAt(S, sharingNothing(at), fits, S.mix.longest);
    const each = fits > 1 ? " in each copy and stage" : "";
    return { status: "infeasible", fit, reason: ofChip(at.n, at.c.name)
      + ` has no room for one user beside the weights${each}: ${reason}` };
  };
  const brief = (S) => {
    const longest = Math.max(...S.mix.reads.map(([, tokens]) => tokens)) + 1;
    return { ...S, mix: { ...S.mix, context: S.prompt_tokens + 0.5, longest } };
  };

  // A fleet as in tokenprice.queueing. What an engine does in a step.
  const scheduler = (S, { c, q }) => {
    const all = D.schedulers[has(D.schedulers, S.engine) ? S.engine : ""];
    const memory = c.values.chip_memory_capacity ?? 8e10;
    const [, , budget, seqs, reserve, rides] = all.find(([least, not]) => memory >= least
      && !(not && c.name.startsWith(not)));
    const copies = S.engine === "sglang" && q ? D.glue.in_step(q)[0] : 1; // SGLang divides its default
    const tokens = S.max_num_batched_tokens || Math.floor(budget / copies);
    return { budget: tokens, shared: rides ? tokens : Infinity, seqs: S.max_num_seqs || seqs, reserve, rides,
      balance: 0, wait: 0 };
  };
  // A machine whose copies take so many seconds for steps and prompts: what it can serve.
  const server = (at, output, policy, held, costs) => {
    const { answers, prompts, tokens, passes } = costs, own = mean(passes), fresh = mean(costs.fresh);
    const [in_step] = D.glue.in_step(at.q), varies = mean(answers, (n) => n * n) / mean(answers) ** 2 - 1;
    const context = mean(prompts) + (1 + varies) * output / 2;
    const most = Math.max(Math.min(tokens / held, policy.seqs, D.most), 1);
    const taken = { tokens: most, held: 1, most, budget: policy.budget, fresh, output, rides: +policy.rides };
    const [sequences] = D.glue.sequences(taken);
    const step = (n) => {
      const [base, each] = costs.step(Math.max(Math.floor(n), 1));
      return base + each * context;
    };
    const full = sequences >= Math.max(tokens / held, 1) && !policy.reserve && fresh > 0;
    const [again] = full ? D.glue.again({ sequences, output, fresh }) : [0];
    const [rate] = D.glue.capacity(over(at.q, { sequences, output, step: step(sequences), own, again }));
    const { lanes } = at.q;
    return { at, policy, output, held, own, fresh, sequences, step, lanes, again, capacity: lanes * rate,
      costs: { ...costs, in_step }, uneven: own ? mean(passes, (one) => one * one) / own ** 2 : 1 };
  };
  // The limit of sequences at which memory is hardly ever full, and how many times as much is then served.
  const betterLimit = ({ at, policy, output, held, costs, sequences, again, capacity }) => {
    const seqs = Math.floor(D.limit.roomy * sequences);
    if (!again || seqs < 1) return null;
    const gain = server(at, output, { ...policy, seqs }, held, costs).capacity / capacity;
    return gain > D.limit.worth ? [seqs, gain] : null;
  };
  const slower = ({ at, policy, output, held, costs }, by) => server(at, output, policy, held, { ...costs,
    late: by * costs.late, passes: costs.passes.map((one) => by * one),
    step: (n) => costs.step(n).map((one) => by * one) });
  const promptsOf = ({ mix: { reads } }) =>
    reads.flatMap(([n, tokens, , shared]) => Array(n).fill(tokens - shared));
  const queue = (S, at, room) => {
    const read = passes(at, S), both = [read, null].map((one) => serverOf(S, at, room, one));
    return { at, room, ...read, lanes: at.q.lanes, serves: both[0], decodes: both[1] };
  };
  // The machine of a question's requests; `read`: how their prompts are, where it reads them itself.
  const serverOf = (S, at, room, read) => {
    const { lanes } = at.q, { context, answers, shared } = S.mix, known = [], policy = scheduler(S, at);
    const ends = [S.prompt_tokens, Math.max(2 * context - S.prompt_tokens, S.prompt_tokens + 1)],
      prompts = promptsOf(S);
    const seconds = (n, length) => {
      const plain = run(at, { batch: n * lanes, context: length });
      return S.draft_tokens ? draftedAt(S, at, plain).total : plain;
    };
    const step = (n) => {
      if (known[n]) return known[n];
      const [low, high] = ends.map((length) => seconds(n, length)), each = (high - low) / (ends[1] - ends[0]);
      return (known[n] = [low - each * (ends[0] - shared), each]);
    };
    const none = prompts.map(() => 0);
    const { passes, freshTokens } = read || { passes: none, freshTokens: none };
    const held = (policy.reserve ? 2 * context - S.prompt_tokens : context) - shared;
    const ingress_delay = at.q.engine_ingress_delay;
    const tokens = Number.isFinite(room) ? room * held / lanes : Infinity;
    const costs = { step, tokens, prompts, fresh: freshTokens, passes, answers, ingress_delay, late: 0 };
    const busy = server(at, S.output_tokens, policy, held, costs), full = lanes * busy.sequences;
    if (!read) return busy;
    // what each prompt adds to a step of a machine that is never idle
    const plain = run(at, { batch: full, context });
    const each = S.draft_tokens ? draftedAt(S, at, plain) : timed(at, "step");
    const added = full > lanes ? read.added(each.terms) : passes;
    const pieces = Math.max(budgetOf(S, at).pieces, 1);
    const [late] = D.glue.late(over(at.q, { read: read.read.total, pieces, own: mean(added) }));
    return server(at, S.output_tokens, policy, held, { ...costs, passes: added, late });
  };
  // A machine that only reads: answers of one token, whose steps take no time to speak of.
  const readerOf = (S, { at, read, passes, freshTokens }) => {
    const policy = scheduler(S, at), step = () => [D.soon * read.total, 0];
    const costs = { step, tokens: Infinity, prompts: promptsOf(S), fresh: freshTokens, passes, answers: [1] };
    return server(at, 1, policy, 1, { ...costs, ingress_delay: 0, late: 0 });
  };
  // Of a copy: the gap between two tokens, prompts that come in it, a step, sequences, a step's most prompts.
  const balance = (s, each) => {
    const after = Math.max(s.output - 1, 0), { budget, rides } = s.policy;
    let n = 1, token = s.step(1), came = 0, plain = 0, most = 0;
    for (let k = 0; k < D.rounds; k++) {
      came = each * token;
      most = s.fresh ? Math.max(budget - n * rides, 1) / s.fresh : Infinity;
      plain = s.step(Math.min(n, s.sequences));
      const [met] = D.glue.met(over(s.at.q, { came, most }));
      token = (token + (plain + s.own * met)) / 2;
      n = Math.max(each * after * token, 1);
    }
    most = s.fresh ? Math.max(budget - n * rides, 1) / s.fresh : Infinity;
    return { token, came, plain, n, most };
  };
  // Means by a fixed point, and of requests that are played.
  const steady = (s, all) => {
    const load = all / s.capacity, each = all / s.lanes, { ingress_delay, late } = s.costs;
    if (load >= 1) { // all sequences run, and the queue grows without end
      const running = s.lanes * s.sequences, token = running / (s.capacity * s.output);
      return { busy: load, held: running, waits: Infinity, token, first: Infinity };
    }
    const { token, came, plain, most } = balance(s, each), pieces = Math.max(1 / most, 1);
    const after = Math.max(s.output - 1, 0), idle = Math.exp(-each * after * token) * plain; // no decode
    let pack = s.own, waits;
    if (pieces > 1) {
      const alone = s.own + pieces * plain, busy = each * alone;
      waits = busy < 1 ? each * alone * alone * s.uneven / (1 - busy) / 2 : Infinity;
    } else {
      waits = D.glue.residual({ step: plain, came, own: s.own, uneven: s.uneven })[0] - idle / 2;
      pack = s.own * (1 + 2 * each * waits);
    }
    const first = ingress_delay + late + waits + pack + (plain - idle) / 2 + pieces * plain - idle;
    const held = each * s.lanes * (first + after * token);
    return { busy: load, held, waits, token, first };
  };
  const playedMeans = (s, all, times = 1) => {
    const { in_step } = s.costs, load = all / s.capacity, held = Math.min(load, 1) * s.sequences * in_step;
    const { requests, least, warm } = D.simulated, count = Math.floor(requests * s.uneven + 0.5);
    const found = inferlibReplica.arriving(s.costs, s.policy, all * in_step / s.lanes, times * count,
      Math.max(Math.ceil(warm * held), least), Math.min(balance(s, all / s.lanes).n, s.sequences));
    return { busy: load, held: found.running * s.lanes / in_step, waits: found.waits,
      token: found.gap || s.step(1), first: found.first, preempted: found.preempted };
  };
  const fewest = (good, least = 1) => {
    let low = 0, high = least;
    const most = 2 ** 20 * least;
    while (!good(high)) {
      if (high >= most) return false;
      high *= 2;
    }
    low = Math.max(Math.floor(high / 2), least - 1);
    while (high - low > 1) { const n = Math.floor((low + high) / 2); if (good(n)) high = n; else low = n; }
    return high;
  };
  const unlinked = (c) => c.values.chip_scale_out_bandwidth == null;
  // Seconds in which a chip sends or receives its part of a prompt's cache.
  const transfer = (at, length) =>
    kept(at, length, over(at.q)).kept / at.q.chip_scale_out_bandwidth;
  // As few machines as have a steady state at both ends that is good, or those that one has, with a steady
  // state in the middle; `near`: machines and readers from which on they are played.
  const fleet = (S, one, reader, { good = null, sure = false, play = true, near = null } = {}) => {
    const { request_rate: arrivals, prompt_tokens: prompt, mix } = S, { at, lanes } = one,
      { read } = reader || one;
    const { factor, soon, prefill: readFactor } = doubts(S, at, lanes, mix.context, { users: lanes,
      running: lanes, prompt, pack: 1 }, reader);
    const own = reader ? one.decodes : one.serves, reads = reader && readerOf(S, reader), known = {};
    const times = (s) => (s === own ? factor : readFactor);
    const loaded = (s, n, slow) => arrivals / n / s.capacity * (slow ? times(s) : 1);
    const able = (s, n) => loaded(s, n, !(s === own && S.replicas)) < 1;
    const end = (s, n, slow) => {
      const name = [s === own, n, slow].join(), one = () => (slow ? slower(s, times(s)) : s);
      return (known[name] ||= play && loaded(s, n, slow) < 1 ? played(one(), n, slow)
        : steady(one(), arrivals / n));
    };
    // Full memory is rare and lasts long, so a short simulation may miss how late it makes first tokens.
    const played = (s, n, slow) => {
      const found = playedMeans(s, arrivals / n);
      return found.preempted && !slow && (!good || good(found))
        ? playedMeans(s, arrivals / n, D.simulated.longer) : found;
    };
    // vLLM moves no prefix that all share
    const moves = prompt - (scheduler(S, at).rides ? mix.shared : 0);
    const moved = reader ? Math.max(transfer(reader.at, moves), transfer(at, moves)) : 0;
    const state = (n, m, slow = false) => {
      if (!able(own, n) || (m && !able(reads, m))) return null;
      const found = end(own, n, slow), prefill = m ? end(reads, m, slow)
        : { first: reader ? (slow ? readFactor : 1) * read.total : 0, waits: found.waits };
      return { ...found, waits: prefill.waits, first: prefill.first + moved + found.first };
    };
    const states = (n, m) => {
      const now = state(n, m), slow = { ...state(n, m, true) };
      slow.first = Math.max(slow.first, now.first * soon);
      if (m) slow.busy = Math.max(slow.busy, arrivals / m / reads.capacity * readFactor);
      return [now, slow];
    };
    const fine = (n, m = 0) => Boolean(state(n, m)) && (!good || good(sure ? states(n, m)[1] : state(n, m)));
    const smallest = (s, fine) => {
      const n = fewest((k) => able(s, k), Math.max(Math.floor(arrivals / s.capacity * times(s)), 1));
      return n && (good ? fewest(fine, n) : n);
    };
    let n, m;
    if (near) {
      [n, m] = near;
      if (!m && n > 1 && fine(n - 1)) n--;
      for (let turn = 0; turn < D.simulated.tries && !fine(n, m); turn++)
        if (m && turn % 2 === 0) m++; else n += Math.max(Math.floor(n / 20), 1);
    } else {
      n = S.replicas || smallest(own, fine);
      m = (n && reader && smallest(reads, (k) => fine(n, k))) || 0;
    }
    if (!n || (reader && !m) || !(S.replicas ? state(n, m) : fine(n, m))) return null;
    const [now, slow] = states(n, m), load = arrivals / own.capacity, parts = [[n, at]];
    if (m) parts.push([m, reader.at]);
    const hours = parts.map(([k, of]) => ({ chips: k * of.n, price: price(S, of.c.name) }));
    const readerLoad = m && arrivals / m / reads.capacity;
    const hour = hours.some((h) => h.price == null) ? null : total(hours, (h) => h.chips * h.price);
    return { n, reader, readers: m, hours, chips: total(hours, (h) => h.chips), state: now, slow, factor,
      load, play, readerLoad, hour, better: betterLimit(own),
      headroom: 1 / Math.max(load / n * factor, readerLoad * readFactor) };
  };
  const crowded = (S, ...more) => {
    const enough = fleet({ ...S, replicas: null }, ...more, { play: false });
    const percent = (v) => even(100 * v) + "%";
    if (!enough) return "no number of machines has a steady state";
    const some = S.replicas > 1 ? "machines" : "machine", load = percent(enough.load / S.replicas);
    const most = percent(1 / enough.factor), [machines, few] = [S.replicas, enough.n].map(String);
    return filled(D.crowded, { machines, some, load, most, enough: few });
  };
  const twice = (S) => {
    const name = S.request_rate && Object.keys(D.beside).find((name) => S[name]);
    return name ? name + " " + D.beside[name] : (S.mix || {}).over || "";
  };
  const inRows = (S) => (S.fixed_lengths && S.requests_per_user ? 1 : 0);
  // The part of all requests that comes at once, and the prompts that are read in a row.
  const loop = (S) => ({ burst: S.requests_per_user ? 1 / S.requests_per_user : 0,
    group: D.group[inRows(S)] });
  // Tokens of a step, and the steps of a prompt, whose last is shared with other prompts: as a mean of many,
  // and of one alone beside so many sequences.
  const budgetOf = (S, at, sequences = 1) => {
    const { budget, shared, rides } = scheduler(S, at), { reads } = S.mix;
    const room = budget - rides * (Math.max(sequences / at.q.lanes, 1) - 1);
    const mean = (of) => total(reads, ([n, tokens, cached]) => n * of(tokens - cached))
      / total(reads, ([n]) => n);
    return { budget: shared, pieces: mean((n) => n / budget),
      own_steps: mean((n) => Math.ceil(n / room * (1 - 1e-9))) };
  };
  const together = (S, at, running) => D.glue.together({ lanes: at.q.lanes, output: S.output_tokens, running,
    tokens: S.prompt_tokens, cached: S.cached || 0, budget: scheduler(S, at).shared })[0];
  // For other numbers of users, how prompts are read is kept.
  const request = (S, kept = {}) => {
    const at = asked(S), { output_tokens: output, request_rate: arrivals, mix } = S, refused = (reason) =>
      ({ status: "n/a", reason, remarks: [] });
    if (twice(S)) return refused(twice(S));
    if (S.prefill_machine &&
      !arrivals) return refused("prefill_machine belongs to request_rate on this page: give request_rate, or "
      + "ask tokenprice in Python or a terminal");
    const reads = S.prefill_machine && machineOf(S.prefill_machine);
    const still = reads && [chip(S), chips[reads.chip]].find(unlinked);
    if (still) return refused(filled(D.unlinked, { name: still.name }));
    const roomy = (S, l, at = asked(S)) => !at.refused && rooms(at, S) >= Math.max(1, l.dp);
    if (at.refused) return without(S, refused(at.refused), roomy, at.at);
    const places = rooms(at, S), full = unfit(S, at, arrivals ? at.q.lanes : 1);
    if (full) return without(S, full, roomy, full.status === "infeasible" && at);
    const users = arrivals ? 1 : S.concurrency || 1, running = Number.isFinite(places)
      ? D.glue.running({ users, places: Math.min(places, scheduler(S, at).seqs * at.q.lanes) })[0]
      : Math.min(users, scheduler(S, at).seqs * at.q.lanes);
    const step = stepAt(S, at, arrivals ? running : together(S, at, running), mix.context);
    if (step.status !== "ok") return without(S, step, roomy, step.status === "infeasible" && at);
    if (!arrivals) return served(S, { at, ...(kept.read ||= passes(at, S)) }, step, users, running);
    const same = reads && reads.chip === S.chip;
    const one = queue(S, at, places), own = same && reads.n_chips === at.n ? one
      : reads && reading(S, at.m, same ? at.c : chips[reads.chip], reads.n_chips);
    if (own && own !== one) {
      const uneven = cut(at.m, { ...at.l, tp: reads.n_chips, pp: 1, dp: 1, ep: 1 });
      const small = unfit(brief(S), own.at, 1);
      const why = (reason) => "prefill_machine: " + reason;
      if (uneven) return refused(why(uneven));
      if (small) return { ...small, reason: why(small.reason), remarks: [] };
    }
    const many = fleet(S, one, own);
    if (!many) return refused(crowded(S, one, own));
    const apart = S.replicas || own || unlinked(at.c) ? null : fleet(S, one, one, { play: false });
    const found = inFleet(S, one, many);
    if (many.headroom <= 1) found.cautions = [...found.cautions, crowded(S, one, own)];
    const other = apart ? inFleet(S, one, apart) : found;
    return other.status === "ok" ? { ...found, apart } : other;
  };
  // So many chips as a queue that reads prompts, each on all of them.
  const reading = (S, m, c, n) => {
    const at = machine(S, m, c, n, { tp: n, pp: 1, dp: 1, ep: 1 });
    return { at, ...passes(at, S) };
  };
  // The mean request of a fleet.
  const inFleet = (S, one, many) => {
    const users = Math.max(Math.min(many.state.held, one.room), 1);
    const step = stepAt(S, one.at, Math.max(users, one.lanes), S.mix.context);
    return served(S, one, step, users, users, many);
  };
  const served = (S, one, step, users, running, many) => {
    const { at } = one, { prompt_tokens: tokens, output_tokens: output, request_rate: arrivals, cached,
      mix: { context } } = S;
    const { reader } = many || {}, { read, fresh, uneven } = reader || one;
    const answered = reader ? running : together(S, at, running), hour = price(S, at.c.name);
    const all = over(at.q, { output, tokens, cached, users, running, uneven, step: step.seconds, fresh,
      ...budgetOf(S, at, answered), ...loop(S), read: read.total, ...drawn("step", step.terms),
      ...drawn("read", read.terms) });
    const spent = over(all, { users: answered, own: reader ? 0 : D.glue.own(all)[0] });
    const taken = D.glue.machine(spent)[0], gathers = S.fixed_lengths && !S.requests_per_user && !arrivals;
    const { texts, factor, soon } = doubts(S, at, users, context, { users, running, prompt: tokens,
      packed: reader || !sparse(at.m) ? 1 : Math.min(D.glue.pack(all)[0], answered / output / at.q.lanes),
      pack: inRows(S) ? D.glue.pack(all)[0] : 1, gathered: gathers && users > 1 ? spent.own / taken : 0 },
    reader);
    const between = (seconds, spread) => D.glue.rates(over(all, { batch: running, step: seconds, spread }));
    const [first, token, sum] = many ? [many.state.first, many.state.token, arrivals * output]
      : D.glue.waiting(all);
    let [speed, , tokenLow, tokenHigh] = between(token, factor);
    let [, , firstLow, firstHigh] = between(first, soon);
    // What holds whatever the model.
    const alone = { batch: many ? at.q.lanes : Math.min(at.q.lanes, answered),
      context: many ? Math.min(...S.mix.reads.map(([, n]) => n)) : context };
    const peaks = stepAtPeaks(S, at, many ? alone : { batch: answered, context });
    const prompts = (reader || one).at, { reading } = prompts;
    const promptPeaks = atPeaks(prompts, "prompt", { ...reading, tokens, cached });
    tokenLow = Math.max(tokenLow, peaks);
    firstLow = Math.max(firstLow, promptPeaks);
    if (many) {
      tokenHigh = Math.max(tokenHigh, many.slow.token);
      firstHigh = Math.max(firstHigh, many.slow.first);
    }
    const least = run(at, alone);
    const made = many ? arrivals * output * many.n / many.load : output / taken;
    // a user asks again a token later; in the last of rounds fewer ask
    const next = users * output / (first + output * token);
    const paced = many ? sum : S.requests_per_user ? Math.min(next, made) : next;
    const told = { token, tokens: sum, paced, received: users * output / (first + (output - 1) * token),
      first_token: first, reading: read.total,
      alone: S.draft_tokens ? draftedAt(S, at, least).total : least, everybody: D.glue.everybody(all)[0],
      made, at_peaks: peaks, prompt_at_peaks: promptPeaks, token_low: tokenLow,
      token_high: tokenHigh, first_low: firstLow, first_high: firstHigh };
    const wrong = D.bounds.find(([kind, at]) => !(many && kind === "loop")
      && !(D.glue["bounds_" + kind](told)[at] >= 0));
    if (wrong) return { status: "n/a", reason: wrong[2], remarks: [] };
    const found = { ...step, running, sum, first, firstLow, firstHigh, token, tokenLow, tokenHigh, speed,
      reading: read.total, readBy: binding(read.terms), cautions: texts,
      remarks: remarks(S, at, S.mix.longest, 0, cached && S.mix.prefix == null
        && (many ? (reader ? one.decodes : one.serves).again : running < users)),
      others: Math.max(token - step.seconds, 0), many, factor,
      promptPeaks,
      least: Math.max(1 / factor, Math.min(peaks / step.seconds, promptPeaks / read.total)) };
    if (found.others > Math.max(...step.terms.filter((t) => t.counts).map((t) => t.seconds)))
      found.binding = "prompts of others";
    if (many && reader && many.hour != null) {
      // Each kind of machine is paid for around the clock, used or not.
      const shared = ({ chips, price }, batch, step = 1) => D.glue.cost({ step, batch, n_chips: chips,
        price })[0];
      const [decode, reads] = many.hours, part = fresh / read.total, again = tokens - cached;
      found.million = { input: shared(reads, arrivals * again, part), output: shared(decode, arrivals
        * output), cached: cached ? shared(reads, arrivals * cached, 1 - part) : null };
      found.request = total(many.hours, (one) => shared(one, arrivals)) / 1e6;
    } else if (!reader && hour != null) {
      // Dollars of a used hour: of a fleet, all that it costs over what it answers.
      const busy = many ? taken * arrivals / many.n : 1;
      const [request, input, again, answer] = D.glue.paid(over(all, { price: hour / busy }));
      Object.assign(found, { request, million: { input, cached: cached ? again : null, output: answer } });
    }
    if (many && found.million) many.million = found.million.output;
    if (at.q.chip_power != null) {
      const { n_chips, lanes, chip_power } = (reader || one).at.q;
      found.promptJoules = chip_power == null ? null
        : D.glue.prompt_joules(over(all, { n_chips, lanes, chip_power, ep: reader ? 1 : all.ep }))[0];
      found.joules = D.glue.joules(over(all, { together: answered }))[0];
      // of a fleet with the chips that wait for requests
      const waits = (of, n, busy) => (!n ? 0 : of.q.chip_power == null ? NaN : D.glue.idle(
        over(of.q, { idle: n * of.n * Math.max(1 - busy, 0), a_second: arrivals * output }))[0]);
      if (many) found.joules += waits(at, many.n, taken * arrivals / many.n);
      if (reader) found.joules += waits(reader.at, many.readers,
        arrivals * read.total / reader.at.q.lanes / many.readers);
      if (Number.isNaN(found.joules)) found.joules = null;
    }
    return found;
  };

  // Seconds of a token, and what a million cost, of numbers as they are or changed; those of a request with
  // the prompts of others in between.
  const token = (S, at, q) => {
    const { prompt_tokens: tokens, output_tokens: output, cached } = S, alone = S.mode !== "request" ||
      S.request_rate, users = q.batch;
    const answered = alone ? users : together(S, at, users);
    const plain = timed(at, "step", over(q, { batch: answered }));
    const step = plain.total;
    if (alone) return [step, q.price == null ? null : D.glue.cost(over(q, { step }))[0]];
    const whole = timed(at, "prompt", over(q, { ...at.reading, tokens, cached })), read = whole.total;
    const told = { output, tokens, cached, users, running: users, uneven: 1, step, read, fresh: read,
      ...budgetOf(S, at, answered), ...loop(S), ...drawn("step", plain.terms),
      ...drawn("read", whole.terms) };
    const all = over(q, told);
    return [D.glue.waiting(all)[1], q.price == null ? null : D.glue.paid(all)[3]];
  };
  // The question with numbers of a step; nothing where it has no answer.
  const opening = (S, batch, context) => {
    const at = asked(S);
    return at.refused || at.late ? null
      : Object.assign(at, { q: over(at.q, { batch, context, price: price(S, at.c.name) }) });
  };

  // What each change buys: times before over times after.
  const scaled = (q, scale, by) => {
    const now = over(q);
    for (const field in scale) if (now[field] != null) now[field] *= Math.pow(by, scale[field]);
    return now;
  };
  const changes = (S, batch, context) => {
    const at = opening(S, batch, context);
    if (!at) return [];
    const [base] = token(S, at, at.q);
    const found = D.changes.map(({ name, scale, copies }) => {
      const now = scaled(at.q, copies && at.l.dp > 1 ? copies : scale, 2);
      return { name, gain: base / token(S, at, now)[0] };
    });
    // Weights of fewer bits, each asked as its own question; of four bits those that the chip multiplies.
    const four = "fp4" in at.c.peaks ? "fp4" : "int4";
    const fewer = ["fp8", four].filter((name) => bits(format(name)) < bits(at.stored.weights));
    const asked = fewer.map((weights) => {
      const other = opening({ ...S, weights }, batch, context);
      const gain = base / token(S, other, other.q)[0];
      return { name: "weights in " + weights, gain, later: gain < 1 && filled(D.later, { name: weights }) };
    });
    return found.concat(asked).sort((a, b) => b.gain - a.gain);
  };
  // By how much one thing would have to change for a step to be good enough, all else left: by bisection.
  const needed = (S, batch, context, good) => D.levers.map(({ name, scale, limit, less }) => {
    const at = opening(S, batch, context), rent = at && price({ ...S, electricity: null }, at.c.name);
    const holds = (by) => {
      const now = scaled(at.q, scale, by), [needs, own, left] = fits(at, now);
      if (scale.price && rent != null) now.price = at.q.price - rent + rent * Math.pow(by, scale.price);
      return !(own != null && needs > left) && good(...token(S, at, now));
    };
    const tries = Array.from({ length: 61 }, (_, k) => Math.pow(limit, k / 60));
    const first = at ? tries.findIndex(holds) : -1;
    if (first < 0) return { name, factor: null, limit, less };
    let [low, high] = [tries[Math.max(0, first - 1)], tries[first]];
    for (let k = 0; k < 40; k++) {
      const middle = Math.sqrt(low * high);
      if (holds(middle)) high = middle; else low = middle;
    }
    return { name, factor: high, limit, less };
  });

  // --- Decide: every machine that keeps a promise, cheapest first; the search of tokenprice.decide ------
  const layouts = (m, c, n) => {
    const found = [], all = every(m, "n_heads"), { chip_scale_up_size, ...sends } = c.values, degrees = [];
    const domain = Math.min(n, chip_scale_up_size || n);
    const add = (l) => found.push({ pp: 1, dp: 1, ep: 1, ...l });
    for (let d = 1; d <= n; d *= 2) if (n % d === 0 && all.every((h) => h % d === 0)) degrees.push(d);
    const inside = degrees.filter((d) => d <= domain), last = inside[inside.length - 1], stages = n / last;
    if (degrees.includes(n)) add({ tp: n });
    if (stages > 1 && stages <= layers(m)) add({ tp: last, pp: stages });
    if (!sparse(m) || n === 1 || n > Math.min(...every(m, "n_experts"))) return found;
    if (inside.includes(n)) add({ tp: n, ep: n });
    if ((n <= domain ? sends.chip_scale_up_bandwidth : sends.chip_scale_out_bandwidth) != null)
      inside.filter((d) => d <= 8 && d < n).forEach((d) => add({ tp: d, ep: n, dp: n / d }));
    return found;
  };
  const inParts = (n) => [2, 4, 8].filter((pp) => n % pp === 0)
    .map((pp) => ({ tp: n / pp, pp, dp: 1, ep: 1 }));
  // The chips that may be offered: every one, the one that was chosen, or a list.
  const tried = (S) => (S.only ? [S.only].flat() : Object.keys(D.chips));
  const machines = (S) => {
    const m = model(S), own = (name) => D.chips[name].lender === name && price(S, name) != null;
    return tried(S).filter(own).flatMap((name) => {
      const c = chip(name === S.chip ? S : { chip: name });
      const tries = (n) => (S.stages ? inParts(n) : layouts(m, c, n));
      return c.counts.flatMap((n) => tries(n).map((l) => ({ m, c, n, l })));
    });
  };
  // Whether a state is within the SLO, at its slow end where that must be.
  const late = (S, one) => one.first > (S.ttft || Infinity);
  const asPromised = (S, one) => !(one.token > (S.tpot || Infinity)) && !late(S, one)
    && !(one.busy > D.settled); // load of a fleet whose simulated means can be trusted
  const seenOf = (S, one) => (S.sure ? { token: one.tokenHigh, first: one.firstHigh } : one);
  // The time of an answer is asked for powers of two of users a copy, then between the last good one and the
  // next; of arrivals, for the cheapest way to read prompts.
  const judge = (S, { m, c, n, l }, out) => {
    const { output_tokens: output, mix } = S, most = S.usd_per_million || Infinity,
      few = (v) => +v.toPrecision(3);
    const name = { chip: c.name, n, layout: words(l), l };
    const miss = (reason, detail, times = Infinity) => out.misses.push({ ...name, reason, detail, times });
    const at = machine(S, m, c, n, l);
    if (at.late) return miss("not described", at.late);
    const places = rooms(at, S), most2 = scheduler(S, at).seqs * at.q.lanes;
    const rounds = Math.floor(Math.min(places, most2, D.most) / l.dp);
    if (!(rounds >= 1)) return miss("does not fit", stepAt(S, sharingNothing(at), l.dp, mix.longest).reason
      || "room for " + few(Math.max(places, 0)) + " users");
    const one = queue(S, at, places), told = (found) => (found.status !== "ok" ? found : { ...found, ...name,
      users: found.running, dollars: found.request, million: found.million.output });
    const serve = (round) => {
      const users = l.dp * round, step = stepAt(S, at, together(S, at, users), mix.context);
      return told(served(S, one, step, users, users));
    };
    const dear = (least) => miss("too expensive", "$" + digits(least) + " per million at best", least / most);
    // By the users with whom the miss is least; of their limits, the one that is missed most.
    const missed = (found) => {
      const [, [reason, detail, times]] = found.map((one) => {
        const { users, million } = one, seen = seenOf(S, one);
        const who = (S.sure ? " at the slow end" : "") + (users > 1 ? ` for ${users} users` : " for 1 user");
        const slow = seen.token / (S.tpot || Infinity);
        const worst = [["too slow", few(1 / seen.token) + " tokens/s" + who, slow],
          ["first token too late", few(seen.first) + " s" + who, seen.first / (S.ttft || Infinity)],
          ["too expensive", "$" + digits(million) + " per million" + who, million / most]]
          .reduce((a, b) => (b[2] > a[2] ? b : a));
        return [worst[2], worst];
      }).reduce((a, b) => (b[0] < a[0] ? b : a));
      miss(reason, detail, times);
    };
    const offer = (found) => (found.status !== "ok" ? miss("not described", found.reason)
      : found.million > most ? dear(found.million) : out.offers.push(found));
    if (S.request_rate) {
      const able = c.counts.filter((k) => k < n && every(m, "n_heads").every((h) => h % k === 0));
      const others = able.map((k) => reading(S, m, c, k)).filter((r) => rooms(r.at, brief(S)) >= 1);
      const how = { good: (state) => asPromised(S, state), sure: S.sure, play: false };
      const tried = (reader, of = one, limit = null) => {
        const again = (many) => ({ ...told(inFleet(S, of, { ...many, limit })), again, one: of });
        return { again, many: fleet(S, of, reader, how) };
      };
      const apart = unlinked(c) ? [] : [one, ...others]; // machines that prefill
      const found = [null, ...apart].map((reader) => tried(reader)), [{ many }] = found;
      if (many && many.better && !S.max_num_seqs)
        found.push(tried(null, queue({ ...S, max_num_seqs: many.better[0] }, at, places), many.better[0]));
      const kept = found.filter((f) => f.many);
      if (!kept.length) return missed([serve(1)]);
      // Of as many chips, those that meet the SLO at the slow end as well come first.
      const slow = ({ many }) => asPromised(S, many.slow);
      const best = kept.sort((a, b) => a.many.chips - b.many.chips || slow(b) - slow(a))[0];
      return offer(best.again(best.many));
    }
    // With more users times are longer, and prices lower.
    const good = (found) => asPromised(S, seenOf(S, found));
    const ladder = Array.from({ length: Math.floor(Math.log2(rounds)) + 1 }, (_, k) => serve(2 ** k));
    const last = ladder.map(good).lastIndexOf(true), wrong = ladder.find((found) => found.status !== "ok");
    if (wrong) return offer(wrong);
    out.points.push(...ladder);
    if (last < 0) return missed(ladder);
    let low = 2 ** last, high = Math.min(2 * low, rounds + 1), best = ladder[last];
    while (high - low > 1) {
      const middle = (low + high) >> 1, found = serve(middle);
      if (good(found)) [low, best] = [middle, found]; else high = middle;
    }
    if (!ladder.includes(best)) out.points.push(best);
    return offer(best);
  };
  // What machines are tried for, in words.
  const goal = (S) => (S.tpot || S.ttft || S.usd_per_million ? "meet the SLO" : "serve it");
  // Weights of fewer bits that meet the SLO for less on the best one's chip, or at all if nothing does.
  const inFewerBits = (best, S) => {
    const m = model(S), own = bits(formats(S, m).weights);
    const stem = `/${m.name.split("/").pop().replaceAll(" ", "-").toLowerCase()}-`;
    return ["fp8", "fp4"].filter((w) => bits(format(w)) < own).flatMap((w) => {
      const only = tried(S).filter((name) => w in D.chips[name].peaks && (!best || name === best.chip));
      const other = decide({ ...S, weights: w, only, bare: true }, 0).best;
      const less = other && best ? 1 - other.dollars / best.dollars : 1;
      if (!other || less < 0.01) return [];
      const known = Object.keys(D.models).find((name) => name.toLowerCase().includes(stem)
        && name.toLowerCase().endsWith(w));
      const chips = ofChip(other.many ? other.many.chips : other.n, other.chip);
      return [`With weights in ${w}${known ? ` (${known})` : ""}, ${chips} would ${goal(S)}`
        + (best ? ` for ${even(100 * less)}% less` : "")];
    }).join(". ");
  };
  const unsure = (o) => o.at.spread === 1 && !(o.many && o.many.readers); // copies that prefill
  const ranked = (o) => o.dollars * (unsure(o) ? o.factor : 1);
  // Pipeline stages within a machine that meet the SLO for much less on the chips of the offers shown.
  const inStages = (out, S) => {
    if (out.best && out.best.n === 1) return "";
    const shown = out.offers.slice(0, D.shown).map((o) => o.chip);
    const only = shown.length ? tried(S).filter((name) => shown.includes(name)) : tried(S);
    const other = decide({ ...S, only, stages: true, bare: true }, 0).best;
    const less = other && out.best ? 1 - ranked(other) / ranked(out.best) : 1;
    return !other || less < D.pipelines.least ? "" : filled(D.pipelines.text, { layout: words(other.l),
      chips: ofChip(other.many ? other.many.chips : other.n, other.chip), do: goal(S),
      cheaper: out.best ? ` for ${even(100 * less)}% less` : "" });
  };
  // This many of the cheapest fleets are played, with as many machines as then meet the SLO.
  const playedOffers = (out, S, most) => {
    const rank = (o) => +ranked(o).toPrecision(9), time = (o) => +o.token.toPrecision(9);
    const risky = (o) => +!asPromised(S, o.many.slow);
    const next = (a, b) => (a.many && b.many ? risky(a) - risky(b) : a.n - b.n) || time(a) - time(b)
      || a.l.ep - b.l.ep;
    const order = () => out.offers.sort((a, b) => rank(a) - rank(b) || next(a, b));
    for (;;) {
      order();
      const k = out.offers.slice(0, most).findIndex((o) => o.many && !o.many.play);
      if (k < 0) return;
      const o = out.offers[k], { many } = o, how = { good: (state) => asPromised(S, state), sure: S.sure };
      const found = fleet(S, o.one, many.reader, { ...how, near: [many.n, many.readers] });
      out.offers.splice(k, 1, ...(found ? [o.again(found)] : []));
      const { chip, n, layout, l } = o;
      const slow = many.state.token / (S.tpot || Infinity), first = many.state.first / (S.ttft || Infinity);
      const detail = `with ${many.n} machines and more, simulated`, times = Math.max(slow, first, 1);
      const reason = slow > first ? "too slow" : "first token too late";
      if (!found) out.misses.push({ chip, n, layout, l, reason, detail, times });
    }
  };
  const decided = (out, S, most = D.shown) => {
    playedOffers(out, S, most);
    const seen = new Set();
    out.best = out.offers[0] || null;
    out.runnersUp = out.offers.filter((o) => !seen.has(o.chip) && seen.add(o.chip)).slice(1);
    let lowest = Infinity;
    const line = out.points.length ? out.points.filter((p) => !late(S, seenOf(S, p))) : out.offers.slice();
    out.frontier = line.sort((p, q) => q.speed - p.speed || p.dollars - q.dollars)
      .filter((p) => p.dollars < lowest && ((lowest = p.dollars), true));
    if (S.bare) return out;
    // of the chips that are shown, what the slow end needs
    const shown = out.best && out.best.many && !S.sure ? [out.best, ...out.runnersUp] : [];
    shown.forEach((o) => { o.sure = decide({ ...S, sure: true, only: o.chip, bare: true }, 1).best; });
    out.narrower = [inFewerBits(out.best, S), inStages(out, S)].filter((text) => text).join(". ");
    return out;
  };
  const search = () => ({ offers: [], points: [], misses: [] });
  const decide = (S, most) => {
    const out = search();
    machines(S).forEach((one) => judge(S, one, out));
    return decided(out, S, most);
  };

  // The measured rows nearest to a question: same model and chip first, then by ratios of users, chips and
  // context; another model's only where this one has none.
  const neighbours = (S, batch, context, most) => {
    const { names, columns, groups } = D.measured, m = model(S), { kernel } = formats(S, m).weights;
    const apart = (a, b) => Math.abs(Math.log2(Math.max(a, 1) / Math.max(b, 1))), copies = layout(S).dp > 1;
    const size = (name) => (has(D.models, name) ? total(D.models[name].stored) : 0);
    const shapes = names.model.map((name) => 2 * apart(size(name), m.size)
      + (name === m.name || Math.abs(size(name) / m.size - 1) < 1e-6 ? 0 : 8));
    const rows = groups.flatMap(([own, ...rest]) => rest.map((row) => [...own, ...row]));
    return rows.map((row) => {
      const r = named(columns, row), shape = shapes[r.model];
      for (const key in names) r[key] = names[key][r[key]];
      const far = shape + (r.chip === S.chip ? 0 : 4) + apart(r.users, batch) + 1.5 * apart(r.n, S.n_chips)
        + 0.5 * apart(r.context, context) + (r.dp > 1 === copies ? 0 : 1)
        + (D.same[r.weights] === D.same[kernel] ? 0 : 1);
      return { ...r, far, alike: shape === 0, same: r.chip === S.chip && shape === 0 };
    }).sort((a, b) => a.far - b.far).slice(0, most);
  };

  // --- The question in words: for links, and as the call that returns this very answer ----------------
  // A number in the words of its field: 8k, 95%, 500 ms, 50 tokens/s; a text where it is a share of another.
  const read = (key, text) => {
    const c = D.form.numbers[key];
    const said = String(text).trim().toLowerCase(), paid = has(c.units, "usd") && /^\$/.test(said);
    const number = (c.commas ? "[0-9]{1,3}(?:,[0-9]{3})+|" : "")
      + "[0-9]{1,3}(?:_[0-9]{3})+|(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:e[+-]?[0-9]+)?";
    const found = new RegExp(`^(${number})([^]*)$`).exec(paid ? said.slice(1).trim() : said);
    const unit = found && found[2].replace(/\s+/g, ""), value = found && +found[1].replace(/[,_]/g, "");
    if (!found || !has(c.units, unit) || (paid && /^(\$|usd)/.test(unit))) return NaN;
    if (c.shares && !unit && value > 1 && value < 2) return NaN; // neither a share nor tokens
    if (c.units[unit] === "share" || (c.shares && !unit && value > 0 && value <= 1)) {
      const part = +(unit ? value : 100 * value).toPrecision(12);
      return part >= 1e-7 && part < 100 ? part + "%" : part === 0 ? 0 : NaN;
    }
    const [by, power, most] = c.units[unit], v = +(power > 0 ? value * by : by / value).toPrecision(11);
    return v >= c.least && v <= most && (!c.whole || Number.isInteger(v)) ? v : NaN;
  };
  const told = (name, v) => {
    const { units, ...form } = D.form.numbers[name];
    const show = units[form.show] === "share" ? "" : form.show; // of what may be a share, a number is tokens
    const [by, power] = units[show === "" && !has(units, "") ? "usd" : show];
    if (typeof v === "string") return v;
    const round = (number, figures = 10) => +number.toPrecision(figures), shown = power > 0 ? v / by : by / v;
    // a time that is no round speed
    if (power < 0 && round(shown) !== round(shown, 4)) return `${round(1e3 * v)} ms`;
    return round(shown) + (show === "%" ? "%" : show && " " + show);
  };
  const keeps = (kept) => Object.entries(kept || {}).map((pair) => pair.join("=")).join(", ") || null;
  // Parts in another format, of a text such as attention=bf16; null where it cannot be read.
  const keepOf = (text) => {
    const pairs = text.split(",").filter((part) => part.trim()).map((part) => part.split("=").map((word) =>
      word.trim().toLowerCase()));
    const good = ([part, name]) => D.parts.includes(part) && has(D.formats.each, name);
    return pairs.every((pair) => pair.length === 2 && good(pair)) && new Set(pairs.map(([part]) => part)).size
      === pairs.length
      ? Object.fromEntries(pairs) : null;
  };
  const said = (q) => {
    const own = { ...q, machine: q.n_chips + "x " + q.chip, layer_formats: keeps(q.layer_formats),
      ...(q.mix || {}).words,
      acceptance_length: q.draft_tokens ? q.acceptance_length : null, tpot: q.tpot && told("tpot", q.tpot),
      ttft: q.ttft > 60 ? told("ttft", q.ttft) : q.ttft, // a bare number is a minute at most
      price: hourly(q, q.chip) === chips[q.chip].values.chip_price ? null : hourly(q, q.chip) };
    const found = { model: q.own ? "config.json" : q.model };
    const empty = (name) => ["", "0%", null, undefined, name === "context" ? null : 0].includes(own[name]);
    for (const name of ["trace", ...D.form.fields])
      if (!empty(name) && name !== "model" && (D.form.modes[name] || [q.mode]).includes(q.mode))
        found[name] = own[name];
    const chosen = q.mode === "decide" ? { chips: q.only || null, sure: q.sure || null } : {};
    for (const name in chosen) if (chosen[name]) found[name] = chosen[name];
    return found;
  };
  const python = (q, verb = q.mode === "decide" ? "decide" : "ask", more = {}) => {
    const quote = (v) => (v === true ? "True" : JSON.stringify(v));
    const { model: name, machine: box, ...given } = { ...said(q), ...more };
    const read = q.prefill_machine && machineOf(q.prefill_machine).chip;
    const own = read !== q.chip && has(q.prices || {}, read)
      ? { [read]: q.prices[read] } : {}, listed = verb === "decide" ? q.prices : own;
    if (Object.keys(listed).length) given.prices = listed;
    const changed = Object.entries(q.changed || {}), plain = changed.filter(([field]) =>
      !field.startsWith("peak")).map(([field, v]) => field + "=" + v), { values, peaks } = chip(q);
    if (changed.length > plain.length) plain.push("flops=" + values.chip_flops, "peaks=" + quote(peaks));
    const record = `inferlib.load_chip(${quote(q.chip)}).replace(${plain.join(", ")})`;
    const ofChanged = (text) => {
      const { chip: known, n_chips } = machineOf(String(text)) || {};
      return plain.length && known === q.chip ? `inferlib.System(${record}, ${n_chips})` : quote(text);
    };
    const told = Object.entries(given).filter(([, value]) => value != null).map(([field, value]) =>
      field + "=" + (field === "prefill_machine" ? ofChanged : quote)(value));
    const first = verb === "decide" ? [quote(name)] : [quote(name), ofChanged(box)];
    return `tokenprice.${verb}(${[...first, ...told].join(", ")})`;
  };
  // Single requests of a fleet; the same step asked of the five sources too; an SLO for 99 of 100 requests.
  const simulate = (q) => python(q, "simulate");
  const everybody = (q) => python(q, "ask", { by: "all" });
  const percentiles = (q) => {
    const { tpot: tpot_p99, ttft: ttft_p99 } = said(q);
    return python(q, "decide", { tpot_p99, ttft_p99, tpot: null, ttft: null });
  };
  // Lengths are read at the door.
  const door = { request, changes, needed, machines, judge, decide, said, python, simulate,
    everybody, percentiles };
  for (const [name, f] of Object.entries(door)) door[name] = (S, ...more) => f(mixed(S), ...more);
  return { ...door, known, machineOf, chips, formats, hourly, keepOf, keeps, read, lengths, told, mixed,
    model, layout, layouts, unsure, words, even, filled, accepted, sparse: (S) => sparse(model(S)), ofChip,
    step, leastStep, neighbours, search, decided, twice, workspace, goal };
};
