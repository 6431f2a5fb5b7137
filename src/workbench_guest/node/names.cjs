'use strict';
// The agent's names: which of them a cell added, removed or bound to another object, and all of them as a table.

const { inspect, types } = require('util');

const MOST_TOLD = 200;
// Longer texts are told apart by their lengths and ends.
const SMALL = 4096;
const SAMPLE = 64;
const PREVIEW = 80;
const GONE = Symbol('gone');

class Names {
  /** What is global by now is not the agent's. */
  constructor(evaluator) {
    this.evaluator = evaluator;
    this.hidden = new Set(Object.getOwnPropertyNames(globalThis));
  }

  /** Names with functions that give their values. */
  #own() {
    const own = new Map();
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      if (!this.hidden.has(name)) own.set(name, () => globalValue(name));
    }
    const lexical = this.evaluator.lexicalNames();
    if (lexical.length > 0) {
      const getters = this.evaluator.look(`[${lexical.map((name) => `() => ${name}`)}]`, false) ?? [];
      lexical.forEach((name, index) => own.set(name, () => valueOf(getters[index])));
    }
    return own;
  }

  /** Something to compare with later that keeps nothing large alive. */
  marks() {
    const marks = new Map();
    for (const [name, get] of this.#own()) marks.set(name, markOf(get()));
    return marks;
  }

  /** As the metadata of a reply has it. */
  changes(before) {
    const after = this.marks();
    const added = [...after.keys()].filter((name) => !before.has(name));
    const removed = [...before.keys()].filter((name) => !after.has(name));
    const rebound = [...after.keys()].filter((name) => before.has(name) && !isSame(before.get(name), after.get(name)));
    const told = {};
    let room = MOST_TOLD;
    for (const [kind, names] of Object.entries({ added, removed, rebound })) {
      told[kind] = names.sort().slice(0, room);
      room -= told[kind].length;
    }
    return { ...told, more: added.length + removed.length + rebound.length - (MOST_TOLD - room) };
  }

  /** Sorted by name. */
  table(most) {
    const rows = [];
    const own = this.#own();
    for (const name of [...own.keys()].sort().slice(0, most)) {
      const value = own.get(name)();
      if (value !== GONE) rows.push({ name, type: typeOf(value), size: sizeOf(value), preview: previewOf(value) });
    }
    return rows;
  }

  /** All of them. */
  all() {
    return [...this.#own().keys()];
  }
}

// A getter of the agent's is not called.
function globalValue(name) {
  const found = Object.getOwnPropertyDescriptor(globalThis, name);
  if (found === undefined) return GONE;
  return 'value' in found ? found.value : found.get;
}

// One that is declared and not yet bound has none.
function valueOf(getter) {
  try {
    return getter();
  } catch {
    return GONE;
  }
}

function markOf(value) {
  if (value !== null && (typeof value === 'object' || typeof value === 'function')) return new WeakRef(value);
  if (typeof value !== 'string' || value.length <= SMALL) return value;
  return { text: `${value.length}:${value.slice(0, SAMPLE)}:${value.slice(-SAMPLE)}` };
}

function isSame(before, after) {
  if (before instanceof WeakRef) return after instanceof WeakRef && before.deref() === after.deref();
  return before?.text !== undefined ? before.text === after?.text : Object.is(before, after);
}

function typeOf(value) {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  // Its traps would be called.
  if (types.isProxy(value)) return 'Proxy';
  try {
    const kind = Object.getPrototypeOf(value)?.constructor?.name;
    return typeof kind === 'string' && kind ? kind : 'Object';
  } catch {
    return 'object';
  }
}

function sizeOf(value) {
  try {
    if (typeof value === 'string') return `${value.length} characters`;
    if (Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value)) return `${value.length} items`;
    if (value instanceof Map || value instanceof Set) return `${value.size} items`;
    return typeOf(value) === 'Object' ? `${Object.keys(value).length} keys` : '';
  } catch {
    return '';
  }
}

function previewOf(value) {
  let text;
  try {
    // Nothing of the agent's runs for it: neither its own ways of being shown, nor getters, nor traps.
    const options = { depth: 1, maxArrayLength: 5, maxStringLength: PREVIEW, breakLength: Infinity, compact: true, customInspect: false, showProxy: true };
    text = inspect(value, options).replace(/\s*\n\s*/g, ' ');
  } catch (error) {
    text = `<inspect raised ${error?.name}>`;
  }
  return text.length <= PREVIEW ? text : `${text.slice(0, PREVIEW - 1)}…`;
}

module.exports = { Names };
