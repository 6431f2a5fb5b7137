'use strict';
// Ends the cell that runs, and leaves everything else as it is. First the main thread is asked, which hears it if the cell is
// waiting; if it does not, it is busy, and what it executes is terminated through V8's inspector.

// The signal that came with the interrupt ends a child that is waited for first. Terminating the main thread while it waits
// in the system for one has brought V8 down.
const SIGNAL_FIRST_MS = 100;
const SOFTLY_MS = 20;
const AGAIN_MS = 300;
const MOST_TRIES = 30;

class Interrupter {
  #session = null;
  #isTrying = 0;

  /** `say` reaches the main thread; `running` is the number of what it does, or undefined. */
  constructor(say, running) {
    this.say = say;
    this.running = running;
  }

  /** Of the cell that runs now; of none, if there is none. */
  interrupt() {
    const id = this.running();
    if (id === undefined || id === this.#isTrying) return;
    this.#isTrying = id;
    setTimeout(() => this.#unlessOver(id, () => this.say({ kind: 'interrupt', id })), SOFTLY_MS);
    setTimeout(() => this.#terminate(id, 1), SIGNAL_FIRST_MS);
  }

  #unlessOver(id, then) {
    if (this.running() === id) then();
    else if (this.#isTrying === id) this.#isTrying = 0;
  }

  #terminate(id, tries) {
    this.#unlessOver(id, () => {
      // One at a time: a second one would wait until this one is done, and hit what runs after the cell.
      this.#connected().post('Runtime.terminateExecution', () => {
        this.say({ kind: 'check', id });
        if (tries < MOST_TRIES) setTimeout(() => this.#terminate(id, tries + 1), AGAIN_MS);
        else this.#isTrying = 0;
      });
    });
  }

  /** The main thread ends, and would wait for whoever looks into it. */
  leave() {
    this.#session?.disconnect();
    this.#session = null;
  }

  #connected() {
    if (this.#session === null) {
      const { Session } = require('inspector');
      this.#session = new Session();
      this.#session.connectToMainThread();
    }
    return this.#session;
  }
}

module.exports = { Interrupter };
