'use strict';
// The sockets that a kernel listens on, as ZeroMQ has them: requests with answers, one that publishes, one that echoes.

const fs = require('fs');
const net = require('net');
const { Connection, encoded } = require('./zmtp.cjs');

// Bytes that one reader may be behind before nothing more is taken out of the ring.
const MOST_BACKLOG_BYTES = 4 * 1024 * 1024;
const ignore = () => {};

/** Listens where the connection file says; `kind` is told to peers. */
class Listener {
  constructor(kind, on = {}) {
    this.kind = kind;
    this.peers = new Set();
    this.on = { message: ignore, command: ignore, ready: ignore, closed: ignore, ...on };
    this.server = net.createServer({ allowHalfOpen: false }, (stream) => this.#accept(stream));
    this.server.on('error', (problem) => {
      throw problem;
    });
  }

  listen(place) {
    // As ZeroMQ does: what a killed kernel has left is in the way.
    if (place.path) fs.rmSync(place.path, { force: true });
    return new Promise((done) => this.server.listen(place, done));
  }

  close() {
    this.server.close();
    for (const peer of this.peers) peer.stream.destroy();
  }

  #accept(stream) {
    this.peers.add(new Connection(stream, this.kind, {
      ...this.on,
      closed: (peer) => {
        this.peers.delete(peer);
        this.on.closed(peer);
      },
    }));
  }
}

/** ROUTER: messages come with the peer that sent them, and answers go to that one. */
const router = (message) => new Listener('ROUTER', { message });

/** REP that gives back what it got. */
const echo = () => new Listener('REP', { message: (peer, frames) => peer.send(frames) });

/** XPUB: each peer gets what begins with a text that it has subscribed to. */
class Publisher {
  #subscriptions = new Map();
  #listener;

  constructor(on) {
    this.on = on;
    this.#listener = new Listener('XPUB', {
      message: (peer, frames) => this.#message(peer, frames),
      command: (peer, name, body) => this.#command(peer, name, body),
      ready: (peer) => {
        this.#subscriptions.set(peer, []);
        peer.stream.on('drain', () => this.on.room());
      },
      closed: (peer) => {
        this.#subscriptions.delete(peer);
        this.on.room();
      },
    });
  }

  listen(place) {
    return this.#listener.listen(place);
  }

  close() {
    this.#listener.close();
  }

  /** To everyone who wants it; encoded once. */
  publish(topic, frames) {
    let bytes = null;
    for (const [peer, wanted] of this.#subscriptions) {
      if (wanted.some((prefix) => topic.subarray(0, prefix.length).equals(prefix))) {
        peer.sendEncoded((bytes ??= encoded([topic, ...frames])));
      }
    }
  }

  /** To one, whatever it has subscribed to. */
  tell(peer, topic, frames) {
    peer.send([topic, ...frames]);
  }

  /** How far the slowest reader is behind. */
  backlog() {
    let most = 0;
    for (const peer of this.#subscriptions.keys()) most = Math.max(most, peer.backlog());
    return most;
  }

  isFull() {
    return this.backlog() > MOST_BACKLOG_BYTES;
  }

  // Until ZMTP 3.0 subscriptions were messages, which begin with a byte; since then they are commands.
  #message(peer, frames) {
    const first = frames[0];
    if (first[0] === 1) this.#subscribe(peer, first.subarray(1));
    if (first[0] === 0) this.#cancel(peer, first.subarray(1));
  }

  #command(peer, name, body) {
    if (name === 'SUBSCRIBE') this.#subscribe(peer, body);
    if (name === 'CANCEL') this.#cancel(peer, body);
  }

  #subscribe(peer, prefix) {
    this.#subscriptions.get(peer).push(prefix);
    this.on.subscribed(peer, prefix);
  }

  #cancel(peer, prefix) {
    const wanted = this.#subscriptions.get(peer);
    const at = wanted.findIndex((one) => one.equals(prefix));
    if (at >= 0) wanted.splice(at, 1);
  }
}

module.exports = { router, echo, Publisher };
