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
    const copies = Array.from({ length: at.in_step }, () => ({ line: [], head: 0, reading: [], heap: [], n: 0,
      made: 0, waited: 0, held: 0, contexts: 0, stopped: 0, pause: 0,
      paused: 0 }));
    const own = { clock: 0, load: 0, begun: 0, each: 0, preempted: 0, gaps: [], copies };
    const waits = (copy) => copy.line.length > copy.head;
    const holds = (copy) => copy.line.length - copy.head + copy.reading.length + copy.n;
    let ids = 0;
    const join = (copy, r) => {
      r.since = copy.made;
      copy.n++;
      copy.contexts += r.prompt + r.done;
      push(copy.heap, [copy.made + r.output - r.done, ids++, r]);
    };
    // Sequences that a copy decodes from the start on, as far as there is memory for them.
    own.fill = (copy, sequences) => {
      for (const r of sequences) {
        const held = r.prompt + (policy.reserve ? r.output : r.done);
        if (copy.held + held > at.tokens) continue;
        copy.held += held;
        join(copy, r);
        own.load++;
      }
    };
    own.add = (r, copy) => {
      if (!own.load) {
        own.clock = Math.max(own.clock, r.came);
        const [base, slope] = at.step(1);
        r.extra = base + slope * r.prompt;
      } else if (own.begun <= r.came && r.came < own.clock) r.extra = (r.came - own.begun) % own.each;
      copy.line.push(r);
      own.load++;
    };
    const packOf = (copy, budget) => {
      const found = [];
      for (const r of copy.reading) {
        const take = Math.min(r.left, budget);
        if (take > 0) { found.push([r, take]); budget -= take; }
      }
      while (budget >= 1 && waits(copy) && copy.n + copy.reading.length < policy.seqs) {
        const r = copy.line[copy.head], need = r.context + (policy.reserve ? r.output - r.done : 0);
        if (copy.held + need > at.tokens && copy.n + copy.reading.length) break;
        copy.head++;
        if (copy.head > 4096) { copy.line = copy.line.slice(copy.head); copy.head = 0; }
        copy.held += need;
        copy.reading.push(r);
        if (r.begun == null) r.begun = own.clock;
        const take = Math.min(r.left, budget);
        found.push([r, take]);
        budget -= take;
      }
      return found;
    };
    const preempt = (copy) => {
      while (copy.held > at.tokens && copy.n > 1) {
        const newer = (a, b) => (b.came > a.came || (b.came === a.came && b.number > a.number) ? b : a);
        const last = copy.heap.map((entry) => entry[2]).reduce(newer), heap = copy.heap;
        copy.heap = [];
        heap.forEach((entry) => { if (entry[2] !== last) push(copy.heap, entry); });
        last.done += copy.made - last.since;
        const now = last.prompt + last.done;
        copy.held -= now;
        copy.contexts -= now;
        copy.n--;
        if (last.fresh) last.seconds *= now / last.fresh;
        last.context = last.left = last.fresh = now;
        own.preempted++;
        copy.line = [last].concat(copy.line.slice(copy.head));
        copy.head = 0;
      }
    };
    const finish = (copy, r, done) => {
      copy.held -= r.prompt + r.output;
      own.load--;
      r.end = own.clock;
      done.push(r);
    };
    own.event = (until) => {
      const done = [], packs = copies.map(() => null);
      const want = copies.filter((c) => waits(c) || c.reading.length);
      let hold = 0, reads = false, read = 0;
      if (want.length && (policy.balance || policy.wait) && !copies.some((c) => c.reading.length)) {
        const waited = Math.max(...want.map((c) => c.waited)), alive = copies.filter(holds).length;
        hold = Math.max(((want.length < alive && policy.balance) || policy.wait) - waited, 0);
      }
      if (want.length && !hold) copies.forEach((copy, k) => {
        if (!waits(copy) && !copy.reading.length) return;
        const pack = packs[k] = packOf(copy, policy.budget - (policy.rides ? copy.n : 0));
        reads = reads || pack.length > 0;
        let sum = 0;
        for (const [r, tokens] of pack) if (r.fresh) sum += tokens / r.fresh * r.seconds;
        read = Math.max(read, sum);
      });
      let each = 0, grows = 0, steps = 1, seconds;
      for (const copy of copies) if (copy.n) {
        const [base, slope] = at.step(copy.n), took = base + slope * copy.contexts / copy.n;
        if (took > each) { each = took; grows = slope; }
      }
      if (!each) {
        const first = packs.find((pack) => pack && pack.length), [base, slope] = at.step(1);
        each = base + slope * (first ? first[0][0].prompt : 0);
      }
      const pause = read > 0 && !policy.rides;
      if (reads) seconds = read + (pause ? 0 : each);
      else {
        steps = Infinity;
        for (const copy of copies) if (copy.n) steps = Math.min(steps, copy.heap[0][0] - copy.made);
        if (steps === Infinity) steps = 1;
        if (hold) steps = Math.min(steps, hold);
        const left = until - own.clock, plain = each - grows / 2;
        if (left < steps * (plain + grows * steps / 2)) {
          const most = 2 * left / (plain + Math.sqrt(plain * plain + 2 * grows * left));
          steps = Math.min(steps, Math.max(Math.trunc(most - 1e-9) + 1, 1));
        }
        if (!policy.reserve) for (const copy of copies)
          if (copy.n && copy.held + copy.n * steps > at.tokens)
            steps = Math.max(Math.min(steps, Math.trunc((at.tokens - copy.held) / copy.n)), 1);
        seconds = steps * (each + grows * (steps - 1) / 2);
      }
      own.clock += seconds;
      own.each = each;
      own.begun = own.clock - (steps === 1 ? seconds : each);
      copies.forEach((copy, k) => {
        copy.waited = hold && waits(copy) ? copy.waited + steps : 0;
        if (pause && copy.n) {
          copy.stopped ||= copy.n;
          copy.pause += seconds;
          copy.paused += copy.n * seconds;
        } else if (copy.n) {
          copy.made += steps;
          copy.contexts += copy.n * steps;
          if (!policy.reserve) copy.held += copy.n * steps;
          const later = copy.n - copy.stopped; // those that joined meanwhile wait less
          const rest = later ? (copy.paused - copy.stopped * copy.pause) / later : 0;
          count(own, (seconds + copy.pause) / steps, copy.stopped * steps);
          count(own, (seconds + rest) / steps, later * steps);
          copy.stopped = copy.pause = copy.paused = 0;
          while (copy.heap.length && copy.heap[0][0] <= copy.made) {
            const r = pop(copy.heap)[2];
            copy.n--;
            copy.contexts -= r.prompt + r.output;
            finish(copy, r, done);
          }
          if (copy.held > at.tokens && !policy.reserve) preempt(copy);
        }
        for (const [r, tokens] of packs[k] || []) {
          r.left -= tokens;
          if (r.left > 0) continue;
          copy.reading.splice(copy.reading.indexOf(r), 1);
          if (r.first == null) {
            r.first = own.clock;
            r.done = 1;
            if (!policy.reserve) copy.held++;
          }
          if (r.done >= r.output) { finish(copy, r, done); continue; }
          join(copy, r);
        }
      });
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
    return { first: mean(kept.map((r) => r.first - r.came + r.extra + (at.door + at.late))), gap: each,
      waits: mean(kept.map((r) => r.begun - r.came)), running: lives / time };
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
