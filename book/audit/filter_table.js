(function (C) {
  "use strict";
  const root = document.getElementById(C.id), make = (tag) => document.createElement(tag);
  const [words, note, body, more] = ["input", ".readout", "tbody", "button"].map(
    (part) => root.querySelector(part));
  const selects = Array.from(root.querySelectorAll("select")), controls = [words, ...selects];
  // Rows that are drawn here, so many at a time, or what stands in the page already.
  const items = C.rows || Array.from(document.querySelectorAll("article " + C.of));
  const plain = (cell) => String(Array.isArray(cell) ? cell[0] : cell);
  // As it is typed: Greek letters by name, no subscripts, brackets and commas, a micro as u.
  const GREEK = ("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda u nu xi omicron pi rho " +
    "sigma sigma tau upsilon phi chi psi omega").split(" ");
  const fold = (text) => text.normalize("NFKD").toLowerCase().replace(/[_{}\\^$,()]/g, "")
    .replace(/’/g, "'").replace(/[-‐–]/g, " ")
    .replace(/[α-ω]/g, (c) => GREEK[c.charCodeAt(0) - 945]);
  const texts = items.map((item) => fold(C.rows ? item.map(plain).join(" ") : item.textContent));
  // Numbers and short words are found whole, any other anywhere by its stem; "table 3" is one.
  const PART = /(?:table|figure|equation|section) [a-z]?[\d.]+|how (?:many|much)|your own|[^\s"]+/g;
  const SHORT = /^.{1,3}$/;
  // Words of a question that say nothing of its subject, and some that the book says otherwise.
  const SILENT = new RegExp("^(?:an?|add|and|are|at|by|can|definition|do|does|for|how|in|is|it|meaning|my|" +
    "of|on|or|that|the|to|what|when|where|which|who|why|with|you|your)$");
  const SAME = ["gpu|chip|machine", "price|cost|rent|dollar", "erratum|errata"];
  const stem = (word) => word.replace(/(?<=\w{5})(?:ions?|isms?|ing|ies|ed|es|[esy])$/, "")
    .replace(/[^a-z0-9 ]/g, "\\$&");
  const test = (word) => {
    const same = C.ranked && SAME.find((one) => one.split("|").includes(word.replace(/s$/, "")));
    if (same) return new RegExp("(?<![a-z])(?:" + same + ")", "g");
    return new RegExp((/^[\d.]/.test(word) || SHORT.test(word) ? "(?<![a-z0-9.])" : "") + stem(word) +
      (/[\d.]$/.test(word) ? "(?!\\.?[a-z0-9])" : SHORT.test(word) ? "s?(?![a-z0-9])" : ""), "g");
  };
  const tests = () => {
    const all = fold(words.value).match(PART) || [], telling = all.filter((word) => !SILENT.test(word));
    return (C.ranked && telling[0] ? telling : all).map(test);
  };
  const heading = (e) => e.closest("section").querySelector("h1, h2, h3").firstChild.textContent;
  const value = (e, s) => C.rows ? plain(e[+s.dataset.column]) : e.dataset[s.dataset.key] || heading(e);
  let most = C.page;
  function cell(content, column, wanted) {
    const td = make("td"), all = C.ranked ? String(content).split(" ") : [];
    if (Array.isArray(content)) {
      const [textContent, at] = content;
      td.append(Object.assign(make("a"), { textContent, href: C.links ? C.links[at] : at }));
    } else if (C.ranked) {  // of a long text as much as shows why it was found
      const hit = (word) => wanted.some((test) => fold(word).search(test) >= 0);
      const from = Math.max(0, all.findIndex((_, i) => hit(all.slice(i, i + 2).join(" "))) - 8);
      for (const word of all.slice(from, from + 36))
        td.append(Object.assign(make(hit(word) ? "mark" : "span"), { textContent: word }), " ");
    } else td.textContent = content;
    if (C.numbers && C.numbers.includes(column)) td.className = "number";
    return td;
  }
  function draw() {
    const wanted = tests(), phrase = fold(words.value).trim(), asked = controls.some((e) => e.value !== "");
    const offered = (i) => selects.every((s) => s.value === "" || value(items[i], s) === s.value);
    const hits = (text, one) => (text.match(one) || []).length;
    // How often each word stands in each text: a rare word weighs more. A row of a table has all words, or
    // as many as any has; a section of the book has words of half of the weight.
    const often = texts.map((text) => wanted.map((one) => hits(text, one)));
    const texts_with = (w) => often.filter((row) => row[w]).length;
    const weights = wanted.map((_, w) => Math.log(1 + items.length / (1 + texts_with(w))));
    const sum = (each) => weights.reduce((all, weight, w) => all + weight * each(w), 0);
    const share = often.map((row) => sum((w) => row[w] ? 1 : 0));
    const least = Math.max(...share) / (C.ranked ? 2 : 1);
    let found = items.map((_, i) => i).filter((i) => (wanted[0] || !C.ranked) && share[i] >= least
      && (share[i] || !wanted[0]) && offered(i));
    // A section is found by its own title before that of its chapter, in a short text before a long one;
    // entries of registers come after chapters.
    const rank = (i) => {
      const parts = fold(plain(items[i][0])).split(/ · |: (?!.*: )/), own = parts.pop();
      const above = parts.join(" ");
      const size = texts[i].length / 1500, entry = /#eq-|bibliography/.test(items[i][0]);
      const title = (w) => hits(own, wanted[w]) ? 4 / Math.sqrt(1 + own.split(" ").length / 4) :
        hits(above, wanted[w]) ? 1 : 0;
      const whole = own.includes(phrase) ? 6 : texts[i].includes(phrase) ? 2 : 0;
      const score = sum((w) => title(w) + 2 * often[i][w] / (often[i][w] + 0.5 + size));
      return share[i] * (score + whole) * (entry ? 0.7 : 1);
    };
    const best = (pairs) => pairs.sort((a, b) => b[0] - a[0]), seen = {};
    // The second section of a page comes after the first of another page that fits nearly as well.
    const spread = ([score, i]) => {
      const page = items[i][0][1].split("#")[0];
      seen[page] = (seen[page] || 0) + 1;
      return [score * Math.pow(0.8, Math.min(seen[page], 4)), i];
    };
    if (C.ranked) found = best(best(found.map((i) => [rank(i), i])).map(spread)).map((pair) => pair[1]);
    const shown = C.rows ? found.slice(0, most) : found, kept = new Set(shown);
    body.textContent = "";
    items.forEach((item, i) => { item.hidden = !kept.has(i); });
    for (const i of C.rows ? shown : [])
      body.appendChild(make("tr")).append(...items[i].map((text, column) => cell(text, column, wanted)));
    for (const e of C.of ? document.querySelectorAll("section section, article details") : [])
      e.open = asked && !(e.hidden = asked && !e.contains(root) && !e.querySelector(C.of + ":not([hidden])"));
    more.hidden = shown.length === found.length;
    note.textContent = [found, items].map((all) => all.length.toLocaleString("en-US")).join(" of ") + " " +
      C.noun + (more.hidden ? "" : ", the first " + shown.length + " shown");
  }
  // The address holds the state.
  const again = () => {
    const pair = (e) => e.dataset.key + "=" + encodeURIComponent(e.value);
    history.replaceState(null, "", "#find?" + controls.filter((e) => e.value).map(pair).join("&"));
    most = C.page;
    draw();
  };
  const arrive = () => {
    const at = location.hash.split("#find?")[1], state = new URLSearchParams(at || location.search);
    controls.forEach((e) => { e.value = state.get(e.dataset.key) || ""; });
    draw();
  };
  for (const s of C.of ? selects : [])
    s.append(...Array.from(new Set(items.map((item) => value(item, s))), (text) => new Option(text)));
  controls.forEach((e) => e.addEventListener("input", again));
  more.addEventListener("click", () => { most += C.page; draw(); });
  addEventListener("hashchange", arrive);
  arrive();
})
