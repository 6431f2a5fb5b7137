'use strict';
// The thread of the cells: takes one question at a time from the other thread, and answers it.

const { Session } = require('inspector');
const { begin } = require('./begin.cjs');
const { Cells } = require('./cells.cjs');
const { Displays } = require('./displays.cjs');
const { Evaluator } = require('./evaluating.cjs');
const { Homes } = require('./homes.cjs');
const { installErrors, described } = require('./errors.cjs');
const { Names } = require('./names.cjs');
const { installStreams } = require('./streams.cjs');

class Kernel {
  #looking = null;

  constructor(wire, output) {
    this.output = output;
    this.lastId = 0;
    const session = new Session();
    session.connect();
    const streams = installStreams(output);
    installErrors();
    const homes = new Homes();
    homes.install();
    const displays = new Displays(output);
    displays.install();
    installHelpers();
    this.evaluator = new Evaluator(session);
    this.names = new Names(this.evaluator);
    this.cells = new Cells({ output, displays, homes, names: this.names, evaluator: this.evaluator });
    this.#listen(wire, streams);
  }

  #listen(wire, streams) {
    wire.on('message', (message) => this.#heard(message));
    // It is for children of the cell; which cell it was meant for, only the message can tell: this may hear it cells later.
    process.on('SIGINT', () => {});
    process.on('uncaughtException', (error) => this.output.stderr(`Uncaught ${described(error)}\n`));
    process.on('unhandledRejection', (error) => this.output.stderr(`Uncaught (in promise) ${described(error)}\n`));
    process.on('warning', () => {});
    process.on('exit', () => {
      streams.end();
      this.output.leave();
    });
  }

  #heard(message) {
    const { kind, id, content } = message;
    if (kind === 'leave') process.exit(0);
    else if (kind === 'interrupt') this.cells.interrupted(id);
    else if (kind === 'check') this.#check(id);
    else if (id > this.lastId) {
      this.lastId = id;
      begin();
      this.#answer(kind, id, content, message);
    }
  }

  // Something was terminated: it may have been what should have ended a cell, or begun one.
  #check(id) {
    if (id > this.lastId) this.output.say('again');
    else this.cells.interrupted(id);
  }

  #answer(kind, id, content, message) {
    if (kind === 'execute_request') return void this.cells.run(message);
    try {
      return this.output.answer(id, this.#looked(kind, content));
    } catch (error) {
      return this.output.answer(id, { status: 'error', ename: 'Error', evalue: String(error?.message), traceback: [] });
    }
  }

  #looked(kind, content) {
    if (kind === 'workbench_variables_request') {
      return { status: 'ok', variables: this.names.table(Number(content.most) || 500) };
    }
    if (kind === 'is_complete_request') return require('./complete.cjs').completeness(String(content.code));
    this.#looking ??= new (require('./looking.cjs').Looking)(this.evaluator, this.names);
    return kind === 'complete_request' ? this.#looking.complete(content) : this.#looking.inspect(content);
  }
}

// Loaded when one of them is first looked at.
function installHelpers() {
  require('./offered.cjs').install();
}

module.exports = { Kernel };
