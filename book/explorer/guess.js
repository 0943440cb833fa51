window.inferlibGuess = function (C) {
  "use strict";
  const root = document.getElementById(C.id), slider = root.querySelector("input");
  const told = root.querySelector(".readout");
  const shown = (v) => globalThis.inferlibShared.digits(v) + " " + C.unit;
  const guess = () => { const v = Math.pow(10, +slider.value); return C.whole ? Math.round(v) : v; };
  let moved = false;
  const show = () => {
    const said = moved ? shown(guess()) : "not moved yet";
    root.querySelector("output").textContent = said;
    slider.setAttribute("aria-valuetext", said);
  };
  const verdict = () => {
    const ratio = guess() / C.answer, off = +Math.max(ratio, 1 / ratio).toPrecision(3);
    if (shown(guess()) === shown(C.answer)) return "spot on";
    const side = ratio > 1 ? "high" : "low", orders = Math.round(Math.log10(off));
    const gap = off < 2 ? Math.max(1, Math.round(100 * Math.abs(ratio - 1))) + " % too " + side
      : +off.toPrecision(2) + " times too " + side;
    const far = (orders > 1 ? orders + " orders" : "an order") + " of magnitude away";
    const sizes = [[1.1, "as good as right"], [1.4, "close"], [3, "roughly the size"], [10, "far off"]];
    return gap + ", " + (sizes.find(([most]) => off < most) || [0, far])[1];
  };
  slider.addEventListener("input", () => { moved = true; show(); });
  root.querySelector("button").addEventListener("click", () => {
    told.textContent = !moved ? "Guess first: the slider was not moved."
      : C.by[0].toUpperCase() + C.by.slice(1) + " says " + shown(C.answer) + ". Your guess, " + shown(guess())
        + ", is " + verdict() + "." + (C.why ? " " + C.why : "");
  });
  show();
};
