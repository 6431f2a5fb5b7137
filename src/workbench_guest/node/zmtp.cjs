'use strict';
// ZMTP 3.1 with the NULL mechanism over one stream: greeting, handshake, frames. What sockets do with messages is left to
// sockets.cjs. Written from the protocol's text (rfc.zeromq.org/spec/37).

const GREETING_BYTES = 64;
const MORE = 1;
const LONG = 2;
const COMMAND = 4;
// A cell is kilobytes; what a notebook uploads by a widget is megabytes.
const MOST_MESSAGE_BYTES = 64 * 1024 * 1024;
const MOST_FRAMES = 1024;
const MOST_COMMAND_BYTES = 64 * 1024;
// Who connects and says nothing is not waited for.
const HANDSHAKE_TIMEOUT_MS = 30_000;

function greeting() {
  const bytes = Buffer.alloc(GREETING_BYTES);
  bytes[0] = 0xff;
  bytes[8] = 1;
  bytes[9] = 0x7f;
  bytes[10] = 3;
  bytes[11] = 1;
  bytes.write('NULL', 12, 'latin1');
  return bytes;
}

/** A whole message as it travels. */
function encoded(frames) {
  const parts = [];
  frames.forEach((frame, index) => parts.push(...encodedFrame(frame, index + 1 < frames.length ? MORE : 0)));
  return Buffer.concat(parts);
}

function encodedFrame(frame, flags) {
  if (frame.length < 256) return [Buffer.from([flags, frame.length]), frame];
  const header = Buffer.alloc(9);
  header[0] = flags | LONG;
  header.writeBigUInt64BE(BigInt(frame.length), 1);
  return [header, frame];
}

function encodedCommand(name, body) {
  const frame = Buffer.concat([Buffer.from([name.length]), Buffer.from(name, 'latin1'), body]);
  return Buffer.concat(encodedFrame(frame, COMMAND));
}

function property(name, value) {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(value.length);
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name, 'latin1'), size, value]);
}

/** The properties that a peer tells of itself, names in small letters. */
function properties(body) {
  const told = new Map();
  for (let at = 0; at < body.length; ) {
    const nameEnd = at + 1 + body[at];
    if (nameEnd + 4 > body.length) throw new Error('a property is cut off');
    const end = nameEnd + 4 + body.readUInt32BE(nameEnd);
    if (end > body.length) throw new Error('a property is cut off');
    told.set(body.toString('latin1', at + 1, nameEnd).toLowerCase(), body.subarray(nameEnd + 4, end));
    at = end;
  }
  return told;
}

/** Bytes that came, taken off in the sizes that are asked for. */
class Incoming {
  #chunks = [];
  size = 0;

  push(chunk) {
    this.#chunks.push(chunk);
    this.size += chunk.length;
  }

  /** The first `count` bytes, which stay; null if there are fewer. */
  peek(count) {
    if (this.size < count) return null;
    if (this.#chunks[0].length < count) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0].subarray(0, count);
  }

  take(count) {
    if (count === 0) return Buffer.alloc(0);
    const bytes = this.peek(count);
    if (bytes === null) return null;
    this.size -= count;
    const rest = this.#chunks[0].subarray(count);
    if (rest.length > 0) this.#chunks[0] = rest;
    else this.#chunks.shift();
    return bytes;
  }
}

/** One peer. `on` has message(frames), command(name, body), ready(identity) and closed(). Whatever is wrong ends it. */
class Connection {
  #incoming = new Incoming();
  #frames = [];
  #bytes = 0;
  #step = () => this.#greet();
  #timer;

  constructor(stream, kind, on) {
    this.stream = stream;
    this.kind = kind;
    this.on = on;
    this.isReady = false;
    this.identity = Buffer.alloc(0);
    stream.setNoDelay?.(true);
    stream.on('data', (chunk) => this.#take(chunk));
    stream.on('error', () => stream.destroy());
    stream.on('close', () => this.#closed());
    this.#timer = setTimeout(() => stream.destroy(), HANDSHAKE_TIMEOUT_MS);
    this.#timer.unref();
    stream.write(greeting());
  }

  /** False if the peer reads more slowly than this is called. */
  send(frames) {
    return this.sendEncoded(encoded(frames));
  }

  sendEncoded(bytes) {
    return this.isReady && !this.stream.destroyed && this.stream.write(bytes);
  }

  /** Bytes that the peer has not taken. */
  backlog() {
    return this.stream.destroyed ? 0 : this.stream.writableLength;
  }

  #closed() {
    clearTimeout(this.#timer);
    this.isReady = false;
    this.on.closed(this);
  }

  #take(chunk) {
    this.#incoming.push(chunk);
    try {
      while (!this.stream.destroyed && this.#step());
    } catch {
      this.stream.destroy();
    }
  }

  // Each step takes something off what came, and says whether there was enough of it.
  #greet() {
    const begin = this.#incoming.peek(Math.min(this.#incoming.size, 11));
    if (begin?.length > 0 && begin[0] !== 0xff) throw new Error('not ZMTP');
    if (begin?.length === 11 && begin[10] < 3) throw new Error('older than ZMTP 3');
    const told = this.#incoming.take(GREETING_BYTES);
    if (told === null) return false;
    if (told[9] !== 0x7f || told.toString('latin1', 12, 32).replace(/\0+$/, '') !== 'NULL') throw new Error('not NULL');
    this.stream.write(encodedCommand('READY', Buffer.concat([
      property('Socket-Type', Buffer.from(this.kind, 'latin1')),
      property('Identity', Buffer.alloc(0)),
    ])));
    this.#step = () => this.#frame();
    return true;
  }

  #frame() {
    const flags = this.#incoming.peek(1);
    if (flags === null) return false;
    if (flags[0] & ~(MORE | LONG | COMMAND)) throw new Error('reserved flags are set');
    const headerBytes = flags[0] & LONG ? 9 : 2;
    const header = this.#incoming.peek(headerBytes);
    if (header === null) return false;
    const flag = header[0];
    const size = flag & LONG ? Number(header.readBigUInt64BE(1)) : header[1];
    // BARRIER: a peer that announces gigabytes would have them collected; held by tests/runtimes/node/test_zmtp.py.
    if (size > this.#room(flag)) throw new Error('too large');
    if (this.#incoming.size < headerBytes + size) return false;
    this.#incoming.take(headerBytes);
    this.#took(flag, Buffer.from(this.#incoming.take(size)));
    return true;
  }

  #room(flag) {
    return flag & COMMAND || !this.isReady ? MOST_COMMAND_BYTES : MOST_MESSAGE_BYTES - this.#bytes;
  }

  #took(flag, frame) {
    if (flag & COMMAND) return this.#command(frame);
    if (!this.isReady) throw new Error('a message before the handshake');
    this.#frames.push(frame);
    this.#bytes += frame.length;
    if (this.#frames.length > MOST_FRAMES) throw new Error('too many frames');
    if (flag & MORE) return undefined;
    const message = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return this.on.message(this, message);
  }

  #command(frame) {
    const end = 1 + (frame[0] ?? 0);
    const name = frame.toString('latin1', 1, end);
    const body = frame.subarray(end);
    if (!this.isReady) return this.#shakeHands(name, body);
    // A sign of life, answered with the context that came with it.
    if (name === 'PING') return this.stream.write(encodedCommand('PONG', body.subarray(2, 18)));
    return this.on.command(this, name, body);
  }

  #shakeHands(name, body) {
    if (name !== 'READY') throw new Error('no handshake');
    this.identity = Buffer.from(properties(body).get('identity') ?? '');
    clearTimeout(this.#timer);
    this.isReady = true;
    this.on.ready(this);
  }
}

module.exports = { Connection, encoded, MOST_MESSAGE_BYTES };
