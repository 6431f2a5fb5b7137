'use strict';
// What the thread of the cells gives out, in order: text of the two streams, messages, answers.

const { PART_BYTES, SOON, NOW } = require('./ring.cjs');
const { STDOUT, STDERR, OPEN, PART, CLOSE } = require('./records.cjs');

// Of text that is encoded at once; a character has at most three bytes for each of its units.
const PIECE_CHARACTERS = PART_BYTES / 4;
const LEAVE_TIMEOUT_MS = 5000;

class Output {
  constructor(writer) {
    this.writer = writer;
  }

  stdout(text) {
    this.#text(STDOUT, text);
  }

  stderr(text) {
    this.#text(STDERR, text);
  }

  /** For iopub. */
  message(type, content) {
    this.#message({ type }, content);
  }

  /** To a question of the other thread's. */
  answer(id, content) {
    this.#message({ type: 'answer', id }, content);
  }

  /** To the other thread, at once and whatever waits to be read. */
  say(word) {
    this.writer.port.postMessage(word);
  }

  /** Everything is with its readers, or they do not read. */
  leave() {
    this.writer.drain(LEAVE_TIMEOUT_MS);
  }

  #text(kind, text) {
    if (text.length <= PIECE_CHARACTERS) {
      if (text.length > 0) this.writer.write(kind, Buffer.from(text, 'utf8'), SOON);
      return;
    }
    for (let at = 0; at < text.length; ) {
      let end = at + PIECE_CHARACTERS;
      // Not between the halves of a pair.
      if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end += 1;
      this.writer.write(kind, Buffer.from(text.slice(at, end), 'utf8'), SOON);
      at = end;
    }
  }

  #message(head, content) {
    this.writer.write(OPEN, Buffer.from(JSON.stringify(head)), SOON);
    const bytes = Buffer.from(JSON.stringify(content));
    let at = 0;
    for (; bytes.length - at > PART_BYTES; at += PART_BYTES) {
      this.writer.write(PART, bytes.subarray(at, at + PART_BYTES), SOON);
    }
    this.writer.write(CLOSE, bytes.subarray(at), NOW);
  }
}

module.exports = { Output };
