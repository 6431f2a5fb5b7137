'use strict';
// Which timers a cell has made, so that an interrupt of the cell ends them: what waits for one is not gone on with later.

const CLEAR = new Map([['setTimeout', clearTimeout], ['setInterval', clearInterval], ['setImmediate', clearImmediate]]);

/** Has `running()`, the cell or null, keep what is made while it runs. */
function installTimers(running) {
  for (const [name, clear] of CLEAR) {
    const original = globalThis[name];
    const noting = (...given) => {
      const timer = original(...given);
      running()?.timers.push(() => clear(timer));
      return timer;
    };
    // What util.promisify makes of it is among them.
    Object.defineProperties(noting, Object.getOwnPropertyDescriptors(original));
    globalThis[name] = noting;
  }
}

module.exports = { installTimers };
