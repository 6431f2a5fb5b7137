'use strict';
// Whether a text is a whole cell, as far as V8's parser tells.

const { Script } = require('vm');
const { withoutImports, isReadable } = require('./source.cjs');

const OPENING = 'async function cell() {';
const UNFINISHED = /^Unexpected end of input|^Unterminated template|^missing \) after argument list/;

/** The content of an is_complete_reply. */
function completeness(code) {
  // A line of its own for the bracket: the last line may be a comment. Imports stand at the top, which a function has not.
  const text = withoutImports(code);
  if (isReadable(`${OPENING}${text}\n}`) || isReadable(`(async () => (${text}\n))`)) return { status: 'complete' };
  if (isBeginning(text)) return { status: 'incomplete', indent: indentOf(text) };
  return { status: 'invalid' };
}

// Whether only what follows is missing. With a bracket that is open anyhow, the parser complains of the end and of nothing else.
function isBeginning(text) {
  if (isReadable(`${OPENING}${text}*/\n}`)) return true;
  try {
    new Script(OPENING + text);
    // It has closed what is not its own.
    return false;
  } catch (error) {
    return UNFINISHED.test(error.message) && (!error.message.startsWith('missing') || isAtEnd(error, text));
  }
}

// The place of the complaint is a line number in the first line of the stack.
function isAtEnd(error, text) {
  const line = Number(/^[^\n]*:(\d+)\n/.exec(error.stack)?.[1] ?? 0);
  return line === 0 || line >= text.trimEnd().split('\n').length;
}

function indentOf(text) {
  const last = text.trimEnd().split('\n').at(-1);
  return /^\s*/.exec(last)[0] + (/[{([]$/.test(last) ? '  ' : '');
}

module.exports = { completeness };
