// Reads a config.json by the declarations of inferlib/catalog/families.toml, as inferlib.config does; what
// those of
// this page do not say is refused. D: families, harmless, most (numbers, layers), refused (families by
// reason).
globalThis.inferlibConfig = function (D) {
  "use strict";
  const NEEDED = {}, own = Object.prototype.hasOwnProperty;
  const is = (value, kind) => value !== null && typeof value === kind && !Array.isArray(value);
  const shown = (value) => { const text = JSON.stringify(value === undefined ? null : value);
    return text.length > 40 ? text.slice(0, 37) + "..." : text; };
  class Keys {
    constructor(data, where) { Object.assign(this, { data, where, asked: new Set(), inside: {},
      parent: null }); }
    get(key) { return own.call(this.data, key) ? this.data[key] : undefined; }
    at(key, absent) {
      const dot = key.lastIndexOf(".");
      if (dot < 0) return [this, key];
      const outer = key.slice(0, dot), name = key.slice(dot + 1);
      if (!this.inside[outer]) {
        if (absent && this.get(outer) == null) return [null, name];
        const value = this.take(outer, NEEDED);
        if (!is(value, "object")) this.refuse(outer, "an object of keys and values");
        this.inside[outer] = new Keys(value, this.where + ": " + outer);
      }
      return [this.inside[outer], name];
    }
    take(key, other) {
      const [keys, name] = this.at(key, other !== NEEDED);
      if (keys !== this) return keys ? keys.take(name, other) : other;
      this.asked.add(key);
      const value = this.get(key);
      if (value != null) return value;
      if (other === NEEDED) throw Error(this.where + ": " + key + " is " + (value === null ? "null"
        : "missing") + ", but this model needs it");
      return other;
    }
    given(key) { const [keys, name] = this.at(key, true); return keys !== null && keys.get(name) != null; }
    refuse(key, must) { const [keys, name] = this.at(key); throw Error(keys.where + ": " + name + " is "
      + shown(keys.get(name)) + ", but must be " + must); }
    whole(key, other, zero, most) {
      const value = this.take(key, other === undefined ? NEEDED : other), top = most === undefined ? D.most
        : most;
      if (value === other) return value;
      if (!Number.isInteger(value) || value < (zero ? 0 : 1) || value > top) this.refuse(key,
        "a whole number from " + (zero ? 0 : 1) + " to " + top);
      return value;
    }
    flag(key, other) { const value = this.take(key, other === undefined ? NEEDED : other);
      if (typeof value !== "boolean") this.refuse(key, "true or false"); return value; }
    text(key, other) { const value = this.take(key, other === undefined ? NEEDED : other);
      if (typeof value !== "string") this.refuse(key, "a string"); return value; }
    listed(key, allowed, least = 0, most = D.layers) {
      const value = this.take(key, NEEDED);
      const among = typeof value === "string" ? allowed.filter((a) => typeof a === "string"
        && a.length === 1) : allowed;
      const good = (Array.isArray(value) || typeof value === "string") && value.length >= least
        && value.length <= most;
      if (!good || ![...value].every((v) => among.includes(v))) this.refuse(key, "a list of " + (least || "")
        + " entries among " + shown(allowed));
      return [...value];
    }
    finish(family, harmless) {
      for (const name in this.inside) this.inside[name].finish(family, harmless.filter((k) =>
        k.startsWith(name + ".")).map((k) => k.slice(name.length + 1)));
      for (const key of Object.keys(this.data)) {
        const value = this.data[key], off = value === null || value === false || value === 0 || value === ""
          || (typeof value === "object" && !Object.keys(value).length);
        if (!this.asked.has(key) && !harmless.includes(key) && !off) throw Error(this.where + ": "
          + key.slice(0, 80) + " is " + shown(value) + ", but a '" + family + "' model has no such key");
      }
    }
  }

  const split = (text, sign) => { const at = text.indexOf(sign); return at < 0 ? [text, ""]
    : [text.slice(0, at), text.slice(at + sign.length)]; };
  const same = (c, names) => {
    const given = names.filter((name) => c.given(name)), taken = given.length ? given : names.slice(0, 1);
    taken.slice(1).forEach((other) => { if (c.whole(other, undefined, true) !== c.whole(taken[0], undefined,
      true)) c.refuse(other, "the same as " + taken[0]); });
    return taken[0];
  };
  const quotient = (c, word) => {
    const [above, below] = word.split("/"), n = c.whole(above), d = c.whole(below);
    if (n % d) c.refuse(below, "a divisor of " + above + ", " + n + ", where head_dim is not given");
    return n / d;
  };
  const factor = (c, word, zero, most) => {
    if (/^\d+$/.test(word)) return +word;
    if (word.includes("/") && !word.includes("=")) return quotient(c, word);
    const [names, other] = split(word, "="), optional = names.endsWith("?"),
      key = same(c, names.replace(/\?$/, "").split("|"));
    if (other === "true" || other === "false") return Number(c.flag(key, other === "true"));
    if (optional) return c.whole(key, null, true, most) || null;
    if (!other) return c.whole(key, undefined, zero, most);
    if (c.given(key)) return c.whole(key, undefined, zero || other === "0", most);
    c.whole(key, null);
    return factor(c, other, zero, most);
  };
  const value = (c, text, zero, most) => {
    if (typeof text !== "string" && typeof text !== "object") return text;
    if (typeof text === "object") {
      const [key, other] = split(text.flag || text.text || text.given, "=");
      const on = text.flag ? c.flag(key, other === "" ? undefined : other === "true") : text.text
        ? c.text(key, other || undefined) === text.is : c.given(key);
      const chosen = on ? text.yes : text.no;
      return chosen === "none" ? null : value(c, chosen, zero);
    }
    let total = 0;
    for (const product of text.split(" + ")) {
      const factors = product.split(" * ").map((word) => factor(c, word, zero, most));
      if (factors.includes(null)) return null;
      total += factors.reduce((a, b) => a * b, 1);
    }
    return total;
  };

  const part = (c, table) => {
    const made = { kind: table.kind };
    for (const field in table) {
      if (field === "kind" || field === "needs") continue;
      const about = D.fields[table.kind][field], text = table[field];
      if (about === "flag" && typeof text === "string" && !text.includes("=")) { made[field] = c.flag(text);
        continue; }
      const found = value(c, text, about === "zero", field === "n_active" ? made.n_experts : undefined);
      made[field] = about === "flag" ? Boolean(found) : found;
      if (about !== "flag" && about !== "optional" && !(found >= (about === "zero" ? 0
        : 1))) throw Error(c.where + ": " + field + " comes to " + shown(found) + ", but must be at least "
        + (about === "zero" ? 0 : 1));
    }
    if (table.kind === "attention" && made.n_heads % made.n_kv_heads) {
      const word = typeof table.n_kv_heads === "object" ? table.n_kv_heads.yes : table.n_kv_heads;
      c.refuse(word.split("=")[0].split("|")[0], "a divisor of " + table.n_heads.split("=")[0].split("|")[0]
        + ", " + made.n_heads);
    }
    return made;
  };
  const used = (c, table) => table.needs === undefined || (c.given(table.needs)
    && Boolean(c.take(table.needs, null)));

  // Which layer is what: a name of a part for each layer.
  const rule = (c, r, n) => {
    const each = (choose) => Array.from({ length: n }, (_, k) => choose(k));
    if ("all" in r) return each(() => r.all);
    if ("list" in r) {
      const names = new Map(Object.entries(r.names).map(([entry, kind]) => [r.numbers ? +entry : entry,
        kind]));
      const more = "more" in r ? value(c, r.more, true) : 0, found = c.listed(r.list, [...names.keys()], n,
        n + more);
      if ("flag" in r) { const [key, other] = split(r.flag, "=");
        if (!c.flag(key, other === "true")) return each(() => r.no); }
      const kinds = found.slice(0, n).map((entry) => names.get(entry));
      if (r.window && kinds.includes(r.window[1]) && !c.whole(r.window[0], null, true)) c.refuse(r.window[0],
        "a number, since " + r.list + " has " + r.window[2]);
      return kinds;
    }
    if ("switch" in r) { const [key, other] = split(r.switch, "="), on = c.flag(key, other === "true");
      return each(() => (on ? r.yes : r.no)); }
    if ("commas" in r) {
      const text = c.text(r.commas), words = text.split(",");
      if (text.length > 8 * D.layers || !words.every((word) =>
        /^\d{1,8}$/.test(word.trim()))) c.refuse(r.commas, "numbers of layers with commas between");
      const chosen = new Set(words.map(Number));
      return each((k) => (chosen.has(k) ? r.is : r.else));
    }
    if ("ones" in r) {
      const first = r.first || 0, every = each((k) => k + first), chosen = c.listed(r.ones, every);
      if (r.others_listed) {
        const both = [...new Set(chosen), ...new Set(c.listed(r.others_listed, every))];
        if (both.length !== n || new Set(both).size !== n) c.refuse(r.ones, "with " + r.others_listed
          + " every layer once");
      }
      return each((k) => (chosen.includes(k + first) ? r.is : r.else));
    }
    if ("step" in r) {
      const step = value(c, r.step), never = r.never && c.given(r.never) ? c.listed(r.never, each((k) => k))
        : [];
      if (r.never) c.take(r.never, null);
      return each((k) => ((k + 1) % step === 0 && !never.includes(k) ? r.is : r.else));
    }
    if ("from" in r) {
      const [key, other] = split(r.from, "="), first = c.whole(key, other ? +other : undefined, true, n),
        every = value(c, r.every || "1");
      return each((k) => (k >= first && k % every === 0 ? r.is : r.else));
    }
    const [key, other] = split(r.flag, "=");
    if (c.flag(key, other === "true")) c.refuse(key, r.must);
    return each(() => r.no);
  };
  const kinds = (c, rules, n) => {
    if (typeof rules === "string") return Array.from({ length: n }, () => rules);
    const applies = (r) => { const key = r.list || r.ones || r.commas; return key !== undefined
      && c.given(key) && !(r.empty && Array.isArray(c.get(key)) && !c.get(key).length); };
    const chosen = rules.find(applies) || rules[rules.length - 1];
    rules.forEach((r) => { if (r !== chosen) ["list", "ones", "commas", "step", "from", "every",
      "never"].forEach((word) => c.take(split(String(r[word] || "model_type"), "=")[0], null)); });
    return rule(c, chosen, n);
  };

  const shape = (c, name) => {
    const f = D.families[name];
    for (const key in f.only || {}) { const [only, why] = f.only[key];
      if (c.take(key, only) !== only) c.refuse(key, JSON.stringify(only) + ": " + why); }
    for (const key in f.stated || {}) if (!own.call(c.data, key)) throw Error(c.where + ": " + key
      + " is missing, but " + f.stated[key] + "; null says there is none");
    for (const key in f.notes || {}) c.take(key, null);
    for (const key in f.equal || {}) { const found = c.whole(key, null, true);
      if (found !== null && found !== value(c, f.equal[key])) c.refuse(key, f.equal[key]); }
    for (const key in f.lists || {}) if (c.given(key)) c.listed(key, f.lists[key]);
    for (const key in f.said_by || {}) { const found = c.whole(key, null); if (found !== null && found !== 1
      && !c.given(f.said_by[key])) c.refuse(key, "1 where " + f.said_by[key]
      + " does not say which layers it means"); }
    for (const key in f.alike || {}) if (c.given(key)
      && String(c.listed(key, [0, 1])) !== String(c.listed(f.alike[key], [0, 1]))) c.refuse(key,
      "the same as " + f.alike[key]);
    (f.numbers || []).forEach((key) => c.whole(key, null, true));
    const n = value(c, f.layers || "num_hidden_layers", false, D.layers), parts = {};
    for (const key in f.parts) if (used(c, f.parts[key])) parts[key] = part(c, f.parts[key]);
    const [mixers, blocks] = ["attention", "feed_forward"].map((what) => kinds(c, f.pattern[what], n));
    const find = (key) => parts[key] || c.refuse(f.parts[key].needs, "given, since a layer is of the kind '"
      + key + "'");
    const groups = new Map();
    mixers.forEach((m, k) => { const key = m + "|" + blocks[k]; if (!groups.has(key)) groups.set(key,
      { count: 0, attention: find(m), block: find(blocks[k]) }); groups.get(key).count += 1; });
    const drafts = f.drafts ? value(c, f.drafts.count, true) : 0;
    if (drafts) value(c, f.drafts.weights);
    if (f.positions) value(c, f.positions);
    ["max_position_embeddings", "n_positions", "max_seq_len", "model_max_length"].filter((key) =>
      c.given(key)).slice(0, 1).forEach((key) => c.whole(key));
    if (f.norms) value(c, f.norms);
    return { d_model: value(c, f.width || "hidden_size"), vocab_size: c.whole("vocab_size"),
      tied: c.flag("tie_word_embeddings", Boolean(f.tied)), groups: [...groups.values()] };
  };
  const headed = (c, names) => {
    if (names == null) return;
    const name = Array.isArray(names) && names.length === 1 && typeof names[0] === "string" ? names[0] : "";
    if (!/(ForCausalLM|ForConditionalGeneration|LMHeadModel)$/.test(name)) throw Error("config.json: " +
      "architectures is " + shown(names)
      + ", but this page knows models with a head over the vocabulary only");
  };
  const read = (c, inherited, heads) => {
    let family = c.text("model_type", inherited);
    if (D.refused[family]) throw Error("a '" + family + "' model: " + D.refused[family]);
    if (!own.call(D.families, family)) throw Error("no family of models '" + family.slice(0, 60)
      + "' is declared");
    const names = heads != null ? heads : c.take("architectures", null);
    c.take("quantization_config", null);
    if (D.families[family].flat && !own.call(c.data, D.families[family].inside)) family =
      D.families[family].holds[0];
    const about = D.families[family], harmless = [...D.harmless, ...(about.harmless || [])];
    if (!about.inside) {
      const found = shape(c, family);
      c.finish(family, harmless);
      headed(c, names);
      return found;
    }
    for (const key in about.notes || {}) c.take(key, null);
    const inside = c.take(about.inside, NEEDED);
    if (!is(inside, "object")) c.refuse(about.inside, "an object of keys and values");
    let text = new Keys(inside, c.where + ": " + about.inside);
    const kind = own.call(inside, "model_type") ? inside.model_type : about.holds[0];
    if (!about.holds.includes(kind)) text.refuse("model_type", about.holds.join(" or ")
      + ", the language model of a " + family);
    if (own.call(c.data, "tie_word_embeddings") && !own.call(inside, "tie_word_embeddings")) text =
      new Keys({ ...inside, tie_word_embeddings: c.data.tie_word_embeddings }, text.where);
    const found = read(text, kind, names);
    if (c.flag("tie_word_embeddings", found.tied) !== found.tied) c.refuse("tie_word_embeddings",
      "the same as in text_config");
    c.finish(family, harmless);
    return found;
  };

  // A part's place among the kinds that have functions, and its numbers in their order.
  const NOT = "its attention or its experts are of a kind that this page does not know";
  const placed = (part) => {
    const full = { ...part, ...(part.kind in { dense: 1, experts: 1 } ? {} : { value_dim: part.value_dim
      || part.head_dim }) };
    for (const name in D.defaults) if (full[name] == null) full[name] = D.defaults[name];
    if (part.kind === "attention") Object.assign(full, { chunked: part.chunked && part.window != null,
      window: part.window || D.no_window });
    const more = (kind) => Object.keys(part).filter((name) => name !== "kind" && full[name]
      && !kind.names.includes(name) && !D.vectors.includes(name));
    const fits = (kind) => kind.of === part.kind && kind.names.every((name) => full[name] != null)
      && String(more(kind)) === String(kind.flags);
    const k = D.kinds.findIndex(fits);
    if (k < 0 || part.same_value) throw Error(NOT);
    return [k, ...D.kinds[k].names.map((name) => full[name])];
  };
  const place = ({ d_model, vocab_size, tied, groups }) =>
    ({ d_model, vocab_size, tied, layers: groups.map((g) => [g.count, placed(g.attention),
      placed(g.block)]) });

  // The format of a checkpoint's weights, and whether its attention stays at 16 bits; null where it is not
  // understood.
  const METHODS = { fp8: "fp8", fbgemm_fp8: "fp8", mxfp4: "mxfp4", FP8: "fp8", NVFP4: "fp4",
    FP8_PB_WO: "fp8" };
  const stored = (section) => {
    if (section == null) return { weights: "bf16", wide: false };
    const { quant_method, bits, quant_algo, config_groups: groups } = section;
    const own = Object.prototype.hasOwnProperty.call(METHODS, quant_algo || quant_method)
      ? METHODS[quant_algo || quant_method] : null;
    const packed = ["awq", "gptq"].includes(quant_method) && bits === 4 ? "int4" : null,
      all = Object.values(groups || {});
    const each = new Set(all.map((group) => ((group && group.weights) || {})).map((w) => w.type
      + w.num_bits));
    const grouped = each.size === 1 ? { float8: "fp8", float4: "fp4", int4: "int4",
      int8: "int8" }[[...each][0]] || null : null;
    const left = [].concat(section.modules_to_not_convert || [], section.exclude_modules || [],
      section.ignore || []);
    return { weights: own || packed || grouped, wide: left.some((name) =>
      /\*?\.?self_attn\*?$/.test(String(name))) };
  };

  return (text) => {
    if (text.length > 4e6) throw Error("config.json has more than 4 million letters");
    let data;
    try { data = JSON.parse(text); } catch (error) { throw Error("This is not the JSON of a config.json: "
      + error.message); }
    if (!is(data, "object")) throw Error("config.json is " + shown(data)
      + ", but must be an object of keys and values");
    return { ...place(read(new Keys(data, "config.json"), undefined, null)),
      ...stored(data.quantization_config) };
  };
};
