'use strict';
// One cell from its text to its answer. It ends once, by itself or because it was interrupted, whichever comes first.

const { inspect, types } = require('util');
const { INTERRUPTED, problemOf, syntaxProblem } = require('./errors.cjs');
const { isHandle } = require('./displays.cjs');
const { prepared, declaredBy } = require('./source.cjs');
const { installTimers, Timers } = require('./timers.cjs');

// Before the agent's code can put others in their place.
const later = setImmediate;

class Cells {
  constructor({ output, displays, homes, names, evaluator }) {
    Object.assign(this, { output, displays, homes, names, evaluator });
    this.running = null;
    installTimers(() => this.running);
  }

  /** Answers when it is over. */
  run({ id, content, executionCount, name }) {
    const cell = { id, content, executionCount, name, timers: new Timers() };
    this.running = cell;
    try {
      this.homes.enter(content.code);
      this.before = this.names.marks();
      cell.source = `${prepared(content.code)}\n//# sourceURL=${name.replace(/ /g, '-')}`;
      this.evaluator.run(cell.source, (answer) => this.#evaluated(cell, answer));
    } catch (error) {
      this.#failed(cell, error);
    }
  }

  /** Ends the cell with that number. */
  interrupted(id) {
    const cell = this.running;
    if (cell === null || cell.id !== id) return;
    // It was over, and what should have told so was terminated.
    if (cell.reply) this.#over(cell, cell.reply);
    else {
      cell.timers.clear();
      this.#end(cell, { problem: INTERRUPTED });
    }
  }

  #evaluated(cell, answer) {
    if (answer === null) return this.interrupted(cell.id);
    const { result, exceptionDetails: details } = answer;
    const value = this.evaluator.valueOf(result);
    if (details === undefined) return this.#awaited(cell, value);
    if (types.isNativeError(value) && isOfCompiler(value, details, cell)) {
      if (this.#declaredAgain(cell, value)) return undefined;
      return this.#end(cell, { problem: syntaxProblem(value, details, cell) });
    }
    return this.#failed(cell, value);
  }

  // V8's mode for consoles takes no `let` after a function or `var` of that name, but a `var`. It says so before anything has
  // run, so that nothing runs twice. True if the cell is evaluated that way.
  #declaredAgain(cell, error) {
    if (cell.isAgain || !/ has already been declared$/.test(error.message)) return false;
    cell.isAgain = true;
    this.evaluator.run(declaredBy(cell.source, 'let', 'var'), (answer) => this.#evaluated(cell, answer));
    return true;
  }

  // A promise as the last value is waited for.
  #awaited(cell, value) {
    if (!types.isPromise(value)) return this.#succeeded(cell, value);
    return Promise.prototype.then.call(value, (got) => this.#succeeded(cell, got), (error) => this.#failed(cell, error));
  }

  #failed(cell, error) {
    this.#end(cell, { problem: problemOf(error) });
  }

  #succeeded(cell, value) {
    if (this.running !== cell) return;
    try {
      if (value !== undefined && !isHandle(value) && !cell.content.silent) this.#show(cell, value);
    } catch (error) {
      this.#failed(cell, error);
      return;
    }
    this.#end(cell, { expressions: this.#expressions(cell.content.user_expressions) });
  }

  #show(cell, value) {
    const { data, metadata } = this.displays.bundleOf(value);
    this.output.message('execute_result', { execution_count: cell.executionCount, data, metadata });
  }

  #expressions(wanted) {
    const told = {};
    for (const [name, code] of Object.entries(wanted ?? {})) {
      this.evaluator.session.post('Runtime.evaluate', { expression: String(code), silent: true }, (error, answer) => {
        const value = error ? INTERRUPTED : this.evaluator.valueOf(answer.result);
        told[name] = error || answer.exceptionDetails
          ? { status: 'error', ...problemOf(value) }
          : { status: 'ok', data: { 'text/plain': inspect(value) }, metadata: {} };
      });
    }
    return told;
  }

  // What came meanwhile was for this cell: the loop is let go round once.
  #end(cell, { problem = null, expressions = {} }) {
    if (this.running !== cell || cell.reply) return;
    if (problem !== null) this.output.message('error', problem);
    cell.reply = {
      ...(problem === null ? { status: 'ok', user_expressions: expressions, payload: [] } : { status: 'error', ...problem }),
      messageMetadata: { workbench: { ...this.#changes(), cwd: this.homes.folder() } },
    };
    later(() => this.#over(cell, cell.reply));
  }

  #changes() {
    try {
      return this.names.changes(this.before);
    } catch {
      return {};
    }
  }

  #over(cell, reply) {
    if (this.running !== cell) return;
    this.output.answer(cell.id, reply);
    this.running = null;
    this.evaluator.release();
  }
}

// Of an error that the code raises, a line of the cell is in its stack.
function isOfCompiler(error, details, cell) {
  return error instanceof SyntaxError && details.lineNumber !== undefined && !String(error.stack).includes(`<${cell.name}>:`);
}

module.exports = { Cells };
