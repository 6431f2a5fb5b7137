'use strict';
// The text of a cell as it is evaluated: what imports is written as what can be called there. Lines stay where they are.

const { Script } = require('vm');

const { BRING } = require('./homes.cjs');

// Words after which a slash begins a regular expression.
const BEFORE_REGEX = /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|instanceof|do|else|yield|await)$/;
const NAME = '[\\p{ID_Start}$_][\\p{ID_Continue}$\\u200c\\u200d]*';
const GAP = '(?:\\s|//[^\\n]*\\n|/\\*[^]*?\\*/)*';
const STRING = '("[^"\\n]*"|\'[^\'\\n]*\')';
const CLAUSE = `(${NAME})?${GAP},?${GAP}(?:\\*${GAP}as\\s+(${NAME})|(\\{[^}]*\\}))?`;
const WITH = `(?:${GAP}(?:with|assert)${GAP}(\\{[^}]*\\}))?`;
// In its own variable: the hook for packages looks through texts for the word with a bracket behind it.
const WORD = 'import';
const STATIC = new RegExp(`${WORD}(?:${GAP}${CLAUSE}${GAP}\\bfrom)?${GAP}${STRING}${WITH}`, 'uy');
// What has no meaning in JavaScript, matched at one place: texts, comments, and the rest of a template after its braces.
const SKIPPED = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?/y;
const TEMPLATE = /(?:\\[^]|\$(?!\{)|[^\\`$])*(`|\$\{|$)/y;
const REGEX = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y;

/** What is evaluated for a cell's text. */
function prepared(code) {
  const text = code.startsWith('#!') ? `//${code}` : code;
  const brought = /\bimport\b/.test(text) ? withoutImports(text) : text;
  // A constant could be declared again as nothing else.
  const written = declaredBy(brought, 'const', 'let');
  return isObject(written) ? `(${written}\n)` : written;
}

// `{a: 1, b: 2}` is a block that cannot be read, and an object that can.
function isObject(text) {
  if (!/^\s*\{/.test(text) || /;\s*$/.test(text)) return false;
  return isReadable(`(async () => (${text}\n))`);
}

function isReadable(text) {
  try {
    return Boolean(new Script(text));
  } catch {
    return false;
  }
}

function withoutImports(text) {
  const pieces = [];
  let from = 0;
  for (const { at, depth } of words(text, WORD)) {
    if (at < from) continue;
    const [end, written] = rewritten(text, at, depth);
    pieces.push(text.slice(from, at), written);
    from = end;
  }
  return pieces.join('') + text.slice(from);
}

// Where it ends and what stands there instead.
function rewritten(text, at, depth) {
  const after = /^import\s*[(.]/.test(text.slice(at, at + 200));
  if (after) return [at + 'import'.length, BRING];
  STATIC.lastIndex = at;
  const found = depth === 0 ? STATIC.exec(text) : null;
  if (found === null) return [at + 'import'.length, 'import'];
  const lines = '\n'.repeat(found[0].split('\n').length - 1);
  return [STATIC.lastIndex, statement(found) + lines];
}

function statement([, first, all, some, specifier, attributes]) {
  const options = attributes ? `, {with: ${attributes.replace(/\n/g, ' ')}}` : '';
  const brought = `await ${BRING}(${specifier}${options})`;
  if (!first && !all && !some) return brought;
  if (all && first) return `const ${all} = ${brought}, {default: ${first}} = ${all}`;
  if (all) return `const ${all} = ${brought}`;
  const names = [first ? `default: ${first}` : '', some ? renamed(some) : ''].filter(Boolean).join(', ');
  return `const {${names}} = ${BRING}.checked(${brought}, ${specifier}, ${JSON.stringify(asked(first, some))})`;
}

const inBraces = (some) => some.slice(1, -1).replace(/\/\/[^\n]*|\/\*[^]*?\*\//g, '').split(',').map((one) => one.trim()).filter(Boolean);
const renamed = (some) => inBraces(some).map((one) => one.replace(/\s+as\s+/, ': ')).join(', ');

function asked(first, some) {
  const names = some ? inBraces(some).map((one) => one.split(/\s+as\s+/)[0].replace(/^(["'])(.*)\1$/, '$2')) : [];
  return first ? ['default', ...names] : names;
}

/** With one keyword of the top in the place of another, which is no longer; lines and columns stay. */
function declaredBy(text, keyword, other) {
  if (!text.includes(keyword)) return text;
  const pieces = [];
  let from = 0;
  for (const { at, depth } of words(text, keyword)) {
    if (depth > 0) continue;
    pieces.push(text.slice(from, at), other.padEnd(keyword.length));
    from = at + keyword.length;
  }
  return pieces.join('') + text.slice(from);
}

/** Where a word of the language stands in a text as code, with how deep in brackets that is. */
function* words(text, wanted) {
  // For each open bracket, whether it is one of a template's.
  const open = [];
  for (let at = 0; at < text.length; ) {
    const character = text[at];
    if (character === '`' || (character === '}' && open.at(-1) === true)) {
      if (character === '}') open.pop();
      TEMPLATE.lastIndex = at + 1;
      if (TEMPLATE.exec(text)[1] === '${') open.push(true);
      at = TEMPLATE.lastIndex;
      continue;
    }
    const end = skipped(text, at);
    if (end > at) {
      at = end;
      continue;
    }
    if ('([{'.includes(character)) open.push(false);
    else if (')]}'.includes(character)) open.pop();
    const word = /[\p{ID_Start}$_]/u.test(character) ? wordAt(text, at) : character;
    if (word === wanted && isStatement(text, at)) yield { at, depth: open.length };
    at += word.length;
  }
}

function wordAt(text, at) {
  const word = /[\p{ID_Continue}$]+/uy;
  word.lastIndex = at;
  return word.exec(text)?.[0] ?? text[at];
}

// Not a property, as in `x.import`.
function isStatement(text, at) {
  return !/[.#]\s*$/.test(text.slice(Math.max(0, at - 50), at)) || /\.\.\.\s*$/.test(text.slice(Math.max(0, at - 50), at));
}

// The end of a text, a comment or a regular expression that begins here; else the same place.
function skipped(text, at) {
  if (!'"\'/'.includes(text[at])) return at;
  SKIPPED.lastIndex = at;
  if (SKIPPED.test(text)) return SKIPPED.lastIndex;
  const before = text.slice(Math.max(0, at - 100), at).trimEnd();
  if (text[at] !== '/' || (/[\w$)\]}"'`]$/.test(before) && !BEFORE_REGEX.test(before))) return at;
  REGEX.lastIndex = at;
  return REGEX.test(text) ? REGEX.lastIndex : at;
}

module.exports = { prepared, declaredBy, withoutImports, isReadable };
