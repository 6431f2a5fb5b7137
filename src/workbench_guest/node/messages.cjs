'use strict';
// Messages of the Jupyter protocol: signed, taken apart, put together. What they ask for is left to protocol.cjs.

const { createHmac, randomUUID, timingSafeEqual } = require('crypto');

const DELIMITER = Buffer.from('<IDS|MSG>');
const VERSION = '5.4';
const EMPTY = Buffer.from('{}');

/** Signs with the key of the connection file. */
class Messages {
  constructor(connection) {
    this.key = connection.key ?? '';
    this.session = randomUUID();
    this.count = 0;
    this.scheme = (connection.signature_scheme ?? 'hmac-sha256').replace('hmac-', '');
  }

  /** The message in frames; null if it is not one, or not signed by who knows the key. */
  read(frames) {
    const at = frames.findIndex((frame) => frame.equals(DELIMITER));
    if (at < 0 || frames.length < at + 6) return null;
    const parts = frames.slice(at + 2, at + 6);
    // BARRIER: whoever reaches the socket but does not know the key could run code; held by
    // tests/runtimes/node/test_zmtp.py.
    if (!this.#isSigned(frames[at + 1], parts)) return null;
    try {
      const [header, parent, metadata, content] = parts.map((part) => JSON.parse(part));
      if (typeof header?.msg_type !== 'string') return null;
      return { identities: frames.slice(0, at), header, parent, metadata, content: content ?? {}, rawHeader: parts[0] };
    } catch {
      return null;
    }
  }

  /** The frames after the identities of an answer to, or an announcement about, `parent`. */
  frames(kind, content, parent, metadata = null) {
    const parts = [
      Buffer.from(JSON.stringify(this.#header(kind))),
      parent?.rawHeader ?? EMPTY,
      metadata === null ? EMPTY : Buffer.from(JSON.stringify(metadata)),
      Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content)),
    ];
    return [DELIMITER, this.#signature(parts), ...parts];
  }

  #header(kind) {
    this.count += 1;
    return {
      msg_id: `${this.session}_${process.pid}_${this.count}`,
      msg_type: kind,
      username: 'kernel',
      session: this.session,
      date: new Date().toISOString(),
      version: VERSION,
    };
  }

  #signature(parts) {
    if (!this.key) return Buffer.alloc(0);
    const hmac = createHmac(this.scheme, this.key);
    for (const part of parts) hmac.update(part);
    return Buffer.from(hmac.digest('hex'));
  }

  #isSigned(signature, parts) {
    const right = this.#signature(parts);
    return right.length === signature.length && timingSafeEqual(right, signature);
  }
}

module.exports = { Messages, VERSION };
