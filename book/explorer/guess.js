window.inferlibGuess = function (C) {
  "use strict";
  const root = document.getElementById(C.id), slider = root.querySelector("input"),
    told = root.querySelector(".readout");
  const shown = (v) => (v >= 1000 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(3))) +
    " " + C.unit;
  const guess = () => { const v = Math.pow(10, +slider.value); return C.whole ? Math.round(v) : v; };
  let moved = false;
  const show = () => {
    root.querySelector("output").textContent = moved ? shown(guess()) : "not moved yet";
    slider.setAttribute("aria-valuetext", moved ? shown(guess()) : "not moved yet");
  };
  const verdict = () => {
    const ratio = guess() / C.answer, off = +Math.max(ratio, 1 / ratio).toPrecision(3), side = ratio > 1
      ? "high" : "low";
    if (shown(guess()) === shown(C.answer)) return "spot on";
    const gap = off < 2 ? Math.max(1, Math.round(100 * Math.abs(ratio - 1))) + " % too " + side
      : +off.toPrecision(2) + " times too " + side;
    const orders = Math.round(Math.log10(off)), far = orders > 1 ? orders + " orders" : "an order";
    const size = off < 1.1 ? "as good as right" : off < 1.4 ? "close" : off < 3 ? "roughly the size"
      : off < 10 ? "far off" : far + " of magnitude away";
    return gap + ", " + size;
  };
  slider.addEventListener("input", () => { moved = true; show(); });
  root.querySelector("button").addEventListener("click", () => {
    if (!moved) { told.textContent = "Guess first: the slider was not moved."; return; }
    const said = C.by[0].toUpperCase() + C.by.slice(1) + " says " + shown(C.answer) + ". ";
    told.textContent = said + "Your guess, " + shown(guess()) + ", is " + verdict() + "." + (C.why
      ? " " + C.why : "");
  });
  show();
};
