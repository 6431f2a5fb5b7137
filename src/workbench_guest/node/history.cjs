'use strict';
// The inputs of this kernel's life, as far as they fit.

const MOST_ENTRIES = 1000;
const MOST_CHARACTERS = 4 * 1024 * 1024;
const SESSION = 1;

class History {
  #entries = [];
  #characters = 0;

  add(line, code) {
    this.#entries.push([SESSION, line, code]);
    this.#characters += code.length;
    while (this.#entries.length > MOST_ENTRIES || this.#characters > MOST_CHARACTERS) {
      this.#characters -= this.#entries.shift()[2].length;
    }
  }

  /** What a history_request asks for. */
  found({ hist_access_type: kind, output, n, pattern, unique, start, stop }) {
    let entries = this.#entries;
    if (kind === 'range') entries = entries.filter(([, line]) => line >= (start ?? 0) && line < (stop ?? Infinity));
    if (kind === 'search') entries = matching(entries, String(pattern ?? '*'), Boolean(unique));
    if (kind !== 'range' && Number.isInteger(n)) entries = entries.slice(-n);
    return output ? entries.map(([session, line, code]) => [session, line, [code, null]]) : entries;
  }
}

function matching(entries, pattern, isUnique) {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '[^]*').replace(/\?/g, '[^]');
  const form = new RegExp(`^${escaped}$`);
  const found = entries.filter(([, , code]) => form.test(code));
  return isUnique ? [...new Map(found.map((entry) => [entry[2], entry])).values()] : found;
}

module.exports = { History };
