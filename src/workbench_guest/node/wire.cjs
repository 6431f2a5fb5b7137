'use strict';
// The thread that speaks the Jupyter protocol: sockets, the queue of requests, states, interrupts. Cells run in the main thread,
// so this one answers whatever they do.

const { parentPort, workerData } = require('worker_threads');
const path = require('path');
const { Messages } = require('./messages.cjs');
const { router, echo, Publisher } = require('./sockets.cjs');
const { Reader, NOW } = require('./ring.cjs');
const { Outgoing } = require('./outgoing.cjs');
const { Interrupter } = require('./interrupter.cjs');
const { History } = require('./history.cjs');
const { kernelInfo } = require('./about.cjs');

// Who asks to shut down has its answer before; a cell that runs on is not waited for.
const LEAVE_TIMEOUT_MS = 500;

class Wire {
  constructor(connection, ring) {
    this.messages = new Messages(connection);
    this.publisher = new Publisher({
      room: () => this.outgoing.drain(),
      subscribed: (peer, prefix) => this.#welcome(peer, prefix),
    });
    this.outgoing = new Outgoing(new Reader(ring), this.publisher, this.messages, (head, content) => this.#told(head, content));
    this.interrupter = new Interrupter((message) => parentPort.postMessage(message), () => this.current?.id);
    this.history = new History();
    this.queue = [];
    this.current = null;
    this.executions = 0;
    this.lastId = 0;
    this.connection = connection;
  }

  /** All five sockets are there when it is done. */
  async open() {
    const shell = router((peer, frames) => this.#shell(peer, frames));
    const control = router((peer, frames) => this.#control(peer, frames));
    const stdin = router(() => {});
    this.sockets = [shell, control, stdin, echo(), this.publisher];
    const names = ['shell', 'control', 'stdin', 'hb', 'iopub'];
    await Promise.all(this.sockets.map((socket, index) => socket.listen(this.#place(this.connection[`${names[index]}_port`]))));
    this.#status('starting', null);
  }

  #place(port) {
    const { transport, ip } = this.connection;
    return transport === 'ipc' ? { path: path.resolve(`${ip}-${port}`) } : { host: ip, port };
  }

  // What the main thread says without waiting for its turn among outputs.
  heard(message) {
    if (message === 'drain') {
      this.interrupter.leave();
      this.outgoing.drainForLeaving();
    } else if (message === 'again') this.#askAgain();
    else if (message === NOW) this.outgoing.drain();
    else this.outgoing.drainSoon();
  }

  #welcome(peer, prefix) {
    const frames = this.messages.frames('iopub_welcome', { subscription: prefix.toString() }, null);
    this.publisher.tell(peer, Buffer.from('iopub_welcome'), frames);
  }

  #shell(peer, frames) {
    const message = this.messages.read(frames);
    if (message === null) return;
    this.queue.push({ peer, message });
    this.#next();
  }

  #next() {
    while (this.current === null && this.queue.length > 0) this.#begin(this.queue.shift());
  }

  #begin(request) {
    const { header, content } = request.message;
    this.#status('busy', request);
    if (header.msg_type === 'execute_request') return this.#execute(request, content);
    const answer = this.#ownAnswer(header.msg_type, content);
    if (answer !== null) return this.#finish(request, answer);
    if (!['complete_request', 'inspect_request', 'is_complete_request', 'workbench_variables_request'].includes(header.msg_type)) {
      return this.#status('idle', request);
    }
    return this.#ask(request, { kind: header.msg_type, content });
  }

  // What this thread knows by itself; null for what the other one does.
  #ownAnswer(kind, content) {
    switch (kind) {
      case 'kernel_info_request':
        return kernelInfo();
      case 'history_request':
        return { status: 'ok', history: this.history.found(content) };
      case 'comm_info_request':
        return { status: 'ok', comms: {} };
      default:
        return null;
    }
  }

  #execute(request, content) {
    const code = String(content.code ?? '');
    const isSilent = Boolean(content.silent);
    const isStored = !isSilent && content.store_history !== false;
    if (isStored) {
      this.executions += 1;
      this.history.add(this.executions, code);
    }
    // From here on what is printed belongs to this cell, and not to the one before.
    this.outgoing.begin(request.message);
    if (!isSilent) this.#announce('execute_input', { code, execution_count: this.executions }, request.message);
    this.#ask(request, {
      kind: 'execute_request',
      content: { ...content, code, silent: isSilent },
      executionCount: this.executions,
      name: isStored ? `cell ${this.executions}` : `cell after ${this.executions}`,
    });
  }

  #ask(request, question) {
    this.lastId += 1;
    this.current = { ...request, id: this.lastId, question: { ...question, id: this.lastId } };
    parentPort.postMessage(this.current.question);
  }

  // An interrupt that came too late for one cell has swallowed the next one's beginning.
  #askAgain() {
    if (this.current !== null) parentPort.postMessage(this.current.question);
  }

  // The answer to what was asked last comes after all of its output.
  #told({ id }, content) {
    const request = this.current;
    if (request?.id !== id) return;
    this.current = null;
    const { messageMetadata, ...answer } = JSON.parse(content);
    this.#finish(request, answer, messageMetadata);
    const stops = request.question.kind === 'execute_request' && request.message.content.stop_on_error !== false;
    if (stops && answer.status === 'error') this.#abortQueued();
    this.#next();
  }

  #abortQueued() {
    const kept = [];
    for (const request of this.queue.splice(0)) {
      if (request.message.header.msg_type !== 'execute_request') kept.push(request);
      else this.#abort(request);
    }
    this.queue = kept;
  }

  #abort(request) {
    this.#status('busy', request);
    this.#finish(request, { status: 'aborted', execution_count: this.executions });
  }

  #finish(request, answer, metadata = null) {
    this.#reply(request, answer, metadata);
    this.#status('idle', request);
  }

  #reply(request, answer, metadata = null) {
    const { message, peer } = request;
    const kind = message.header.msg_type.replace(/_request$/, '_reply');
    const isCell = kind === 'execute_reply';
    const more = isCell ? { execution_count: this.executions } : {};
    peer.send([...message.identities, ...this.messages.frames(kind, { ...more, ...answer }, message, metadata)]);
  }

  #status(state, request) {
    this.#announce('status', { execution_state: state }, request?.message ?? null);
  }

  #announce(kind, content, parent) {
    this.publisher.publish(Buffer.from(kind), this.messages.frames(kind, content, parent));
  }

  #control(peer, frames) {
    const message = this.messages.read(frames);
    if (message === null) return;
    const request = { peer, message };
    this.#status('busy', request);
    const kind = message.header.msg_type;
    if (kind === 'interrupt_request') this.interrupter.interrupt();
    const answer = kind === 'interrupt_request' ? { status: 'ok' } : this.#ownAnswer(kind, message.content);
    if (kind === 'shutdown_request') this.#leave(request);
    else if (answer !== null) this.#finish(request, answer);
    else this.#status('idle', request);
  }

  #leave(request) {
    this.#finish(request, { status: 'ok', restart: Boolean(request.message.content.restart) });
    parentPort.postMessage({ kind: 'leave' });
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LEAVE_TIMEOUT_MS);
  }
}

const wire = new Wire(workerData.connection, workerData.ring);
parentPort.on('message', (message) => wire.heard(message));
wire.open();
