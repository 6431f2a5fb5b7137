'use strict';
// What a cell gives out, from the ring to the readers of iopub: pieces of text are put together, and nothing is taken out while a
// reader is far behind.

const { STDOUT, STDERR, OPEN, PART } = require('./records.cjs');

// Text that comes little by little is sent that often.
const BATCH_MS = 10;
const MOST_TEXT_BYTES = 256 * 1024;
// After which others have their turn: interrupts, heartbeats.
const TURN_BYTES = 4 * 1024 * 1024;
const STREAMS = new Map([[STDOUT, 'stdout'], [STDERR, 'stderr']]);

class Outgoing {
  #timer = null;
  #text = [];
  #textBytes = 0;
  #stream = STDOUT;
  #head = null;
  #parts = [];
  #parent = null;
  #isLeaving = false;

  /** `told` gets what is an answer, and not for iopub. */
  constructor(reader, publisher, messages, told) {
    this.reader = reader;
    this.publisher = publisher;
    this.messages = messages;
    this.told = told;
  }

  /** What comes from now on belongs to `parent`. */
  begin(parent) {
    this.drain();
    this.#parent = parent;
  }

  drainSoon() {
    this.#timer ??= setTimeout(() => this.drain(), BATCH_MS);
  }

  /** As far as readers take it. */
  drain() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.reader.answerBell();
    for (let taken = 0; !this.publisher.isFull(); ) {
      const record = this.reader.read();
      if (record === null) break;
      this.#took(record);
      taken += record.payload.length;
      if (taken > TURN_BYTES) {
        setImmediate(() => this.drain());
        break;
      }
    }
    this.#flush();
    this.#tellIfGone();
  }

  /** The main thread waits with its end. */
  drainForLeaving() {
    this.#isLeaving = true;
    this.drain();
  }

  #tellIfGone() {
    if (!this.#isLeaving || this.reader.waiting() > 0) return;
    if (this.publisher.backlog() === 0) this.reader.tellDrained();
  }

  #took({ kind, payload }) {
    if (STREAMS.has(kind)) return this.#tookText(kind, payload);
    if (kind === OPEN) {
      // The one before may have been cut off in the middle, with its cell.
      this.#head = JSON.parse(payload);
      this.#parts = [];
      return undefined;
    }
    this.#parts.push(payload);
    if (kind === PART || this.#head === null) return undefined;
    const content = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    const head = this.#head;
    this.#head = null;
    this.#parts = [];
    return this.#send(head, content);
  }

  #send(head, content) {
    this.#flush();
    if (head.type === 'answer') this.told(head, content);
    else this.#publish(head.type, content);
  }

  #tookText(stream, bytes) {
    if (stream !== this.#stream || this.#textBytes > MOST_TEXT_BYTES) this.#flush();
    this.#stream = stream;
    this.#text.push(bytes);
    this.#textBytes += bytes.length;
  }

  #flush() {
    if (this.#textBytes === 0) return;
    const text = Buffer.concat(this.#text).toString('utf8');
    this.#text = [];
    this.#textBytes = 0;
    this.#publish('stream', { name: STREAMS.get(this.#stream), text });
  }

  #publish(kind, content) {
    this.publisher.publish(Buffer.from(kind), this.messages.frames(kind, content, this.#parent));
  }
}

module.exports = { Outgoing };
