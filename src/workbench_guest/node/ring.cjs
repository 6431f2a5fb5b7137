'use strict';
// A queue of records in shared memory, from the thread that runs cells to the one that speaks to the world. Who writes into a
// full one waits: a cell cannot print faster than it is read. What a record means is left to both sides.

const HEAD = 0; // bytes written so far, modulo 2^32
const TAIL = 1; // bytes read so far
const BELL = 2; // what the reader has been told: nothing, that something is there, that it is urgent
const GONE = 3; // the reader has sent everything that was written before this was set
const HEADER_BYTES = 8;
// Pages of it are touched as it goes round, so this is also what it costs.
const RING_BYTES = 1 << 20;
// A part of a record is at most this long, so that reader and writer work at the same time.
const PART_BYTES = 128 * 1024;
// After which a writer looks again; a bell may have been lost with a cell that was ended.
const LOOK_AGAIN_MS = 50;
const QUIET = 0;
const SOON = 1;
const NOW = 2;

/** The shared memory of a new ring. */
function makeRing() {
  return { marks: new SharedArrayBuffer(16), bytes: new SharedArrayBuffer(RING_BYTES) };
}

/** The side of the thread that runs cells. May be ended in the middle of anything: what is not published was never there. */
class Writer {
  constructor(ring, port) {
    this.marks = new Int32Array(ring.marks);
    this.bytes = Buffer.from(ring.bytes);
    this.port = port;
    this.header = Buffer.alloc(HEADER_BYTES);
  }

  /** Waits for room. `kind` is a whole number. */
  write(kind, payload, urgency) {
    const size = HEADER_BYTES + payload.length;
    this.#waitForRoom(size);
    this.header.writeUInt32LE(payload.length, 0);
    this.header.writeUInt32LE(kind, 4);
    const head = Atomics.load(this.marks, HEAD) >>> 0;
    this.#copy(this.header, head);
    this.#copy(payload, head + HEADER_BYTES);
    Atomics.store(this.marks, HEAD, (head + size) | 0);
    this.ring(urgency);
  }

  /** Has the reader look, in its own time or at once. */
  ring(urgency) {
    const before = Atomics.load(this.marks, BELL);
    if (before >= urgency) return;
    Atomics.store(this.marks, BELL, urgency);
    this.port.postMessage(urgency);
  }

  /** Until everything is sent, or time is up. */
  drain(timeoutMs) {
    Atomics.store(this.marks, GONE, 0);
    this.port.postMessage('drain');
    return Atomics.wait(this.marks, GONE, 0, timeoutMs) !== 'timed-out';
  }

  #waitForRoom(size) {
    for (;;) {
      const tail = Atomics.load(this.marks, TAIL);
      const used = (Atomics.load(this.marks, HEAD) - tail) >>> 0;
      if (used + size <= RING_BYTES) return;
      this.port.postMessage(NOW);
      Atomics.wait(this.marks, TAIL, tail, LOOK_AGAIN_MS);
    }
  }

  #copy(from, position) {
    const start = position % RING_BYTES;
    const first = Math.min(from.length, RING_BYTES - start);
    this.bytes.set(first === from.length ? from : from.subarray(0, first), start);
    if (first < from.length) this.bytes.set(from.subarray(first), 0);
  }
}

/** The other side. */
class Reader {
  constructor(ring) {
    this.marks = new Int32Array(ring.marks);
    this.bytes = Buffer.from(ring.bytes);
  }

  /** From now on the writer rings again. */
  answerBell() {
    Atomics.store(this.marks, BELL, QUIET);
  }

  /** How many bytes wait. */
  waiting() {
    return (Atomics.load(this.marks, HEAD) - Atomics.load(this.marks, TAIL)) >>> 0;
  }

  /** The next record, copied out; null if there is none. */
  read() {
    if (this.waiting() === 0) return null;
    const tail = Atomics.load(this.marks, TAIL) >>> 0;
    const header = this.#copied(tail, HEADER_BYTES);
    const length = header.readUInt32LE(0);
    const payload = this.#copied(tail + HEADER_BYTES, length);
    Atomics.store(this.marks, TAIL, (tail + HEADER_BYTES + length) | 0);
    Atomics.notify(this.marks, TAIL);
    return { kind: header.readUInt32LE(4), payload };
  }

  /** For a writer that waits until everything is gone. */
  tellDrained() {
    Atomics.store(this.marks, GONE, 1);
    Atomics.notify(this.marks, GONE);
  }

  #copied(position, length) {
    const start = position % RING_BYTES;
    const first = Math.min(length, RING_BYTES - start);
    const copy = Buffer.allocUnsafe(length);
    copy.set(this.bytes.subarray(start, start + first), 0);
    if (first < length) copy.set(this.bytes.subarray(0, length - first), first);
    return copy;
  }
}

module.exports = { makeRing, Writer, Reader, PART_BYTES, RING_BYTES, SOON, NOW };
