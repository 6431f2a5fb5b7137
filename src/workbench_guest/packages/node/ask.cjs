'use strict';
// Which package a failed import is about, whose import it is, and the question itself: a child process, as only that can
// be waited for in the middle of a `require`. Loaded when the first import fails, or when a program has modules.

const { isBuiltin } = require('module');
const { existsSync, readFileSync, realpathSync } = require('fs');
const path = require('path');
const { fileURLToPath, pathToFileURL } = require('url');

const NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$/;
// More than the other side takes, whose word on a failure comes first.
const PATIENCE_MS = 300_000;
const OURS = path.dirname(path.dirname(__dirname));
// Of a program's own, that are looked through before it begins.
const MOST_FILES = 200;
const refused = new Map();

/** The package of `lodash/fp` is lodash; of paths, addresses and modules of Node's own there is none. */
function packageOf(specifier) {
  if (/^[./#]|:|\\/.test(specifier) || isBuiltin(specifier)) return null;
  const name = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
  return NAME.test(name) ? name : null;
}

/** Whether a text imports a package that is not there, itself or by files of its own; when in doubt, it does. */
function mayMiss(text, file, seen = new Set([file])) {
  for (const found of text.matchAll(/\bfrom\s*(['"])(.+?)\1|\bimport\s*(['"])(.+?)\3|\bimport\s*\(\s*(?:(['"`])(.+?)\5\s*[,)])?/g)) {
    const specifier = found[2] ?? found[4] ?? found[6];
    if (specifier === undefined || specifier.includes('${')) return true;
    const name = packageOf(specifier);
    if (name !== null && placeOf(name, file) === null) return true;
    const next = specifier.startsWith('.') ? path.resolve(path.dirname(file), specifier) : specifier;
    if (!next.startsWith('/') || seen.has(next) || !/\.[cm]?js$/.test(next) || !existsSync(next)) continue;
    seen.add(next);
    if (seen.size > MOST_FILES || mayMiss(readFileSync(next, 'utf8'), next, seen)) return true;
  }
  return false;
}

/** Code of the agent's: what packages try to load in passing is their own affair. */
function isOwn(file) {
  return Boolean(file) && !file.includes('/node_modules/') && !/^\/(?:usr|mnt\/packages)\//.test(file) && !file.startsWith(OURS);
}

/** What `look` finds in the folder of the package, which is there by then. Otherwise the error, which says why it is not. */
function provide(specifier, file, error, look) {
  const name = packageOf(specifier);
  if (name === null) throw error;
  if (placeOf(name, file) === null && !refused.has(name)) {
    const [state, text] = question(specifier, isGuarded(specifier, file));
    if (state !== 'ok') refused.set(name, text);
  }
  const place = placeOf(name, file);
  if (place !== null) return look(place);
  if (refused.get(name)) explain(error, refused.get(name));
  throw error;
}

// The folder whose `node_modules` has the package. By its real path: Node remembers, by the paths that it looked at, which
// package.json was not there, and would not see what has arrived since. If only a part of the package is missing, it is
// missing there too.
function placeOf(name, file) {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const modules = path.join(folder, 'node_modules');
    if (existsSync(path.join(modules, name))) return path.dirname(realpathSync(modules));
    if (folder === path.dirname(folder)) return null;
  }
}

function question(specifier, guarded) {
  // The variable would make the child, if it is one of Node, ask as well.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const python = process.env.WORKBENCH_PYTHON || 'python3';
  const program = path.join(path.dirname(__dirname), 'ask.py');
  const ran = require('child_process').spawnSync(
    python, ['-I', '-S', program, 'node', 'modules', guarded ? '1' : '0', specifier],
    { env, stdio: ['ignore', 'pipe', 'inherit'], timeout: PATIENCE_MS, encoding: 'utf8' },
  );
  // Who pressed Ctrl-C meant the program.
  if (ran.status === 130 || ran.signal === 'SIGINT') process.kill(process.pid, 'SIGINT');
  const [state, text] = String(ran.stdout ?? '').split('\n');
  return [state ?? '', text ?? ''];
}

function explain(error, text) {
  const [first, ...rest] = error.message.split('\n');
  const before = error.message;
  error.message = [first, `[sandbox] ${text}`, ...rest].join('\n');
  // The stack was written with the message as it was, and is what is shown.
  if (typeof error.stack === 'string') error.stack = error.stack.replace(before, () => error.message);
}

/** Every place that loads it has an answer to its absence: inside of a `try` with a `catch`, or before a `.catch(`. */
function isGuarded(specifier, file) {
  let source;
  try {
    source = /\[(?:eval|stdin)\]$/.test(file) ? process._eval ?? '' : readFileSync(file, 'utf8');
  } catch {
    return false;
  }
  const quoted = specifier.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const places = [...source.matchAll(new RegExp(`\\b(?:require|import)\\s*\\(\\s*(['"\`])${quoted}\\1\\s*\\)`, 'g'))];
  if (places.length === 0) return false;
  const tries = guardedRanges(source);
  return places.every(
    (place) =>
      tries.some(([from, to]) => from < place.index && place.index < to) ||
      /^\s*\.\s*catch\s*\(/.test(source.slice(place.index + place[0].length)),
  );
}

// From brace to brace of each `try` that has a `catch`. A scan by marks and not a parser: strings and comments are skipped;
// a regular expression with a lone quote or brace in it may mislead it, and then nothing worse happens than an install.
function guardedRanges(source) {
  const marks = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|\btry\s*\{|[{}]/g;
  const open = [];
  const ranges = [];
  for (const mark of source.matchAll(marks)) {
    const text = mark[0];
    if (text.endsWith('{') && !/^[/'"`]/.test(text)) open.push(text === '{' ? -1 : mark.index);
    else if (text === '}') {
      const from = open.pop() ?? -1;
      if (from >= 0 && /^\}\s*catch\b/.test(source.slice(mark.index, mark.index + 40))) ranges.push([from, mark.index]);
    }
  }
  return ranges;
}

/** The hook of newer Nodes for imports; what is loaded by `require` comes by the other one. */
function resolve(specifier, context, next) {
  try {
    return next(specifier, context);
  } catch (error) {
    if (!context.conditions?.includes('import')) throw error;
    return provideImport(specifier, context, next, error);
  }
}

/** As `provide`, for an import: what the next hook finds. */
function provideImport(specifier, context, next, error) {
  const parent = context.parentURL;
  if (error?.code !== 'ERR_MODULE_NOT_FOUND' || !parent?.startsWith('file:')) throw error;
  const file = fileURLToPath(parent);
  if (!isOwn(file)) throw error;
  return provide(specifier, file, error, (place) =>
    next(specifier, { ...context, parentURL: pathToFileURL(path.join(place, path.basename(file))).href }),
  );
}

module.exports = { isOwn, provide, provideImport, mayMiss, packageOf, isGuarded, resolve };
