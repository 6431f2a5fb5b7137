'use strict';
// What is shown: any object as text, and as whatever else it says of itself or is told to be.

const { inspect } = require('util');

// Deno's word for it, which libraries have taken up.
const DISPLAY = Symbol.for('Jupyter.display');
const MOST_TEXT = 10_000;
const OPTIONS = { colors: false, maxStringLength: MOST_TEXT };
const TEXTS = { html: 'text/html', markdown: 'text/markdown', latex: 'text/latex', svg: 'image/svg+xml', text: 'text/plain', javascript: 'application/javascript' };
const PICTURES = { png: 'image/png', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', pdf: 'application/pdf' };

class Displays {
  #count = 0;

  constructor(output) {
    this.output = output;
  }

  /** `display` with its functions, and the tags `html`, `md` and `svg`, as globals. */
  install() {
    const display = (value, options) => this.display(value, options);
    for (const [name, mime] of Object.entries(TEXTS)) display[name] = (...given) => this.#raw(mime, ...tagged(given));
    for (const [name, mime] of Object.entries(PICTURES)) {
      display[name] = (bytes, options) => this.#raw(mime, base64(bytes, name), options);
    }
    display.json = (value, options) => this.#raw('application/json', JSON.parse(JSON.stringify(value)), options);
    display.clear = ({ wait = false } = {}) => this.output.message('clear_output', { wait: Boolean(wait) });
    globals({ display, html: tag('text/html'), md: tag('text/markdown'), svg: tag('image/svg+xml') });
  }

  /** Shows a value, or with `raw` a bundle of types; gives something to show another one in its place. */
  display(value, { raw = false, update = false, display_id: given, displayId = given, metadata = {} } = {}) {
    const bundle = raw ? { data: value, metadata } : this.bundleOf(value);
    return this.#send(bundle, update, displayId);
  }

  #raw(mime, data, options = {}) {
    const metadata = options.metadata ? { [mime]: options.metadata } : {};
    const bundle = { data: { [mime]: data }, metadata };
    return this.#send(bundle, options.update, options.displayId ?? options.display_id);
  }

  #send({ data, metadata }, isUpdate, wanted) {
    const displayId = wanted === undefined ? this.#newId() : String(wanted);
    const type = isUpdate ? 'update_display_data' : 'display_data';
    this.output.message(type, { data, metadata: metadata ?? {}, transient: { display_id: displayId } });
    return handle(this, displayId);
  }

  #newId() {
    this.#count += 1;
    return `display-${process.pid}-${this.#count}`;
  }

  /** The types of a value, text among them. */
  bundleOf(value) {
    const own = ownBundle(value);
    const text = own?.['text/plain'] ?? inspect(value, OPTIONS);
    return { data: { ...own, 'text/plain': text }, metadata: {} };
  }
}

// As `text/plain` of an object that says what it is shown as, and only that.
function ownBundle(value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return null;
  const method = value[DISPLAY];
  if (typeof method !== 'function') return null;
  const bundle = method.call(value);
  return bundle !== null && typeof bundle === 'object' ? bundle : null;
}

function handle(displays, displayId) {
  const shown = { update: (value, options) => displays.display(value, { ...options, update: true, displayId }) };
  Object.defineProperty(shown, 'displayId', { value: displayId, enumerable: true });
  // As the last value of a cell it is no result: it has been shown.
  return hidden(shown);
}

const shownBefore = new WeakSet();

function hidden(shown) {
  shownBefore.add(shown);
  return shown;
}

/** Whether a value is what `display` gave back. */
function isHandle(value) {
  return value !== null && typeof value === 'object' && shownBefore.has(value);
}

// A function of text that is a tag for templates as well: [text, options].
function tagged([first, ...rest]) {
  return Array.isArray(first?.raw) ? [filled(first, rest)] : [String(first), rest[0]];
}

const filled = (strings, values) => strings.reduce((text, piece, index) => text + values[index - 1] + piece);

function tag(mime) {
  return (...given) => {
    const [text] = tagged(given);
    return { [DISPLAY]: () => ({ [mime]: text, 'text/plain': text }) };
  };
}

function base64(bytes, name) {
  if (typeof bytes === 'string') return require('fs').readFileSync(bytes).toString('base64');
  if (bytes instanceof ArrayBuffer) return Buffer.from(bytes).toString('base64');
  if (ArrayBuffer.isView(bytes)) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  throw new TypeError(`display.${name} takes the bytes of a picture, or the path of its file`);
}

function globals(values) {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
}

module.exports = { Displays, isHandle };
