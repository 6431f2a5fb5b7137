'use strict';
// Expressions in the context of the cells, by V8's inspector, and the objects that they give. Always in this thread: through a
// session of another one nothing could be terminated.

const SLOT = '$workbench_slot';
const GROUP = 'cell';

class Evaluator {
  constructor(session) {
    this.session = session;
    this.pending = new Set();
    this.#reach();
  }

  // The one place by which objects come out of the inspector is a function that only this file has.
  #reach() {
    this.take = (value) => {
      this.taken = value;
    };
    globalThis[SLOT] = this.take;
    this.session.post('Runtime.evaluate', { expression: SLOT }, (_, { result }) => {
      this.takeId = result.objectId;
    });
    delete globalThis[SLOT];
  }

  /** `done(answer)`, with what the inspector says: a result or exceptionDetails; or null, if it was terminated. */
  run(code, done) {
    const parameters = { expression: code, replMode: true, awaitPromise: true, silent: true, objectGroup: GROUP };
    const kept = this.#keepNextPromise();
    this.session.post('Runtime.evaluate', parameters, (error, answer) => {
      kept.release();
      done(error ? null : answer);
    });
    kept.stop();
  }

  // The inspector awaits the promise of the whole text, but does not hold it. If it were collected, as one that nothing can
  // fulfil any more is, the inspector would tell so in the middle of that, and V8 would end the process. It is the first
  // promise that is made; one that stays pending, such as that of an interrupted cell, is held for good.
  #keepNextPromise() {
    const { onInit } = require('v8').promiseHooks;
    let promise = null;
    const stop = onInit((first) => {
      // Only the first: user code may make many.
      if (promise !== null) return;
      promise = first;
      this.pending.add(first);
    });
    return { stop, release: () => this.pending.delete(promise) };
  }

  /** The value of an expression, at once; undefined if there is none, or if it would change something. */
  look(expression, isSafe = true) {
    let found;
    const parameters = { expression, throwOnSideEffect: isSafe, silent: true, objectGroup: GROUP, timeout: isSafe ? 500 : undefined };
    this.session.post('Runtime.evaluate', parameters, (error, answer) => {
      if (!error && !answer.exceptionDetails) found = this.valueOf(answer.result);
    });
    return found;
  }

  /** The object itself. */
  valueOf(remote) {
    if ('value' in remote) return remote.value;
    if (remote.unserializableValue !== undefined) return unserializable(remote.unserializableValue);
    if (remote.objectId === undefined) return undefined;
    this.session.post('Runtime.callFunctionOn', {
      functionDeclaration: 'function (value) { this(value); }',
      objectId: this.takeId,
      arguments: [{ objectId: remote.objectId }],
      silent: true,
    });
    const value = this.taken;
    this.taken = undefined;
    return value;
  }

  /** Names of let, const and class. */
  lexicalNames() {
    let names = [];
    this.session.post('Runtime.globalLexicalScopeNames', (error, answer) => {
      if (!error) names = answer.names;
    });
    return names;
  }

  /** What the inspector keeps for whoever might ask again. */
  release() {
    this.session.post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
  }
}

function unserializable(text) {
  return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
}

module.exports = { Evaluator };
