// What a replica does, event by event: tokenprice.replica, with the same random numbers.
globalThis.inferlibReplica = (() => {
  "use strict";
  const FAR = 1e18;
  // Numbers between 0 and 1 (mulberry32, whose state counts up).
  const uniforms = (seed, stream, n) => {
    const base = (Math.imul(seed, 0x9E3779B1) + Math.imul(stream, 0x85EBCA77)) >>> 0;
    return Array.from({ length: n }, (_, k) => {
      let t = (base + Math.imul(k + 1, 0x6D2B79F5)) >>> 0;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
    });
  };
  const lengths = (at, seed, n, spread = 0) => {
    const drawn = uniforms(seed, 2, n), { answers } = at, one = answers.length === 1;
    const tokens = drawn.map((u) => (one ? answers[0] * (1 + spread * (2 * u - 1))
      : answers[Math.floor(u * answers.length)]));
    return [uniforms(seed, 1, n).map((u) => Math.floor(u * at.prompts.length)),
      tokens.map((v) => Math.max(Math.floor(v + 0.5), 1))];
  };
  // Sequences by the step in which they end, the oldest first.
  const before = (a, b) => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
  const push = (heap, entry) => {
    let i = heap.push(entry) - 1;
    while (i) {
      const up = (i - 1) >> 1;
      if (!before(entry, heap[up])) break;
      heap[i] = heap[up]; i = up;
    }
    heap[i] = entry;
  };
  const pop = (heap) => {
    const top = heap[0], entry = heap.pop();
    if (!heap.length) return top;
    let i = 0;
    for (;;) {
      let c = 2 * i + 1;
      if (c >= heap.length) break;
      if (c + 1 < heap.length && before(heap[c + 1], heap[c])) c++;
      if (!before(heap[c], entry)) break;
      heap[i] = heap[c]; i = c;
    }
    heap[i] = entry;
    return top;
  };

  const replica = (at, policy) => {
    const copies = Array.from({ length: at.in_step }, () => ({ line: [], head: 0, reading: [],
      running: new Map(), waited: 0, kept: 0, contexts: 0, base: 0, slope: 0, full: Infinity }));
    const own = { clock: 0, load: 0, begun: 0, each: 0, preempted: 0, gaps: [], copies };
    const prompted = new Set(), heap = []; // sequences by the step in which they end
    const waits = (copy) => copy.line.length > copy.head;
    const sequences = (copy) => copy.reading.length + copy.running.size;
    let ids = 0, made = 0, n = 0, wait = 0;
    const later = new Map();
    const used = (copy) => copy.kept + (policy.reserve ? 0 : copy.contexts + copy.running.size * made);
    const update = (copy) => {
      const size = copy.running.size;
      Object.assign(copy, { base: 0, slope: 0, full: Infinity });
      if (!size) return;
      const [base, slope] = at.step(size);
      copy.slope = slope;
      copy.base = base + slope * copy.contexts / size;
      if (!policy.reserve && size > 1) copy.full = (at.tokens - copy.kept - copy.contexts) / size;
    };
    const join = (copy, r) => {
      Object.assign(r, { since: made, entry: ids++, copy });
      copy.running.set(r.number, r);
      copy.contexts += r.prompt + r.done - made;
      push(heap, [made + r.output - r.done, r.entry, r]);
      n++;
      if (wait) later.set(wait, (later.get(wait) || 0) + 1);
      update(copy);
    };
    const leave = (r) => {
      const { copy } = r;
      r.entry = null;
      r.done += made - r.since;
      copy.running.delete(r.number);
      copy.contexts -= r.prompt + r.done - made;
      while (heap.length && heap[0][2].entry !== heap[0][1]) pop(heap);
      n--;
      update(copy);
    };
    // Sequences that a copy decodes from the start on, as far as there is memory for them.
    own.fill = (copy, begun) => {
      for (const r of begun) {
        const held = r.prompt + (policy.reserve ? r.output : r.done);
        if (used(copy) + held > at.tokens) continue;
        if (policy.reserve) copy.kept += held;
        join(copy, r);
        own.load++;
      }
    };
    own.add = (r, copy) => {
      if (!own.load) own.clock = Math.max(own.clock, r.came);
      else if (own.begun <= r.came && r.came < own.clock) r.extra = (r.came - own.begun) % own.each;
      copy.line.push(r);
      prompted.add(copy);
      own.load++;
    };
    const packOf = (copy) => {
      const found = [];
      let budget = policy.budget - (policy.rides ? copy.running.size : 0);
      const take = (r) => {
        const tokens = Math.min(r.left, budget);
        if (tokens > 0 || !r.left) found.push([r, tokens]);
        budget -= Math.max(tokens, 0);
      };
      copy.reading.forEach(take);
      while (budget >= 1 && waits(copy) && sequences(copy) < policy.seqs) {
        const r = copy.line[copy.head], need = r.context + (policy.reserve ? r.output - r.done : 0);
        if (used(copy) + need > at.tokens && sequences(copy)) break;
        const whole = (policy.reserve || policy.balance) && r.left <= policy.budget;
        if (whole && found.length && r.left > budget) break;
        copy.head++;
        if (copy.head > 4096) { copy.line = copy.line.slice(copy.head); copy.head = 0; }
        copy.kept += need;
        copy.reading.push(r);
        if (r.begun == null) r.begun = own.clock;
        take(r);
      }
      return found;
    };
    const preempt = (copy) => {
      while (used(copy) > at.tokens && copy.running.size > 1) {
        const last = copy.running.get(Math.max(...copy.running.keys()));
        leave(last);
        const now = last.prompt + last.done;
        if (last.fresh) last.seconds *= now / last.fresh;
        last.context = last.left = last.fresh = now;
        own.preempted++;
        copy.line = [last].concat(copy.line.slice(copy.head));
        copy.head = 0;
        prompted.add(copy);
      }
    };
    const finish = (r, copy, done) => {
      if (policy.reserve) copy.kept -= r.prompt + r.output;
      own.load--;
      r.end = own.clock;
      done.push(r);
    };
    const toHold = () => {
      const want = [...prompted];
      if (!want.length || !(policy.balance || policy.wait) || want.some((c) => c.reading.length)) return 0;
      const others = want.length < copies.length && copies.every((copy) => copy.running.size);
      const most = (others && policy.balance) || policy.wait;
      return Math.max(most - Math.max(...want.map((copy) => copy.waited)), 0);
    };
    own.event = (until) => {
      const done = [], hold = toHold(), packs = [...prompted].map((copy) => [copy, hold ? [] : packOf(copy)]);
      let read = 0, each = 0, grows = 0, steps = 1, seconds;
      for (const [, pack] of packs) {
        let sum = 0;
        for (const [r, tokens] of pack) if (r.fresh) sum += tokens / r.fresh * r.seconds;
        read = Math.max(read, sum);
      }
      for (const copy of copies) {
        const took = copy.base + copy.slope * made;
        if (took > each) { each = took; grows = copy.slope; }
      }
      const some = packs.find(([, pack]) => pack.length), pause = read > 0 && !policy.rides;
      if (!each) {
        const [base, slope] = at.step(1);
        each = base + slope * (some ? some[1][0][0].prompt : 0);
      }
      const alone = n || pause ? 0 : each; // nothing decodes
      if (some) seconds = read + (pause ? 0 : each);
      else if (wait) seconds = each;
      else {
        if (heap.length) steps = heap[0][0] - made;
        if (hold) steps = Math.min(steps, hold);
        const left = until - own.clock, plain = each - grows / 2;
        if (left < steps * (plain + grows * steps / 2)) {
          const most = 2 * left / (plain + Math.sqrt(plain * plain + 2 * grows * left));
          steps = Math.min(steps, Math.max(Math.trunc(most - 1e-9) + 1, 1));
        }
        const room = copies.reduce((least, copy) => Math.min(least, copy.full), Infinity) - made;
        if (room < steps) steps = Math.max(Math.trunc(room), 1);
        seconds = steps * (each + grows * (steps - 1) / 2);
      }
      own.clock += seconds;
      own.each = each;
      own.begun = own.clock - (steps === 1 ? seconds : each);
      for (const [copy, pack] of packs) copy.waited = pack.length ? 0 : copy.waited + steps;
      if (pause) wait += seconds;
      else if (n) {
        made += steps;
        let early = n;
        for (const [missed, some] of later) { // those that joined meanwhile wait less
          early -= some;
          count(own, (seconds + wait - missed) / steps, some * steps);
        }
        count(own, (seconds + wait) / steps, early * steps);
        wait = 0;
        later.clear();
        while (heap.length && heap[0][0] <= made) {
          const r = heap[0][2];
          leave(r);
          finish(r, r.copy, done);
        }
        for (const copy of copies) if (made >= copy.full) preempt(copy);
      }
      for (const [copy, pack] of packs) {
        for (const [r, tokens] of pack) {
          r.left -= tokens;
          if (r.left > 0) continue;
          copy.reading.splice(copy.reading.indexOf(r), 1);
          if (!policy.reserve) copy.kept -= r.context;
          if (r.first == null) { r.first = own.clock; r.extra -= alone; r.done = 1; }
          if (r.done >= r.output) finish(r, copy, done); else join(copy, r);
        }
        update(copy);
        if (!waits(copy) && !copy.reading.length) prompted.delete(copy);
      }
      return done;
    };
    own.run = (until = FAR) => {
      const done = [];
      while (own.load && own.clock < until) for (const r of own.event(until)) done.push(r);
      return done;
    };
    return own;
  };
  const count = (own, seconds, tokens) => { if (tokens) own.gaps.push([own.clock, seconds, tokens]); };
  const request = (at, number, came, place, output, user) => ({ number, came, fresh: at.fresh[place],
    seconds: at.passes[place], prompt: at.prompts[place], output, left: at.fresh[place],
    context: at.prompts[place], done: 0, since: 0, extra: 0, user });

  // So many requests that are answered at any time: the longer an answer, the more often it is met.
  const running = (at, seed, n) => {
    const { answers } = at, all = answers.reduce((sum, v) => sum + v, 0), shares = [];
    answers.reduce((sum, v) => { shares.push((sum + v) / all); return sum + v; }, 0);
    const [places, drawn, parts] = [6, 7, 8].map((stream) => uniforms(seed, stream, n)), found = [];
    for (let k = 0; k < n; k++) {
      let low = 0, high = shares.length;
      while (low < high) {
        const i = (low + high) >> 1;
        if (shares[i] < drawn[k]) low = i + 1; else high = i;
      }
      const output = Math.floor(answers[low] + 0.5), done = Math.floor(parts[k] * (output - 1)) + 1;
      if (done < output) {
        const r = request(at, k - n, 0, Math.floor(places[k] * at.prompts.length), output);
        found.push(Object.assign(r, { begun: 0, first: 0, done }));
      }
    }
    return found;
  };
  // Requests that come at these times to a replica, until all before one of them have their first token; each
  // copy decodes so many sequences at the start.
  const play = (at, policy, came, seed, start, until) => {
    const one = replica(at, policy), [places, outputs] = lengths(at, seed, came.length);
    const found = [], copies = uniforms(seed, 4, came.length).map((u) => Math.floor(u * at.in_step));
    const begun = running(at, seed, Math.floor(start * at.in_step));
    one.copies.forEach((copy, k) => one.fill(copy, begun.filter((_, i) => i % at.in_step === k)));
    let behind = 0;
    for (let k = 0; k < came.length; k++) {
      one.run(came[k]);
      while (behind < Math.min(k, until) && found[behind].first != null) behind++;
      if (behind === until) return [found, one];
      found.push(request(at, k, came[k], places[k], outputs[k]));
      one.add(found[k], one.copies[copies[k]]);
    }
    one.run();
    return [found, one];
  };
  const mean = (list) => list.reduce((sum, v) => sum + v, 0) / list.length;
  // What is told of requests from number low to below high, in a span of the clock.
  const counted = (at, found, one, low, high, [from, to]) => {
    const kept = found.slice(low, high), last = kept[kept.length - 1];
    let seconds = 0, tokens = 0;
    for (const [clock, gap, many] of one.gaps)
      if (from <= clock && clock <= to) { seconds += gap * many; tokens += many; }
    const each = tokens && seconds / tokens, time = Math.max(last.came - kept[0].came, 1e-12);
    const lives = kept.reduce((sum, r) => sum + r.first - r.came + (r.output - 1) * each, 0);
    return { first: mean(kept.map((r) => r.first - r.came + r.extra + (at.ingress_delay + at.late))),
      gap: each, waits: mean(kept.map((r) => r.begun - r.came)), running: lives / time,
      preempted: one.preempted };
  };
  // Requests at random, so many of which are counted after others.
  const arriving = (at, policy, rate, requests, warm, start = 0, seed = 0) => {
    let sum = 0;
    const came = uniforms(seed, 0, requests + 2 * warm).map((u) => (sum += -Math.log(u) / rate));
    const last = warm + requests, [found, one] = play(at, policy, came, seed, start, last);
    return counted(at, found, one, warm, last, [came[warm], came[last - 1]]);
  };
  return { uniforms, lengths, play, counted, arriving };
})();
