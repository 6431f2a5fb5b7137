'use strict';
// Completions, and what is known of a name. Nothing of the agent's is called: V8 ends what would change anything.

const { inspect } = require('util');

const WORDS = ('async await break case catch class const continue debugger default delete do else export extends false finally for '
  + 'function if import in instanceof let new null return static super switch this throw true try typeof undefined var void while '
  + 'with yield').split(' ');
// A chain of names and plain indexes before the cursor: what stands in front of the last dot is looked up.
const CHAIN = /((?:[\p{ID_Start}$_][\p{ID_Continue}$]*|\]|"|'|`|\d)(?:(?:\?\.|\.)[\p{ID_Start}$_][\p{ID_Continue}$]*|\[\d+\]|\[(?:"[^"]*"|'[^']*')\])*)(\?\.|\.)([\p{ID_Continue}$]*)$/u;
const WORD = /[\p{ID_Start}$_]?[\p{ID_Continue}$]*$/u;
const MOST_MATCHES = 1000;
const MOST_SOURCE = 4000;

class Looking {
  constructor(evaluator, names) {
    this.evaluator = evaluator;
    this.names = names;
  }

  /** The content of a complete_reply. */
  complete({ code, cursor_pos: cursor }) {
    const before = [...String(code)].slice(0, cursor ?? Infinity).join('');
    const chain = CHAIN.exec(before);
    const stem = chain === null ? WORD.exec(before)[0] : chain[3];
    const known = chain === null ? this.#words() : this.#members(chain[1]);
    const matches = known.filter((name) => name.startsWith(stem)).slice(0, MOST_MATCHES);
    const end = [...before].length;
    return { status: 'ok', matches, cursor_start: end - [...stem].length, cursor_end: end, metadata: {} };
  }

  #words() {
    const all = new Set([...this.names.all(), ...Object.getOwnPropertyNames(globalThis), ...WORDS]);
    return [...all].filter((name) => !name.startsWith('$mport')).sort();
  }

  #members(expression) {
    const value = this.evaluator.look(expression);
    const names = new Set();
    for (let at = value; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(Object(at))) {
        if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) names.add(name);
      }
    }
    return [...names].sort();
  }

  /** The content of an inspect_reply. */
  inspect({ code, cursor_pos: cursor, detail_level: level }) {
    const characters = [...String(code)];
    const at = cursor ?? characters.length;
    const before = /[\p{ID_Start}$_][\p{ID_Continue}$.]*$/u.exec(characters.slice(0, at).join(''))?.[0] ?? '';
    const after = /^[\p{ID_Continue}$]*/u.exec(characters.slice(at).join(''))[0];
    const value = before + after === '' ? undefined : this.evaluator.look(before + after);
    if (value === undefined) return { status: 'ok', found: false, data: {}, metadata: {} };
    return { status: 'ok', found: true, data: { 'text/plain': text(before + after, value, level) }, metadata: {} };
  }
}

function text(name, value, level) {
  const kind = typeof value === 'object' ? value?.constructor?.name ?? 'object' : typeof value;
  const shown = inspect(value, { depth: level ? 4 : 1, customInspect: false }).slice(0, MOST_SOURCE);
  const source = typeof value === 'function' ? `\n${Function.prototype.toString.call(value).slice(0, level ? MOST_SOURCE : 400)}` : '';
  return `${name}: ${kind}\n${shown}${source}`;
}

module.exports = { Looking };
