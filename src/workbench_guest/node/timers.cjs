'use strict';
// Which timers a cell has made, so that an interrupt of the cell ends them: what waits for one is not gone on with later.

const CLEAR = new Map([['setTimeout', clearTimeout], ['setInterval', clearInterval], ['setImmediate', clearImmediate]]);
// So many are kept before those that are over are looked for.
const FEW = 10_000;

/** Has `running()`, the cell or null, keep what is made while it runs. */
function installTimers(running) {
  for (const [name, clear] of CLEAR) {
    const original = globalThis[name];
    const noting = (...given) => {
      const timer = original(...given);
      running()?.timers.add(timer, clear);
      return timer;
    };
    // What util.promisify makes of it is among them.
    Object.defineProperties(noting, Object.getOwnPropertyDescriptors(original));
    globalThis[name] = noting;
  }
}

/** Those of one cell. */
class Timers {
  #made = [];
  #most = FEW;

  add(timer, clear) {
    this.#made.push({ timer, clear });
    if (this.#made.length < this.#most) return;
    this.#made = this.#made.filter((one) => !one.timer._destroyed);
    this.#most = Math.max(FEW, 2 * this.#made.length);
  }

  clear() {
    for (const { timer, clear } of this.#made) clear(timer);
    this.#made = [];
  }
}

module.exports = { installTimers, Timers };
