'use strict';
// process.stdout, process.stderr and console as messages. The descriptors 1 and 2 are left alone: child processes write there.

const { Console } = require('console');

/** Puts them in their place. */
function installStreams(output) {
  const streams = [stream('stdout', 1, (text) => output.stdout(text)), stream('stderr', 2, (text) => output.stderr(text))];
  install('stdout', streams[0]);
  install('stderr', streams[1]);
  installConsole(...streams);
  return { end: () => streams.forEach((one) => one().endText()) };
}

// Made when it is first used, as Node does it.
function stream(name, descriptor, write) {
  let made = null;
  return () => (made ??= makeStream(name, descriptor, write));
}

function install(name, get) {
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get });
}

function makeStream(name, descriptor, write) {
  const { Writable } = require('stream');
  const { StringDecoder } = require('string_decoder');
  const decoder = new StringDecoder('utf8');
  class CellStream extends Writable {
    /** At once, and never more than is read: who writes too fast waits here. */
    write(chunk, encoding, done) {
      const then = typeof encoding === 'function' ? encoding : done;
      if (typeof chunk === 'string') write(isText(encoding) ? chunk : decoder.write(Buffer.from(chunk, encoding)));
      else if (ArrayBuffer.isView(chunk)) write(decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)));
      else throw new TypeError(`what is written to process.${name} has to be text or bytes`);
      if (typeof then === 'function') process.nextTick(then);
      return true;
    }

    end(chunk, encoding, done) {
      const then = [chunk, encoding, done].find((one) => typeof one === 'function');
      if (chunk !== undefined && chunk !== null && chunk !== then) this.write(chunk, encoding);
      if (then) process.nextTick(then);
      return this;
    }

    /** What is left of a character that never came. */
    endText() {
      write(decoder.end());
    }

    destroy() {
      return this;
    }
  }
  return Object.assign(new CellStream({ decodeStrings: false }), { fd: descriptor, isTTY: false, _isStdio: true });
}

function isText(encoding) {
  return typeof encoding !== 'string' || /^utf-?8$/i.test(encoding);
}

// Node's own keeps up to a thousand of the objects that were logged, for whoever looks with an inspector.
function installConsole(stdout, stderr) {
  const lazy = (get) => new Proxy({}, {
    get: (_, name) => {
      const one = get();
      return typeof one[name] === 'function' ? one[name].bind(one) : one[name];
    },
  });
  const own = new Console({ stdout: lazy(stdout), stderr: lazy(stderr), colorMode: false });
  for (const name of Object.keys(console)) own[name] ??= console[name];
  Object.defineProperty(globalThis, 'console', { value: own, writable: true, configurable: true, enumerable: false });
}

module.exports = { installStreams };
