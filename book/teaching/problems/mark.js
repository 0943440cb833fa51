// What marking.py says of an answer, said in the page; a test holds both together.
window.inferlibVerdict = function (d, answer) {
  "use strict";
  const no = (said) => ({ right: false, said: said + "." }), unread = (why) => no("Not read: " + why);
  if (d.options) {
    if (answer === null) return unread("choose one of the options, A to D");
    if (+answer === d.right) return { right: true, said: "Right." };
    return no("Not yet" + (d.options[answer] ? ": " + d.options[answer] : ""));
  }
  const far = (ratio) => {
    if (ratio <= 0) return "the answer is positive";
    const times = ratio > 1 ? ratio : 1 / ratio, side = ratio > 1 ? "large" : "small";
    const power = [3, 6, 9].find((power) => Math.abs(times / 10 ** power - 1) < 0.08);
    if (power) return `it is off by a factor of 10^${power}: look at the prefix of the unit`;
    if (times < 1.5) return `it is ${(100 * Math.abs(ratio - 1)).toFixed(0)} % too ${side}`;
    return `it is ${times < 1000 ? times.toFixed(1) : "over a thousand"} times too ${side}`;
  };
  let text = answer.trim().replace(/[µμ]/g, "u");
  text = text.replace(/^(?:[~≈=]|about\b|approx\.|ca\.)\s*/, "").replace(/\.$/, "");
  text = text.replace(/^\$ *(\S+)/, "$1 $$");
  if (/^[+-]?(?:0*,\d+|\d+,\d{1,2}(?!\d)|\d+,\d{4,})/.test(text))
    return unread("write a decimal point where you have a comma, as in 12.3");
  text = text.replace(/\d{1,3}(?:([, _'])\d{3})(?:\1\d{3})*(?!\d)/, (groups) => groups.replace(/[, _']/g,
    ""));
  const number =
    /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?: *[*×x·] *10 *(?:\^|\*\*) *([+-]?\d+))? *([^\d\s,.].*)?$/i;
  const found = number.exec(text), wanted = d.unit || "plain numbers";
  if (!found || text.length > 100) return unread("that is no number, or no number and its unit");
  const prefixes = { nano: "n", micro: "u", milli: "m", kilo: "k", mega: "M", giga: "G", tera: "T", peta: "P",
    kibi: "Ki", mebi: "Mi", gibi: "Gi", tebi: "Ti" };
  const letters = { second: "s", sec: "s", byte: "B", flop: "FLOP" };
  const any = (names) => `(${Object.keys(names).join("|")})`;
  const per = { dollars: "(1 ?)?(million|M|1M|10\\^6|1e6)( ?(\\w+ )?tok(en)?s?)?( of \\w+)?", cent: "request",
    "": "(chip|GPU|layer|instance|machine|box)" }[d.unit]
    || "(token|step|layer|user|sequence|request|prompt|answer|chip|GPU|exchange|hop|batch)( of \\w+)?";
  const resolved = (unit) => {
    for (const name of [unit, unit.replace(RegExp(` *(/|\\bper\\b|\\ban?\\b) *${per}$`, "i"), "")]) {
      const word = RegExp(`^${any(prefixes)}?${any(letters)}s?$`, "i").exec(name);
      const short = word ? (word[1] ?
        prefixes[word[1].toLowerCase()] : "") + letters[word[2].toLowerCase()] : name;
      const single = name.length > 2 ? [name.length > 3 ? name.slice(0, -1) : "", name + "s"] : [];
      for (const one of [name, short, ...single]) if (Object.hasOwn(d.units, one)) return one;
    }
  };
  let value = +(found[1] + (found[2] && !/e/.test(found[1]) ? "e" + found[2] : "")), unit = (found[3] ||
    "").trim();
  const many = /^(k|thousand|million)\b *(tok.*)?$/.exec(unit);
  if (many && ["", "tokens/s"].includes(d.unit)) {
    value *= many[1] === "million" ? 1e6 : 1e3;
    unit = many[2] || "";
  }
  if (value && !(Math.abs(value) > 1e-99 && Math.abs(value) < 1e99))
    return unread("that number is too large or too small");
  if (!unit && d.unit) return unread(`a number without its unit, and this answer is asked for in ${wanted}`);
  if (unit) {
    const name = resolved(unit);
    if (!name) return unread(`${unit} is no unit of this answer, which is asked for in ${wanted}`);
    value *= d.units[name];
  }
  const near = (other, by = d.tolerance) => Math.abs(value / other - 1) <= by;
  if (near(d.value, d.exact ? 1e-9 : d.tolerance)) return { right: true, said: `Right: ${d.answer}.` };
  if (d.exact && !Number.isInteger(value)) {
    const sides = { [Math.floor(value)]: "down", [Math.ceil(value)]: "up" };
    const side = sides[Math.round(d.value)];
    if (side) return no(`Not yet: round ${side}: only a whole number is meant`);
  }
  if (d.exact && near(d.value)) return no("Not yet: near, but a whole number under a limit is exact");
  for (const [other, hint] of d.mistakes) if (near(other)) return no("Not yet: " + hint);
  if (answer.includes(",") && near(1000 * d.value))
    return no("Not yet: off by a factor of 10^3: a comma parts thousands here, "
      + "or look at the prefix of the unit");
  const mantissa = /\d+\.?\d*|\.\d+/.exec(answer.replace(/,/g, ""))[0];
  const digits = mantissa.replace(".", "").replace(/^0+/, "").length, one = value / +mantissa;
  if ((digits === 1 || digits === 2)
    && Math.abs(+(d.value / one).toPrecision(digits) * one / value - 1) < 1e-9)
    return no("Not yet: rounded too much: write three digits");
  return no("Not yet: " + far(value / d.value));
};
window.inferlibMark = function (id) {
  "use strict";
  const root = document.getElementById(id),
    made = (tag, values) => Object.assign(document.createElement(tag), values);
  const score = () => {
    const all = [...document.querySelectorAll("[data-mark]")];
    const right = all.filter((item) => item.dataset.state === "right").length;
    const said = `Right so far: ${right} of ${all.length}`;
    for (const place of document.querySelectorAll(".inferlib-marked .score")) place.textContent = said + ".";
    return said;
  };
  root.querySelectorAll("[data-mark]").forEach((item) => {
    const d = JSON.parse(item.dataset.mark), form = made("form", { className: "reply", noValidate: true });
    const told = made("p", { className: "verdict" }), list = item.querySelector("ol.options");
    told.setAttribute("role", "status");
    let given;
    if (list) {
      list.setAttribute("role", "radiogroup");
      list.setAttribute("aria-labelledby", item.id + "-text");
      list.querySelectorAll("li").forEach((li, k) => {
        const label = made("label"),
          radio = made("input", { type: "radio", name: item.id, value: k, autocomplete: "off" });
        li.setAttribute("role", "none");
        label.append(radio, ...li.childNodes);
        li.append(label);
      });
      list.after(form);
      form.append(list);
      given = () => { const chosen = form.querySelector(":checked"); return chosen && +chosen.value; };
    } else {
      const label = made("label", { textContent: "Your answer " });
      const input = made("input", { type: "text", autocomplete: "off", placeholder: d.unit
        ? "number and unit, such as " + d.unit : "number" });
      input.setAttribute("aria-describedby", item.id + "-text");
      label.append(input);
      form.append(label);
      item.querySelector("details").before(form);
      given = () => input.value;
    }
    form.append(made("button", { type: "submit", textContent: "Check" }));
    form.after(told);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const verdict = window.inferlibVerdict(d, given());
      item.dataset.state = verdict.right ? "right" : "wrong";
      told.textContent = `${verdict.said} ${score()}.`;
      if (verdict.right) item.querySelector("details").open = true;
    });
  });
  score();
};
