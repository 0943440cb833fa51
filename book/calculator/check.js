// A launch command is a question, and a benchmark its measurement: the twin of tokenprice.launch,
// benchmark and diagnosis, with their tables. What it does not read it refuses by name.
globalThis.inferlibCheck = function (D, A) {
  "use strict";
  const { launch: L, benchmark: B, causes, limits, engines: ENGINES, software, spelled } = D.check;
  const has = (object, name) => Object.prototype.hasOwnProperty.call(object, name);
  const refuse = (text) => { throw Object.assign(new Error(text), { refused: true }); };
  const quoted = (text) => {
    const said = `'${text}'`;
    return said.length <= 120 ? said : `${said.slice(0, 100)}... (${said.length} characters)`;
  };
  const listed = (text) => (text || "").split(/\s+/).filter(Boolean);
  const without = (object, names) => Object.fromEntries(Object.entries(object).filter(([name, one]) =>
    one != null && !names.includes(name)));
  const some = (object, names) => Object.fromEntries(names.filter((name) => name in object).map((name) =>
    [name, object[name]]));
  const number = (name, kind, text) => {
    const v = A.read(kind, text), bare = +text;
    if (!Number.isNaN(v)) return v;
    if (D.check.times.includes(kind) && bare > 0)
      refuse(`${name} is ${bare} s: did you mean '${bare} ms', or '${bare} tokens/s'?`);
    return refuse(bare === Infinity ? `${name} is inf, but must be positive and finite`
      : `${name} is ${quoted(text)}, but must be ${{ "--share": "like 0.4 or 40%", "--rate":
        "like 2.5/s or 150/min or 9000/day" }[kind]
        || (D.check.times.includes(kind) ? "like '500 ms'" : "a number")}`);
  };

  // --- Flags -----------------------------------------------------------------------------------------------
  const known = Object.fromEntries(Object.keys(L.rows).map((kind) => {
    const rows = new Map(L.rows[kind].flatMap((row) => listed(row.names).map((name) => [name, row])));
    listed(L.idle[kind]).forEach((name) => rows.set(name, { switch: false }));
    listed(L.idle_switches[kind]).forEach((name) => rows.set(name, { switch: true }));
    return [kind, rows];
  }));
  const plain = (name) => name.replace(/^-+/, "").replace(/_/g, "-");
  const rowOf = (kind, flag) => {
    const rows = known[kind], name = plain(flag), holder = rows.get(name.split(".")[0]);
    if (rows.has(name)) return rows.get(name);
    return holder ? some(holder, ["beyond"]) : rows.get(name.slice(name.lastIndexOf(".") + 1));
  };
  // Letters that two words share in order, as difflib counts them.
  const shared = (a, b) => {
    let [most, at, to] = [0, 0, 0];
    for (let i = 0; i < a.length; i++) for (let j = 0; j < b.length; j++) {
      let k = 0;
      while (i + k < a.length && j + k < b.length && a[i + k] === b[j + k]) k++;
      if (k > most) [most, at, to] = [k, i, j];
    }
    return most && most + shared(a.slice(0, at), b.slice(0, to))
      + shared(a.slice(at + most), b.slice(to + most));
  };
  const unknown = (flag, engine) => {
    const name = plain(flag), rows = [...known[engine]], others = Object.keys(ENGINES).filter((kind) =>
      known[kind].has(name));
    const meant = new Set(others.map((kind) => known[kind].get(name).says).filter(Boolean));
    const memory = ["memory_utilization", "static"];
    if (memory.some((one) => meant.has(one))) memory.forEach((one) => meant.add(one));
    const same = rows.find(([, row]) => meant.has(row.says));
    const like = rows.map(([near]) => [2 * shared(near, name) / (near.length + name.length), near])
      .filter(([part]) => part >= 0.6).sort((a, b) => b[0] - a[0] || (a[1] < b[1] ? 1 : -1)).slice(0, 3)
      .map(([, near]) => `--${near}`).join(", ");
    const hint = same ? `; ${ENGINES[engine]} calls it --${same[0]}` : like && `; did you mean ${like}?`;
    return `no flag ${flag} of ${ENGINES[engine] || "a benchmark"}`
      + (others.length ? ` (a flag of ${ENGINES[others[0]]})` : "") + hint;
  };
  const format = (flag, text) => {
    const said = text.trim().toLowerCase().replace(/-/g, "").replace(/^(fp\d)_.*/, "$1");
    const name = has(spelled, said) ? spelled[said] : said;
    return has(D.formats.each, name) ? name : refuse(`no format of ${flag} ${quoted(text)}`);
  };
  const truth = (flag, text) => {
    const at = ["yes", "true", "1", "no", "false", "0"].indexOf(text.toLowerCase());
    return at < 0 ? refuse(`no ${flag} ${quoted(text)}`) : at < 3;
  };
  const asJson = (flag, text) => {
    let found = {};
    try { found = JSON.parse(/^\s*\{/.test(text) ? text : "{}"); } catch (e) { found = {}; }
    if (!/^\s*\{/.test(text))
      for (const [, name, value] of text.matchAll(/(\w+)\s*=\s*([^,\s]+)/g)) found[name] = value;
    return Object.keys(found).length ? found
      : refuse(`${flag} is ${quoted(text)}, but must be JSON between braces`);
  };
  const take = (found, flag, given, kind = found.engine) => {
    const row = rowOf(kind, flag), text = String(given), set = (name, value) => { found.said[name] = value; };
    const value = row && row.parts && typeof given === "string" ? asJson(flag, given) : given;
    if (value && typeof value === "object" && !Array.isArray(value))
      Object.entries(value).forEach(([key, one]) => take(found, `${flag}.${key}`, one, kind));
    else if (!row) refuse(unknown(flag, kind));
    else if (value == null || (value === false && row.switch)
      || listed(row.none).includes(text.toLowerCase())) return;
    else if (row.says === "file") {
      if (!has(found.files, text)) found.beyond[flag] = `the content of ${text} is not given`;
      else settings(found.files[text]).forEach(([name, one]) => take(found, name, one));
    } else if (row.says) {
      set(row.says, !row.as ? value : row.as === "truth" ? truth(flag, text) : row.as === "format"
        ? format(flag, text) : number(flag, `--${row.as}`, text));
    } else if (row.beyond) found.beyond[flag] = row.beyond;
    else found.idle.push(flag);
  };
  // Settings of a recipe by their paths: names, each with a word or with settings below it.
  const settings = (text) => {
    const found = [], at = [];
    for (const line of text.split("\n").map((one) => one.replace(/(^|\s)#.*$/, "").trimEnd())) {
      if (!line || line === "---") continue;
      const [, deep, name, said] = /^( *)([\w.-]+):(?: +([^[{&*|>!%@`-].*|-[\w.].*))?$/.exec(line)
        || refuse(`this page reads no such line of a recipe: ${quoted(line.trim())}`);
      while (at.length && at[at.length - 1][0] >= deep.length) at.pop();
      at.push([deep.length, name]);
      const bare = said && said.replace(/^(["'])(.*)\1$/, "$2"), words = { true: true, false: false,
        null: null };
      if (said) found.push([at.map((one) => one[1]).join("."), has(words, said) ? words[said] : bare]);
    }
    return found;
  };

  // --- Commands --------------------------------------------------------------------------------------------
  const words = (line) => {
    const found = [];
    let word = null, quote = "";
    const end = () => { if (word !== null) found.push(word); word = null; };
    for (let k = 0; k < line.length; k++) {
      const c = line[k], add = (text) => { word = (word || "") + text; };
      if (quote) {
        if (c === quote) quote = "";
        else if (c === "\\" && quote === '"' && /["\\]/.test(line[k + 1] || "")) add(line[++k]);
        else add(c);
      } else if (c === '"' || c === "'") { quote = c; add(""); }
      else if (c === "\\") add(line[++k] || refuse("No escaped character"));
      else if (c === "#") break;
      else if (/\s/.test(c)) end();
      else if (/[;&|]/.test(c)) { end(); found.push(c); }
      else add(c);
    }
    if (quote) refuse(`a quote is not closed in ${quoted(line.trim())}`);
    end();
    return found;
  };
  // Of every command: engine or benchmark, the words that began it, those after it, and its variables.
  const commands = (text) => {
    const env = {}, found = [];
    for (const line of text.replace(/[ \t]*[\\^`][ \t]*\r?\n/g, " ").split(/\r?\n/)) {
      const said = line.replace(/^\s*(?:\$|>|root@\S+[#$])\s+|(?<=\s)\d?&?>>?\s*(?:&\d|\S+)/g, "")
        .replace(/\$\{(\w+)(?::-([^}]*))?\}|\$(\w+)/g, (all, name, or, bare) =>
          (has(env, name || bare) ? env[name || bare] : or || all));
      let part = [];
      for (const token of [...words(said), ";"]) {
        if (!/^[;&|]+$/.test(token)) { part.push(token); continue; }
        for (const word of part) {
          const [, name, value] = /^([A-Za-z_]\w*)=([^]*)$/.exec(word) || [];
          if (name) env[name] = value;
        }
        let best = null;
        for (const kind in L.starts) for (const n of [1, 2, 3]) for (let k = 0; k + n <= part.length; k++) {
          const begun = part.slice(k, k + n).join(" ");
          const one = { end: k + n, kind, begun }, same = best && one.end === best.end;
          const later = !best || one.end > best.end || (same && kind + begun > best.kind + best.begun);
          if (later && RegExp(`^(?:${L.starts[kind]})$`).test(begun)) best = one;
        }
        if (best) found.push({ ...best, tokens: part.slice(best.end), env: { ...env } });
        part = [];
      }
    }
    return found;
  };
  const FLAG = /^--?[A-Za-z]/;
  const pairs = (kind, tokens) => {
    const found = [], left = tokens.slice();
    while (left.length) {
      const token = left.shift();
      if (!FLAG.test(token)) { found.push([null, token]); continue; }
      const [, name, sign, value] = /^([^=]*)(=?)([^]*)$/.exec(token.replace(/^-O(?=\d$)/, "-O="));
      const row = rowOf(kind, name) || refuse(unknown(name, kind));
      const values = sign ? [value] : [], says = row.says || row.parts;
      while (!sign && left.length && !FLAG.test(left[0]) && !(says && values.length)) {
        if (row.switch && !/^(true|false)$/i.test(left[0])) break;
        values.push(left.shift());
      }
      if (says && !values.length && !row.switch) refuse(`${name} has no value`);
      found.push([name, values.length ? values.join(" ") : true]);
    }
    return found;
  };
  const opened = (engine) => ({ engine, version: "", tool: "", said: {}, files: {}, idle: [], beyond: {} });
  const isLaunch = (text) => /\n|\s--?[A-Za-z]|^vllm serve|^sglang serve|^trtllm-serve/.test(text.trim());
  const recipe = (text) => {
    const all = settings(text), lost = (kind) => all.filter(([name]) => !rowOf(kind, name)).length;
    const found = opened(Object.keys(ENGINES).reduce((a, b) => (lost(b) < lost(a) ? b : a)));
    all.forEach(([name, value]) => take(found, name, value));
    return "model" in found.said ? found : refuse("the recipe names no model");
  };
  const read = (text) => {
    const said = text.trim(), found = opened("");
    if (/^(\s*(#.*)?\n|---\n)*\s*[\w.-]+\s*:(\s|$)/.test(said)) return recipe(said);
    const HERE = /^[^\n]*<<-?\s*['"]?(\w+)['"]?[^\n]*\n([^]*?)\n\s*\1[ \t]*$/gm;
    const bare = said.replace(HERE, (here, _, inside) => {
      const [, name] = />>?\s*(\S+)/.exec(here.split("\n")[0]) || [];
      if (name) found.files[name.replace(/^['"]+|['"]+$/g, "")] = inside;
      return "";
    });
    const all = commands(bare), served = all.filter(({ kind }) => kind in ENGINES);
    if (!served.length)
      refuse(`${quoted(said.split("\n")[0])} is no launch command: give ${D.check.commands}`);
    if (served.length > 1) refuse(`${served.length} launch commands (${served.map(({ kind }) =>
      ENGINES[kind]).join(", ")}): give one`);
    if (all.length > 2) refuse("two benchmark commands: give one");
    for (const { kind, begun, tokens, env } of all.sort((a, b) => (a.kind === "benchmark")
      - (b.kind === "benchmark"))) {
      const own = kind in ENGINES;
      if (own) {
        const at = RegExp(D.check.version).exec(said);
        found.engine = kind;
        found.version = at ? at[1].replace(/^\.+|\.+$/g, "") : env.VLLM_USE_V1 === "0" ? "0.7" : "";
      } else found.tool = begun;
      for (const [flag, value] of pairs(kind, tokens)) {
        if (flag !== null) take(found, flag, value, kind);
        else if (own && !("model" in found.said)) found.said.model = value;
        else if (own) refuse(`${quoted(value)} belongs to no flag of the launch command`);
      }
    }
    return "model" in found.said ? found : refuse("the launch command names no model");
  };

  // --- The question ----------------------------------------------------------------------------------------
  const REQUESTS = ["max_num_seqs", "max_num_batched_tokens", "dp_balance", "batching_wait_iters"];
  const TOTALS = REQUESTS.slice(0, 2); // which SGLang divides by copies of the attention
  const named = (name) => {
    const found = A.known("model", name);
    return has(D.models, found) && found;
  };
  const modelOf = ({ model: name, served = "" }) => {
    const own = name.replace(/.*models--([^/]+)--([^/]+).*/, "$1/$2");
    const path = /^[./~]/.test(name) || name.split("/").length > 2;
    const tried = path ? [name, name.replace(/\/$/, "").split("/").pop(), served.split(" ")[0], own] : [name];
    const model = tried.map(named).find(Boolean);
    if (model) return { model };
    // stored in the format that the last words of a name say
    for (const one of tried) for (const [end, checkpoint] of Object.entries(D.check.endings)) {
      const plain = one.toLowerCase().replace(/[\s_]+/g, "-"), base = plain.endsWith(`-${end}`)
        && named(one.slice(0, -end.length - 1));
      if (base && !D.check.mixed.includes(base)) return { model: base, weights: checkpoint, checkpoint };
    }
    const end = name.split("/").pop().toLowerCase(), near = Object.keys(D.models).find((one) =>
      one.toLowerCase().includes(end));
    return refuse(`this page has no model ${quoted(name)}${near ? `, but ${near}` : ""}`);
  };
  const engineOf = (text) => {
    if (has(D.engines, text)) return text;
    const [, kind] = software.find(([pattern]) => RegExp(pattern).test(text)) || refuse(`no engine ${text}`);
    return text.startsWith("sglang") ? "sglang" : kind;
  };
  const layoutOf = ({ engine, said, beyond, idle }, S) => {
    let { tp = 1, pp = 1, dp = 1, ep = 1 } = said;
    if (!("model" in said) && !("tp" in said)) tp = Math.max(Math.floor(S.n_chips / (pp * dp)), 1);
    let count = tp * pp * dp, copies = engine === "vllm" ? dp : 1;
    if (engine !== "vllm" && "attention_dp" in said) {
      copies = engine === "sglang" ? dp : tp;
      if (tp % copies) refuse(`attention in ${copies} copies does not divide ${tp} chips`);
      if (copies === 1) idle.push("attention in copies, whose number is 1");
      [dp, count] = [copies, tp * pp];
      tp /= copies;
    }
    const chips = count / pp, sparse = A.sparse(S);
    if (said.spread || said.experts) ep = chips;
    else if (sparse && copies > 1 && ep === 1) {
      ep = chips;
      beyond[`every expert cut over ${chips} chips`] = `whole experts are spread over them, EP${chips}`;
    }
    return [{ tp, pp, dp, ep: sparse ? Math.min(ep, chips) : 1 }, count];
  };
  // The part of the memory that an engine takes beside weights and cache.
  const workspace = (S, layout) => A.workspace(S, A.model(S), A.chips[S.chip], layout)
    / A.chips[S.chip].values.chip_memory_capacity;
  const draftsOf = ({ said }, given, notes) => {
    if (!Object.keys(said).some((name) => name.startsWith("draft_"))) return {};
    let tokens = said.draft_tokens ?? said.draft_steps, method = (said.draft_method || "").toLowerCase();
    if (said.draft_branches > 1) tokens = (said.draft_verified ?? 1) - 1;
    if (given.acceptance_length != null && tokens) return { draft_tokens: tokens };
    if (method === "eagle" && !/eagle/i.test(said.draft_model)) method = "mtp"; // the model's own head
    const curve = L.drafts[Object.keys(L.drafts).find((word) => method.includes(word))];
    const length = tokens && (D.accepted[curve] || [])[tokens - 1];
    if (!length) {
      notes.push(`Not described: drafts (${tokens ? "how many are accepted depends on the text: give "
        + "acceptance_length" : "the number of tokens is not given"}).`);
      return {};
    }
    notes.push(`${length} tokens a step are taken from ${curve}: give acceptance_length, as `
      + "the engine's log says.");
    return { draft_tokens: tokens, acceptance_length: curve };
  };
  // Lengths, users or arrivals, and the protocol of the benchmark, with its tool's own defaults.
  const loadOf = (launch, given) => {
    const tool = L.tools[Object.keys(L.tools).find((name) => launch.tool.includes(name))] || {};
    const said = { ...without(tool, Object.keys(given)), ...launch.said };
    const lengths = ["prompt_tokens", "output_tokens"], found = some(said, lengths);
    let { request_rate: rate, concurrency: users, requests } = said;
    if ("pace" in said) {
      const pace = number("--rate", "--rate", String(said.pace).replace(/[[\]]/g, ""));
      [rate, users] = /concurren/.test(said.pattern || "concurrent") ? [null, pace] : [pace, users];
    }
    const sglang = launch.tool.includes("sglang"), ratio = said.ratio ?? (sglang ? 1 : 0);
    const [low, high] = sglang ? [ratio, 1] : [1 - ratio, 1 + ratio];
    if (low < high) for (const name in found)
      found[name] = `${A.even(Math.max(found[name] * low, 1))}-${A.even(found[name] * high)}`;
    if ("prefix" in said && typeof found.prompt_tokens === "number")
      Object.assign(found, { prompt_tokens: found.prompt_tokens + said.prefix, shared_prefix: said.prefix });
    if (rate || "request_rate" in given) {
      if (users) launch.beyond["--max-concurrency"] = "requests come at a rate";
      return rate ? { ...found, request_rate: rate } : found;
    }
    users = users || given.concurrency || requests || 1;
    if (requests) found.requests_per_user = Math.max(requests / users, 1);
    if (requests || "concurrency" in said || "pace" in said) found.concurrency = users;
    return low === high && launch.tool ? { ...found, fixed_lengths: true } : found;
  };
  // The fields of a launch command on a machine, and sentences; what is given wins.
  const given = (text, machine, own) => {
    if (!isLaunch(text)) return [{ ...modelOf({ model: text.trim() }), ...machine, ...own }, []];
    const launch = read(text), { said, engine } = launch, notes = [];
    const model = modelOf(said), S = { ...model, own: null, ...machine };
    const found = { ...model, ...some(said, ["kv_cache_dtype"]), ...loadOf(launch, own) };
    const reads = { memory_utilization: "memory_utilization", max_num_seqs: "--count",
      max_num_batched_tokens: "--tokens" };
    for (const name in reads) if (name in said) found[name] = number(name, reads[name], String(said[name]));
    if (engine === "sglang" && "attention_dp" in said)
      for (const name of TOTALS) if (found[name]) found[name] = Math.floor(found[name] / (said.dp || 1));
    const left = REQUESTS.slice(2).find((name) => name in said);
    if (left) refuse(`${left} is not asked here: ${D.check.left_out[left]}`);
    let dtype = "checkpoint";
    if ("quantization" in said) {
      const name = String(said.quantization).toLowerCase();
      dtype = has(L.quantization, name) ? L.quantization[name]
        : refuse(`no format of --quantization ${quoted(name)}`);
    }
    if (dtype === "checkpoint") dtype = said.dtype;
    if (dtype && !found.weights && A.model(S).formats[0] === "bf16") found.weights = dtype;
    const eager = said.eager || String(said.level) === "0" || said.graphs === "NONE";
    found.engine = eager ? "eager" : engineOf(`${engine} ${launch.version}`.trim());
    const [at, count] = layoutOf(launch, S), box = A.ofChip(S.n_chips, S.chip);
    if (count > S.n_chips && S.n_chips > 1) refuse(`machine is ${box}, but the command takes ${count} chips`);
    if (count < S.n_chips) notes.push(`The command takes ${count} of ${S.n_chips} chips.`);
    Object.assign(found, { layout: A.words(at), chip: S.chip, n_chips: count });
    if (said.boxes > 1) found.domain = Math.max(Math.floor(count / said.boxes), 1);
    if ("static" in said)
      found.memory_utilization = Math.min(said.static + workspace({ ...found, engine }, at), 1);
    Object.assign(found, draftsOf(launch, own, notes));
    const asked = { ...found, ...own }, { prompt_tokens: prompt, output_tokens: output = 0 } = asked;
    if (said.longest && typeof prompt === "number" && prompt + output > said.longest) {
      const [whole, most] = [prompt + output, said.longest].map((n) => A.even(n).toLocaleString("en-US"));
      refuse(`prompt and output are ${whole} tokens, but the command allows ${most}`);
    }
    for (const flag in launch.beyond) notes.push(`Not described: ${flag} (${launch.beyond[flag]}).`);
    if (launch.idle.length) notes.push(`Without effect: ${[...new Set(launch.idle)].join(", ")}.`);
    return [prompt == null ? without(asked, REQUESTS) : asked, notes];
  };

  // --- The benchmark ---------------------------------------------------------------------------------------
  const letters = (label) => (label.toLowerCase().match(/[a-z0-9]+/g) || []).join(" ");
  const flat = (tree, at = "") => {
    const nested = tree && typeof tree === "object" && (!Array.isArray(tree) || tree.some((one) => one
      && typeof one === "object"));
    return !nested ? [[at, tree]] : Object.entries(tree).flatMap(([key, one]) =>
      flat(one, at ? `${at}.${key}` : key));
  };
  const ofJson = (text) => {
    const parse = (one) => { try { return JSON.parse(one); } catch (e) { return undefined; } };
    let tree = parse(text);
    if (tree === undefined) {
      tree = text.split("\n").filter((line) => line.trim()).map(parse);
      if (tree.includes(undefined)) refuse("the JSON is cut or broken");
    }
    const all = [(!Array.isArray(tree) && tree && tree.benchmarks) || tree].flat();
    if (all.length !== 1) refuse(`${all.length} benchmarks in one file: give one`);
    if (!all[0] || typeof all[0] !== "object")
      refuse("the JSON holds no benchmark: an object of names and numbers was expected");
    return flat(all[0]).filter(([, v]) => typeof v !== "boolean" && !Array.isArray(v))
      .map(([name, v]) => [name, String(v)]);
  };
  const ofGuide = (text) => {
    const rows = text.split("\n").filter((line) => line.includes("|")).map((line) =>
      line.trim().replace(/^\|+|\|+$/g, "").split("|").map((cell) => cell.trim()));
    const at = rows.findIndex((row) => row.includes("Out Tok/sec")), more = rows.length - at - 2;
    if (more < 1) refuse("the printout is cut: GuideLLM's table has a heading and no row");
    if (more > 1) refuse(`${more} benchmarks in one table: give one row of it`);
    let group = "";
    return rows[at].slice(0, Math.min(rows[at + 1].length, rows[at + 2].length)).map((heading, k) => {
      group = heading || group;
      return [`${rows[at + 1][k]} ${group}`, rows[at + 2][k]];
    });
  };
  const ofPrintout = (text, starts) => {
    const lines = text.split("\n").map((line) => line.trim());
    for (const start of starts) {
      const begun = lines.findIndex((line) => letters(line).includes(start));
      if (!lines.slice(begun + 2).some((line) => RegExp(B.starts[start]).test(line)))
        refuse("the printout is cut: the line that ends it is missing after "
          + `'${lines[lines.length - 1].slice(0, 60)}'`);
    }
    const found = [];
    for (const line of lines) {
      const cells = line.replace(/^[|│┃]+|[|│┃]+$/g, "").split(/[│┃|]/), at = line.lastIndexOf(":");
      // a label that did not fit on the line above
      if (found.length && cells.length > 1 && !cells[1].trim()) found[found.length - 1][0] += " " + cells[0];
      else found.push(cells.length > 1 ? cells : [line.slice(0, Math.max(at, 0)), line.slice(at + 1)]);
    }
    return found;
  };
  const LENGTHS = ["prompt_tokens", "output_tokens"];
  const ofWords = (text) => text.split(/[;\n]|,(?=\s)|\b(?:and|at|for)\b/)
    .map((part) => part.trim().replace(/\.+$/, "")).filter(Boolean).map((part) => {
      for (const [label, [name, read]] of Object.entries(B.words)) {
        const ahead = name === "output_rate" ? "(?:output )?" : "";
        const of = `^(?:(?:mean |median |average )?(?:${label})\\s*[:=@]?\\s*(?<after>\\d.*)`
          + `|${ahead}(?:throughput )?(?<before>\\d.*?)\\s*(?:${label}))$`;
        const found = RegExp(of, "i").exec(part);
        if (!found) continue;
        const plain = found.groups.after || found.groups.before;
        const said = read === "parse_seconds" ? plain : plain.replace(/(\d),(?=\d{3})/g, "$1");
        const mixed = LENGTHS.includes(name)
          && Number.isNaN(A.read(name, said)) && A.lengths(name, said).every(Number.isFinite);
        return [name, mixed ? said : number(name, name, said)];
      }
      return refuse(`${quoted(part)} is not understood: ${D.check.such}`);
    });
  const counted = (all) => {
    const found = {}, said = {};
    for (const [label, value] of all) {
      const name = letters(label).split(" "), number = /^-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?/.exec(value.trim());
      const ends = [0, 1, 2, 3].filter((k) => !k || name[k] === "metrics").map((k) =>
        name.slice(k).join(" "));
      const row = B.labels[ends.find((end) => has(B.labels, end))];
      if (!row || !number) continue;
      const [what, statistic, by] = row, v = +number[0].replace(/,/g, "") * by, key = `${what} ${statistic}`;
      if (has(said, key) && found[what][statistic] !== v)
        refuse(`two benchmarks in one: '${label.trim()}' is ${said[key]} and ${value.trim()}`);
      (found[what] ||= {})[statistic] = v;
      said[key] = value.trim();
    }
    return found;
  };
  const cacheOf = (all) => {
    const engine = opened("trtllm");
    for (const [label, value] of all)
      if (letters(label).endsWith("kv cache dtype")) take(engine, "kv-cache-dtype", value.trim());
    return engine.said;
  };
  const benchmark = (text) => {
    const said = text.trim(), starts = Object.keys(B.starts).filter((start) => letters(said).includes(start));
    const lines = () => said.split("\n").filter((line) => has(B.labels, letters(line.slice(0,
      Math.max(line.lastIndexOf(":"), 0))))).length;
    if (!said) refuse(`the benchmark is empty: give a printout, JSON, or ${D.check.such.slice(5)}`);
    let found, n, load;
    const all = /^[{[]/.test(said) ? ofJson(said) : said.includes("Out Tok/sec") ? ofGuide(said)
      : starts.length || lines() > 2 ? ofPrintout(said, starts) : null;
    if (all) {
      found = counted(all);
      n = Object.fromEntries(Object.entries(found).map(([name, by]) => [name, by.mean ?? by.median]));
      load = { ...loaded(n), ...cacheOf(all) };
    } else {
      n = {};
      for (const [name, v] of ofWords(said))
        if ((n[name] ??= v) !== v) refuse(`${name} is given twice: ${n[name]} and ${v}`);
      found = Object.fromEntries(Object.entries(n).map(([name, v]) => [name, { mean: v }]));
      load = some(n, B.load);
    }
    if ("itl" in found) found.tpot ||= found.itl;
    const measured = {}, statistics = {};
    for (const name in B.measured) {
      const by = found[name] || {}, v = by.mean ?? by.median;
      if (v > 0) [measured[name], statistics[name]] = [v, "mean" in by ? "mean" : "median"];
    }
    if (!Object.keys(measured).length) refuse("the benchmark holds no number that is compared: a time "
      + "between tokens, to the first token, or tokens/s");
    return { measured, load, statistics };
  };
  // The load that numbers of a printout say: lengths in the mean, users, how often each asked.
  const loaded = (n) => {
    const load = some(n, B.load.filter((name) => n[name] > 0)), { completed: done } = n;
    for (const [name, tokens] of [["prompt_tokens", "total_input"], ["output_tokens", "total_output"]])
      if (done && n[tokens]) load[name] ??= n[tokens] / done;
    if (load.acceptance_length <= 1) delete load.acceptance_length;
    if (done && !("request_rate" in load)) {
      load.concurrency = Math.min(load.concurrency ?? done, done);
      load.requests_per_user ??= Math.max(done / load.concurrency, 1);
    }
    const open = !done && !("concurrency" in load) && !("request_rate" in load);
    if (open && "requests" in n && "e2e" in n) load.concurrency = Math.max(A.even(n.requests * n.e2e), 1);
    if (Number.isInteger(load.output_tokens)) load.fixed_lengths = true;
    return load;
  };
  const begins = (text) => text.search(RegExp("^[ \\t]*(=+ ?Serving Benchmark Result|=+\\s*\\n= ?(ENGINE"
    + "|PYTORCH|PERFORMANCE|REQUEST)|.*GenAI-Perf|.*AIPerf|\\{)", "m"));

  // --- The diagnosis ---------------------------------------------------------------------------------------
  const LOOP = ["concurrency", "requests_per_user"];
  const STEP = ["batch", "context"];
  // The users of a closed loop by Little's law, from the rate and the time of an answer; 0 if not given.
  const users = (measured, output) => {
    const { tpot = 0, ttft = 0, output_rate = 0 } = measured, { requests } = measured;
    const whole = output && tpot ? ttft + (output - 1) * tpot : tpot;
    return (requests || output_rate / Math.max(output, 1)) * (measured.e2e ?? whole);
  };
  const mean = (tokens = 0) => {
    const all = typeof tokens === "string" ? A.lengths("output_tokens", tokens) : [tokens];
    return all.reduce((sum, one) => sum + one, 0) / all.length;
  };
  const asked = (text, printed, machine, options) => {
    const begun = printed.trim() ? -1 : begins(text), measured = begun < 0 ? printed : text.slice(begun);
    const command = begun < 0 ? text : text.slice(0, begun);
    if (!measured.trim()) refuse(`the benchmark is missing: ${D.check.such}`);
    const seen = benchmark(measured), drafts = some(seen.load, ["acceptance_length"]);
    const own = { ...drafts, ...options };
    let [said, notes] = given(command, machine, own);
    if (said.prompt_tokens == null && "prompt_tokens" in seen.load)
      [said, notes] = given(command, machine, { ...own, ...some(seen.load, LENGTHS) });
    if (!said.draft_tokens && !("acceptance_length" in options)) said = without(said, ["acceptance_length"]);
    let load = without(seen.load, ["acceptance_length"]);
    if ("request_rate" in load || "request_rate" in said) {
      load = { ...without(load, LOOP), replicas: 1 };
      said = without(said, LOOP.filter((name) => !(name in options)));
    }
    if (typeof said.output_tokens === "string") load = without(load, ["fixed_lengths"]);
    said = { ...load, ...said };
    if ("kv_cache_dtype" in said && !has(D.formats.cache, said.kv_cache_dtype))
      refuse(`this page has no KV cache in ${said.kv_cache_dtype}`);
    if (said.concurrency) said.concurrency = Math.max(A.even(said.concurrency), 1);
    if (!["concurrency", "request_rate", "batch"].some((name) => name in said)) {
      const inferred = users(seen.measured, mean(said.output_tokens));
      said.concurrency = Math.max(A.even(inferred), 1);
      const counted = said.concurrency.toLocaleString("en-US");
      const how = inferred ? `${counted} by Little's law, from rate and times` : "one is assumed";
      notes.push(`Users are not given: ${how}.`);
    }
    const step = said.prompt_tokens == null || said.output_tokens == null;
    if (step && !("context" in said))
      notes.push("Prompt and output are not given: a step at 4,096 tokens is compared.");
    if (step) said = without({ batch: said.concurrency || 1, context: 4096, ...said },
      [...LOOP, "fixed_lengths", ...REQUESTS, ...LENGTHS, "replicas"]);
    else if (STEP.some((name) => name in said)) refuse("batch and context belong to a step");
    const none = Object.fromEntries(D.form.fields.map((name) => [name, null]));
    const S = { ...none, own: null, mix: null, prices: {}, changed: {}, layout: "", weights: "", engine: "",
      kv_cache_dtype: "", layer_formats: {}, draft_tokens: 0, cached: 0, ...said,
      mode: step ? "step" : "request" };
    return [seen, S, notes];
  };
  // What an answer says a benchmark should measure: the middle and both ends, by quantity.
  const expected = (S) => {
    const r = S.mode === "request", q = A.mixed(S), one = r ? A.request(q) : A.step(q, S.batch, S.context);
    if (one.status !== "ok") return { one };
    if (!r) {
      const { seconds, low, high } = one, rate = [seconds, high, low].map((v) => S.batch / v);
      return { one, seconds, sum: rate[0], told: { tpot: [seconds, low, high], output_rate: rate } };
    }
    const { first, firstLow, firstHigh, token, tokenLow, tokenHigh, sum } = one, { output_tokens: n } = q;
    const tpot = [token, tokenLow, tokenHigh], ttft = [first, firstLow, firstHigh];
    const e2e = ttft.map((v, k) => v + Math.max(n - 1, 0) * tpot[k]);
    const late = S.request_rate ? [1, 1.05, 1 / 1.05] : [1, e2e[2] / e2e[0], e2e[1] / e2e[0]];
    const rates = (by) => late.map((v) => by * sum / v);
    return { one, seconds: token, sum, told: { tpot, ttft, e2e, output_rate: rates(1),
      total_rate: rates(q.prompt_tokens / n + 1), requests: rates(1 / n) } };
  };
  const misses = (told, measured) => Object.entries(measured).filter(([name]) => name in told)
    .map(([name, v]) => {
      const [middle, low, high] = told[name], width = v > middle ? high / middle : middle / low;
      return Math.abs(Math.log(v / middle)) / Math.log(Math.max(width, 1.02));
    });
  const engineClass = ({ engine }) => (["", "sglang"].includes(engine || "") ? "serving" : engine);
  // The question with the changes of a row; null where it cannot be so, or is so already.
  const changed = (row, S, { measured, load }) => {
    const m = A.model(S), known = A.chips[S.chip], n = S.n_chips, at = A.layout(S);
    const own = A.formats(S, m).weights.kernel.split(" ")[0], domain = S.domain
      || known.values.chip_scale_up_size || n;
    if (!(row.weights || [own]).includes(own) || !(row.engines || [engineClass(S)]).includes(engineClass(S))
      || !m.name.toLowerCase().includes(row.models || "")
      || (S.concurrency || 1) > (row.most_users || Infinity)
      || (row.linked && !(known.linked && domain >= n && n > 1))) return null;
    const to = {};
    for (const [name, v] of Object.entries(row.changes)) {
      const now = typeof v === "string" ? v.replace("{n}", n).replace("{n}", n) : v;
      if (name === "domain") to.domain = Math.max(Math.floor(v * n), 1);
      else if (now === "running") {
        const drafted = S.draft_tokens && !load.acceptance_length ? A.accepted(S) : 1;
        const running = (measured.output_rate || 0) * (measured.tpot || 0) / drafted;
        const full = running >= 1 && running < limits.places * (S.concurrency || 1) && !S.request_rate;
        if (!full) return null;
        to.max_num_seqs = Math.max(A.even(running / at.dp), 1);
      } else to[name] = name === "layer_formats" ? {} : name === "layout" ? A.words(A.layout({ layout: now }))
        : now === "" ? null : now;
    }
    const plain = (v) => JSON.stringify(v || null), said = Object.keys(to).filter((name) =>
      plain(to[name]) !== plain(S[name]) && !(name === "layer_formats" && plain(S[name]) === "{}"));
    const requests = [...LOOP, "cached", ...REQUESTS], alone = to.acceptance_length && !to.draft_tokens
      && !S.draft_tokens;
    if (!said.length || alone || (S.mode === "step" && said.some((name) => requests.includes(name)))
      || (S.request_rate && to.requests_per_user)) return null;
    return { ...S, ...to };
  };
  const tried = (rows, S, seen) => rows.map((row) => {
    const state = changed(row, S, seen), found = state && expected(state);
    return found && found.told ? { row, state, ...found } : null;
  }).filter(Boolean);
  // Flags that start an engine as a state has it, and the lines of its file of settings.
  const flagsOf = (S, engine) => {
    const [own, , cache] = A.model(S).formats, at = A.layout(S), ep = at.ep > 1, drafts = S.draft_tokens;
    const method = /EAGLE/.test(S.acceptance_length) ? "eagle3" : "mtp", values = {};
    const whole = engine !== "vllm" && ep ? { ...at, tp: at.tp * at.dp } : at;
    const put = (more) => Object.assign(values, more);
    for (const name of ["tp", "pp", "dp", "ep"]) if (whole[name] > 1) values[name] = whole[name];
    for (const name of ["memory_utilization", ...REQUESTS]) if (S[name]) values[name] = S[name];
    if (ep) put({ experts: true, attention_dp: at.dp > 1 });
    if (ep && engine === "sglang") for (const name of TOTALS) if (values[name]) values[name] *= at.dp;
    if (S.engine === "eager") put({ eager: true });
    if (S.weights !== (S.checkpoint || [own].flat().pop())) put({ quantization: S.weights });
    if (S.kv_cache_dtype !== cache) put({ kv_cache_dtype: S.kv_cache_dtype });
    if (S.memory_utilization) put({ static: S.memory_utilization - workspace(S, at) });
    if (drafts) put({ draft_method: method, draft_tokens: drafts, draft_steps: drafts,
      draft_verified: drafts + 1, draft_branches: 1 });
    const flags = {}, file = {}, text = JSON.stringify;
    for (const row of L.rows[engine]) {
      const v = values[row.says], value = row.written ? row.written[v] : v;
      if (!value || (row.drafts || method) !== method) continue;
      const [first, part] = listed(row.names)[0].split("."), into = row.file ? file : flags;
      const name = engine === "trtllm" ? first.replace(/-/g, "_") : first;
      if (part) (into[name] ||= {})[part.replace(/-/g, "_")] = value;
      else into[name] = value;
    }
    const said = (v) => (v === true ? "" : typeof v === "object" ? ` '${text(v)}'`
      : ` ${v < 1 ? +v.toPrecision(4) : v}`);
    return [...Object.entries(flags).map(([name, v]) => `--${name}${said(v)}`),
      ...Object.entries(file).map(([name, v]) => `${name}: ${text(v)} in extra.yml`)];
  };
  const next = (S, seen, { seconds, sum }, explained) => {
    const [first] = explained;
    if (first && first.row.remedy) return { flag: first.row.remedy, seconds, tokens_per_second: sum };
    const best = tried(causes.try, S, seen).reduce((a, b) => (a && a.sum >= b.sum ? a : b), null);
    if (!best || best.sum <= limits.better * sum) return null;
    const engine = { sglang: "sglang", compiled: "trtllm" }[S.engine] || "vllm";
    const [to, from] = [best.state, S].map((one) => flagsOf(one, engine));
    const less = (a, b) => a.filter((flag) => !b.includes(flag)).sort();
    const kept = to.map((flag) => flag.split(" ")[0]);
    const gone = less(from, to).filter((flag) => !kept.includes(flag.split(" ")[0])).join(", ");
    const told = [less(to, from).join(" "), gone && `leave out ${gone}`].filter(Boolean).join("; ");
    return { flag: told || `a checkpoint in ${best.state.weights}`,
      seconds: best.seconds, tokens_per_second: best.sum, gain: best.sum / sum };
  };
  const few = (v) => (v >= 999.5 ? A.even(v).toLocaleString("en-US") : String(+v.toPrecision(3)));
  // Whether a benchmark is what a deployment should give, what would explain it if not, and what to try next.
  const check = (text, printed, machine, options = {}) => {
    const [seen, state, notes] = asked(text, printed, machine, options), found = expected(state);
    const { one, told } = found, { measured } = seen;
    if (!told) refuse(`nothing to compare: ${one.status}: ${one.reason}`);
    const names = Object.keys(measured).filter((name) => name in told);
    if (!names.length) refuse("nothing to compare: give prompt and output, in tokens");
    const off = misses(told, measured), far = Math.hypot(...off), most = Math.max(...off);
    const least = { tpot: A.leastStep(state) };
    if (state.mode !== "step") least.ttft = one.promptPeaks;
    const users = state.mode === "step" ? state.batch : state.concurrency || 1;
    const paced = state.request_rate ? Infinity : users / (measured.output_rate || 0); // by Little's law
    const impossible = (measured.tpot < least.tpot || paced < least.tpot || measured.ttft < least.ttft)
      && least;
    const explained = most <= 1 || impossible ? [] : tried(causes.cause, state, seen).map((each) => {
      const own = misses(each.told, measured), n = (each.state.max_num_seqs || 0) * A.layout(each.state).dp;
      return { ...each, most: Math.max(...own), miss: Math.hypot(...own), says: each.row.says
        .replace("{n}", n).replace("{users}", few(state.concurrency || 1)) };
    }).filter((each) => each.most <= limits.near && each.miss < far / 2).sort((a, b) => a.miss - b.miss)
      .slice(0, limits.named);
    const numbers = names.map((name, k) => ({ name, measured: measured[name], middle: told[name][0],
      low: told[name][1], high: told[name][2], inside: off[k] <= 1,
      statistic: seen.statistics[name] }));
    const worst = numbers[off.indexOf(most)], shorter = worst.measured < worst.middle;
    const faster = most > 1 && shorter === ["tpot", "ttft", "e2e"].includes(worst.name);
    return { state, one, numbers, explained, notes, impossible, faster, next: impossible || faster ? null
      : next(state, seen, found, explained),
      left: Object.keys(measured).filter((name) => !(name in told)), far: most > limits.far };
  };
  // The same in Python, and in a terminal.
  const python = (S) => `tokenprice.check(${[S.command, S.measured, `${S.n_chips}x ${S.chip}`].map((text) =>
    JSON.stringify(text)).join(", ")})`;
  const terminal = (S) => `tokenprice check command.sh benchmark.txt --gpu "${S.n_chips}x ${S.chip}"`;
  return { check, python, terminal, names: B.measured, causes: causes.cause.map(({ name }) => name),
    impossible: causes.impossible, slower: causes.slower, faster: causes.faster };
};
