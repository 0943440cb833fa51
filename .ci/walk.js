// Walks the calculator in one load: sets every entry of every menu, both ends of every slider and field,
// follows
// every link of the page's text, and reads every part as a reader does. What a part must say is asked anew,
// of what
// stands in the controls. Returns the faults, how many states were read, and the milliseconds.
async () => {
  "use strict";
  const page = inferlibAsked, D = inferlibKnown, { A, K } = page, { digits } = inferlibShared, { form } = D;
  const root = document.querySelector(".ask"), faults = {}, begun = performance.now(), thrown = [];
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const control = (key) => root.querySelector(`[data-key="${key}"]`);
  const many = (selector, within = root) => [...within.querySelectorAll(selector)];
  const text = (node) => (node ? node.textContent.replace(/\s+/g, " ").trim() : "");
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  window.addEventListener("error", (event) => thrown.push(event.message));
  window.addEventListener("unhandledrejection", (event) => thrown.push(String(event.reason)));
  let states = 0, at = "", anew = false; // whether a search is made a second time
  const fault = (what) => { (faults[what.slice(0, 90)] ||= []).push(`${at}: ${what}`); };
  const want = (holds, what) => { if (!holds) fault(what); };
  const same = (found, told, what) => want(found === told, `${what} says "${found}", not "${told}"`);

  // --- What stands in the controls, read again
  // --------------------------------------------------------------
  const MODES = ["step", "request", "decide", "check"];
  const mode = () => MODES.find((name) => root.querySelector(`[data-key="mode"][value="${name}"]`).checked);
  const visible = (c) => !c.closest("[hidden]");
  const stated = () => {
    const { own, mix } = page.state(), none = Object.fromEntries(form.fields.map((name) => [name, null]));
    const S = { ...none, ...form.start, changed: {}, prices: {}, price: undefined, own, mix, mode: mode() };
    for (const c of many("[data-key]").filter((c) => c.type !== "radio" && visible(c))) {
      const { key } = c.dataset, told = c.value.trim(), number = form.numbers[key];
      if (c.type === "checkbox") S[key] = c.checked;
      else if (key === "prices") {
        for (const line of told.split(";").filter(Boolean)) {
          const [name, usd] = line.split(":");
          S.prices[A.known("chip", name.trim())] = +usd;
        }
      } else if (key === "layer_formats") S.layer_formats = told ? A.keepOf(told) : {};
      else if (!number || key === "goal" || key === "budget") S[key] = told || (c.type === "text" ?
        null : "");
      else if (told && !c.closest(".changed")) {
        const v = A.read(key, told), listed = A.hourly({ ...S, price: null }, S.chip);
        const own = key === "price" && listed != null && A.told("price", listed) === told;
        S[key] = own ? undefined : Number.isNaN(v) ? told : v;
      } else if (told) {
        const { values, peaks } = A.chips[S.chip], v = A.read(key, told);
        const known = key === "peak_16" ? values.chip_flops : key.startsWith("peak_") ? peaks[key.slice(5)]
          : values[`chip_${key}`];
        if (known == null || A.told(key, known) !== told) S.changed[key] = v;
      } else S[key] = key === "price" ? undefined : null;
    }
    S.layout = S.layout || "";
    if (S.mix) [S.prompt_tokens, S.output_tokens, S.cached] = [S.mix.prompt, S.mix.output, S.mix.cached];
    return S;
  };

  // --- The parts
  // ----------------------------------------------------------------------------------------------
  const time = (s) => (s == null ? "n/a" : s >= 1 ? `${digits(s)} s` : `${digits(1e3 * s)} ms`);
  const span = (a, b) => (b === Infinity ? `${time(a)} or more`
    : `${digits(b >= 1 ? a : 1e3 * a)} to ${time(b)}`);
  const usd = (v) => (v == null ? "n/a" : `$${v > 0 && v < 1e-3 ? v.toFixed(6) : digits(v)}`);
  const number = (label) => +label.replace(/,/g, "").replace("K", "e3").replace("M", "e6");
  // An axis as a reader reads it: two labels, and what lies between them by logarithms.
  const axis = (labels, place) => {
    const [a, b] = [labels[0], labels[labels.length - 1]].map((e) => [place(e), Math.log(number(text(e)))]);
    const slope = (b[1] - a[1]) / (b[0] - a[0]);
    // Labels stand on whole pixels.
    return (p, value) => Math.abs(a[1] + (p - a[0]) * slope - Math.log(value)) < 1.6 * Math.abs(slope) + 0.01;
  };
  const picture = (x, y, line) => {
    const svg = part("picture").querySelector("svg"), ring = svg && svg.querySelector(".here");
    if (!ring) return fault("no ring in the picture");
    const labels = [...svg.querySelectorAll("text")], of = (e, name) => +e.getAttribute(name);
    const below = axis(labels.filter((e) => of(e, "y") === 179), (e) => of(e, "x"));
    const beside = axis(labels.filter((e) => of(e, "x") === 37), (e) => of(e, "y") - 4);
    const [cx, cy] = [of(ring, "cx"), of(ring, "cy")];
    want(below(cx, x), `the ring does not stand at ${digits(x)}`);
    want(beside(cy, y), `the ring does not stand at the height ${digits(y)}`);
    const points = [...svg.querySelector(".curve").getAttribute("d").matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)]
      .map(([, px, py]) => [+px, +py]);
    const k = points.findIndex(([px]) => px >= cx - 0.1);
    if (!line || k < 0) return undefined;
    const [[x1, y1], [x2, y2]] = [points[Math.max(k - 1, 0)], points[k]];
    const off = cy - (x2 > x1 ? y1 + ((cx - x1) * (y2 - y1)) / (x2 - x1) : y2);
    return want(Math.abs(off) < 6 && off + 0.1 > Math.min(y1, y2) - cy - 6, "the ring is not on the curve");
  };
  const told = (cautions, remarks) => {
    const items = many(".cautions li", part("head")).map(text), notes = text(part("head"));
    same(items.join("|"), cautions.join("|").replace(/\s+/g, " "), "the list of cautions");
    want(cautions.length || /No caution:/.test(notes), "no word on cautions");
    remarks.forEach((one) => want(notes.includes(one), `Python's remark is missing: ${one}`));
  };
  const gauge = (fit) => want(!fit || fit.has == null || text(part("gauge")).startsWith(
    `${digits(fit.needs / 1e9)} GB of ${digits(fit.left / 1e9)} GB`), "the memory is another question's");
  const refused = (one) => {
    want(text(part("head")).includes(one.reason.replace(/\s+/g, " ")),
      `the reason is not said: ${one.reason}`);
    one.remarks.forEach((said) => want(text(part("head")).includes(said), `not said: ${said}`));
    for (const name of ["gains", "near", "picture", "reach"]) same(text(part(name)), "", name);
    gauge(one.fit);
  };
  const copied = (S) => {
    root.querySelector('[data-act="python"]').click();
    const call = text(part("python")), { own } = S, q = A.mixed(S);
    same(call, A.python(q).replace(/\s+/g, " "), "the copied call");
    want(call.includes(JSON.stringify(own ? "config.json" : S.model)), "the call asks another model");
    if (S.mode !== "decide" && !Object.keys(S.changed).length)
      want(call.includes(`"${S.n_chips}x ${S.chip}"`), "the call asks another machine");
  };
  const answered = (S) => {
    const q = A.mixed(S), r = S.mode === "request", one = r ? A.request(q) : A.step(q, q.batch, q.context);
    if (one.status !== "ok") return refused(one);
    const [token, low, high] = r ? [one.token, one.tokenLow, one.tokenHigh] : [one.seconds, one.low,
      one.high];
    const bigs = many(".big", part("head")), tiles = many(".tile", part("head")).map(text).join("; ");
    if (r) want(text(bigs[0]).startsWith(time(one.first)), "the first token is another question's");
    const big = text(bigs[bigs.length - 1]);
    want(big.startsWith(time(token)) && big.includes(span(low, high)),
      `headline: ${big}, not ${time(token)}`);
    const cost = r ? (one.million || {}).output : one.dollars;
    want(tiles.includes(`${r ? "out" : "$ a million"}${usd(cost)}`), `costs are not ${usd(cost)}: ${tiles}`);
    want(tiles.includes(`bound by${one.binding}`), `not bound by ${one.binding}`);
    const bars = many(".head > .legend > span:not(.note)"), hidden = many(".head > .legend .note").map(text);
    const sum = bars.map((e) => number(text(e.querySelector("b")))).reduce((a, b) => a + b, 0);
    want(Math.abs(sum / 1e3 / (one.seconds + (one.others || 0)) - 1) < 0.02, `bars of ${sum} ms; ${hidden}`);
    told(one.cautions, one.remarks);
    gauge(one.fit);
    const gains = A.changes(q, one.batch, one.context).map((o) => `${o.name}×${o.gain.toFixed(2)}`).join("|");
    same(many("li", part("gains")).map(text).join("|"), gains, "what a change buys");
    const rows = A.neighbours(q, one.batch, one.context, 4), shown = many("tbody tr", part("near"));
    same(shown.length, rows.length, "rows measured");
    shown.forEach((row, k) => {
      const cells = [...row.children].map(text), link = row.querySelector("a").href;
      want(new URL(rows[k].url).href === link && cells[4] === digits(1e3 * rows[k].seconds)
        && cells[1].includes(A.ofChip(rows[k].n, rows[k].chip)), `row ${k} is another question's`);
      want(cells[1].includes(rows[k].model.replace(/^.*\//, "")) !== rows[k].alike, `row ${k}: whose model?`);
      want(/^n\/a|^[\d,.e-]+ (✓|✗)$/.test(cells[5]), `row ${k} here is "${cells[5]}"`);
    });
    picture(!r || one.many ? one.batch : S.concurrency || 1, 1e3 * token, !one.many);
    const goal = S.goal && A.read("goal", S.goal), reach = text(part("reach"));
    if (goal && !one.many) {
      const found = token <= goal ? [] : A.needed(q, one.batch, one.context, (s) => s <= goal);
      const none = found.every((f) => !f.factor) ? /No single change/ : /×|users/;
      want(token <= goal ? /reached already/.test(reach) : none.test(reach)
        && found.every((f) => !f.factor || reach.includes(f.name)),
        `what must change: ${reach}`);
    } else want(reach, "nothing on what must change");
    return copied(S);
  };
  const rented = (S) => {
    const head = text(part("head"));
    const asked = { ...S, concurrency: null }; // decide finds the users
    if (A.twice(A.mixed(asked)) || !A.machines(S).length) return want(/Nothing to choose from/.test(head), head);
    const out = anew ? A.decide(asked) : page.answer(), { best } = out;
    want(text(part("misses")), "nothing on what fails");
    if (!best) {
      same(text(part("offers")), "", "offers");
      return want(/Nothing would (meet the SLO|serve it)/.test(head), `an offer where nothing is offered: ${head}`);
    }
    told(best.cautions, []);
    want(head.includes(time(best.first)) && head.includes(digits(100 * best.dollars)),
      `another offer: ${head}`);
    const offers = [best, ...out.runnersUp], rows = many("tbody tr", part("offers")).map(text);
    same(rows.length, offers.length, "offers");
    rows.forEach((row, k) => want(row.includes(A.ofChip(offers[k].n, offers[k].chip))
      && !/NaN|undefined/.test(row), `offer ${k} is another's: ${row}`));
    if (out.frontier.length) picture(best.speed, 100 * best.dollars, false);
    return copied(S);
  };
  const checked = (S) => {
    const { command, measured, chip, n_chips } = S, said = (name) => text(part(name));
    const call = () => {
      root.querySelector('[data-act="python"]').click();
      same(text(part("python")), K.python(S).replace(/\s+/g, " "), "the copied call");
    };
    want(said("next").includes(`--gpu "${n_chips}x ${chip}"`), "the terminal asks another machine");
    let found;
    try { found = K.check(command, measured, { chip, n_chips }); } catch (error) {
      want(error.refused, `not refused: ${error.stack}`);
      want(said("head").includes(error.message.replace(/\s+/g, " ")), `not said: ${error.message}`);
      ["numbers", "explained"].forEach((name) => same(said(name), "", name));
      return call();
    }
    const { numbers, explained, next, notes, one } = found;
    const rows = many("tbody tr", part("numbers")).map(text);
    const off = numbers.filter((n) => !n.inside), timed = (n) => /tpot|ttft|e2e/.test(n.name);
    want(said("head").startsWith(off.length ? "Outside" : "Inside"), `the verdict: ${said("head")}`);
    told(one.cautions, notes);
    same(rows.length, numbers.length, "numbers");
    rows.forEach((row, k) => want(row.includes(timed(numbers[k]) ? span(numbers[k].low, numbers[k].high)
      : digits(numbers[k].low)) && row.includes(numbers[k].inside ? "inside" : "outside"), `row ${k}: ${row}`));
    want(explained.every((e) => said("explained").includes(e.says)) && said("explained"), "another cause");
    want(!next || (said("next").includes(next.flag) && said("next").includes(time(next.seconds))),
      `another flag: ${said("next")}`);
    return call();
  };
  const PARTS = { decide: ["head", "picture", "offers", "misses"],
    check: ["head", "numbers", "explained", "next"],
    "": ["head", "gains", "gauge", "near", "picture", "reach"] };
  const read = async (where) => {
    at = where;
    states += 1;
    const now = mode(), parts = PARTS[now] || PARTS[""], head = part("head");
    for (let k = 0; k < 2000 &&
      parts.some((n) => part(n).dataset.turn !== root.dataset.turn); k++) await frame();
    parts.forEach((name) => same(part(name).dataset.turn, root.dataset.turn, `${name}, its state,`));
    want(!/NaN|undefined|Infinity|\[object/.test(root.querySelector(".out").textContent), "no number");
    thrown.splice(0).forEach((message) => fault(`error: ${message}`));
    const marked = many('[aria-invalid="true"]').length;
    if (/^Not asked:/.test(text(head))) return want(marked, "refused, and no field is marked");
    want(!marked, "a field is marked, and the question is answered");
    const reads = { decide: rented, check: checked }[now] || answered;
    try { reads(stated()); } catch (error) {
      fault(`cannot be read: ${error.stack.slice(0, 300)}`);
    }
    return undefined;
  };
  // As a reader sets it.
  const set = async (key, value, c = control(key)) => {
    try {
      if (c.type === "checkbox") c.checked = value; else c.value = value;
      c.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (error) { thrown.push(error.message); }
    await frame();
    await frame();
  };
  // A state of given words; at once where nothing is read in between.
  const state = (words) => {
    try {
      history.replaceState(null, "", `#ask?${Object.entries(words).map(([name, said]) =>
        `${name}=${encodeURIComponent(said)}`).join("&")}`);
      window.dispatchEvent(new HashChangeEvent("hashchange"));
    } catch (error) { thrown.push(error.message); }
    return read(Object.values(words).join(", "));
  };

  // --- The walk
  // ----------------------------------------------------------------------------------------------
  const MACHINES = ["1x H100 SXM", "8x H200", "8x MI300X"];
  const LOAD = "TPOT 21 ms, TTFT 400 ms, 1200 tokens/s, 32 users, prompt 1000, output 300";
  const PASTED = ["vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 8 --port 80", "vllm serve Qwen/Qwen3-32B",
    "python -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 4 --dp 4 --enable-dp-attention",
    "trtllm-serve Qwen/Qwen3-32B --tp_size 4", "vllm serve Qwen/Qwen3-8B --colour red", "ls", "",
  ].map((command) => ({ command, measured: LOAD })).concat([
    { command: "vllm serve Qwen/Qwen3-8B", measured: "TPOT 9 ms" }, { command: "Qwen/Qwen3-8B", measured: "1" }]);
  const names = (key) => [...control(key).options].map((o) => o.value);
  const models = names("model");
  await state({ mode: "step", model: "Llama 3 70B", machine: "8x H100 SXM", batch: 32 });
  for (const model of models) {
    for (const machine of MACHINES) {
      await state({ mode: "step", model, machine, batch: 32, ...(machine === "8x H200" &&
        { goal: "5 ms" }) });
      await state({ mode: "request", model, machine, concurrency: 8, prompt_tokens: 2000, output_tokens: 300 });
    }
    await state({ mode: "decide", model, chips: "H200", tpot: "20 ms", ttft: "2 s" });
  }
  anew = true;
  for (const now of MODES) {
    const asks = { decide: { chips: "B200", tpot: "20 ms", ttft: "2 s" }, check: PASTED[0] }[now] || {};
    const model = now === "check" ? {} : { model: "GPT-OSS 120B" };
    const opened = { mode: now, ...model, machine: "4x B200", ...asks };
    const opens = () => state(opened);
    await opens();
    for (const pasted of now === "check" ? PASTED : []) await state({ ...opened, ...pasted });
    for (const c of many("select").filter(visible)) {
      const { key } = c.dataset;
      if (key === "model") continue; // each was asked above
      for (const value of names(key)) {
        await set(key, value);
        await read(`${now}: ${key} = ${value}`);
      }
      await opens();
    }
    for (const c of many("input[type=range]").filter(visible)) {
      for (const end of [c.min, c.max]) {
        await set("", end, c);
        await read(`${now}: slider of ${c.dataset.for} at ${end}`);
      }
      await opens();
    }
    const extremes = (key) => {
      const known = form.numbers[key];
      if (!known) return { layout: ["TP4", "EP4 TP4", "TP3"], layer_formats: ["attention=fp8", "all"],
        prefill_machine: ["2x H100", "two"], prices: ["H200: 3", "3,99"] }[key] || [];
      const units = Object.keys(known.units), unit = units.includes("") ? "" : units[0];
      const [by, power, most] = Array.isArray(known.units[unit]) ? known.units[unit] : [1, 1, 1e6];
      const ends = [known.least, most].map((v) => `${power > 0 ? v / by : by / v}${unit && ` ${unit}`}`);
      return [...ends, "2", "abc", "", ...(key === "acceptance_length" ? Object.keys(D.accepted) : [])];
    };
    for (const c of many("input[type=text]").filter((c) => visible(c) && extremes(c.dataset.key).length)) {
      const { key } = c.dataset;
      if (key === "acceptance_length") await set("draft_tokens", "1");
      if (now === "request" && (key === "prefill_machine" || key === "replicas")) await set("request_rate", "1");
      for (const value of extremes(key)) {
        await set(key, value);
        await read(`${now}: ${key} = ${value || "nothing"}`);
      }
      await opens();
    }
  }
  await set("sure", true);
  await read("decide: sure");
  const links = [...document.querySelectorAll('a[href*="#ask?"]')].filter((a) => !root.contains(a)
    && a.href.split("#")[0] === location.href.split("#")[0]);
  for (const a of links) {
    history.replaceState(null, "", a.hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    await read(`link: ${text(a)}`);
  }
  const list = Object.values(faults).map((all) => `${all[0]} (${all.length} states)`);
  return [list, states, (performance.now() - begun) / 1e3, links.length];
}
