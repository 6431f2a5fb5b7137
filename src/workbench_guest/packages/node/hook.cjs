'use strict';
// Loaded into every Node of a sandbox (NODE_OPTIONS=--require): a package that the agent's own code asks for and that is
// not there is asked for outside, and the program goes on. Nothing is wrapped that is in the stack of a running program.

const Module = require('module');
const { existsSync, readFileSync } = require('fs');
const path = require('path');

// Whether a text may import at all.
const IMPORTS = /\bimport\s*\(|^\s*(?:import|export)\b/m;
const LOADER = 'WORKBENCH_LOADER_THREAD';
const OURS = path.dirname(__dirname);
const resolveFilename = Module._resolveFilename;

let asking = null;
const ask = () => (asking ??= require('./ask.cjs'));

Module._resolveFilename = function (request, parent, ...rest) {
  let found;
  try {
    found = resolveFilename.call(this, request, parent, ...rest);
  } catch (error) {
    if (error?.code !== 'MODULE_NOT_FOUND' || !ask().isOwn(parent?.filename) || !isLoading()) throw error;
    return ask().provide(request, parent.filename, error, (place) =>
      resolveFilename.call(this, request, parent, false, { paths: [place] }),
    );
  }
  if (!listening && found.startsWith('/') && !found.includes('/node_modules/') && !found.startsWith('/usr/')) sniff(found);
  return found;
};

// `require.resolve` asks whether something is there: it is told the truth, and nothing is installed.
function isLoading() {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 16;
  const frames = String(new Error().stack).split('\n').slice(1).filter((line) => !line.includes(OURS));
  Error.stackTraceLimit = limit;
  for (const frame of frames) {
    if (!/\((?:node:)?internal\//.test(frame)) return false;
    if (/_load \(/.test(frame)) return true;
  }
  return false;
}

let listening = false;
function listen() {
  if (listening) return;
  listening = true;
  if (typeof Module.registerHooks === 'function') {
    Module.registerHooks({ resolve: ask().resolve });
  } else if (typeof Module.register === 'function') {
    // The loader's thread is made by this call, and loads this file as well: there is nothing to do for it there.
    process.env[LOADER] = '1';
    try {
      Module.register(require('url').pathToFileURL(path.join(__dirname, 'esm.mjs')).href);
    } finally {
      delete process.env[LOADER];
    }
  }
}

// The loader is told only if a package is missing, as far as one can see: on older Nodes that starts a thread, which takes
// longer than most programs.
function sniffText(text, file) {
  if (IMPORTS.test(text) && ask().mayMiss(text, file)) listen();
}

function sniff(file) {
  try {
    if (/\.[cm]?[jt]sx?$/.test(file)) sniffText(readFileSync(file, 'utf8'), file);
  } catch {
    // Not a file, or not ours to read: whoever loads it will say so.
  }
}

// What a program consists of is found as it is loaded; its first file, by what node was called with.
function sniffEntry() {
  const typed = process.argv[1];
  if (typeof process._eval === 'string') {
    sniffText(process._eval, path.resolve('[eval]'));
  } else if (!typed || typed === '-') {
    // Its text comes by a pipe, and may be anything.
    if (!process.execArgv.some((one) => /^(?:-v|--version|-h|--help|--test)$/.test(one))) listen();
  } else {
    const file = path.resolve(typed);
    if (file.startsWith('/usr/') || file.includes('/node_modules/')) return;
    sniff(['', '.js', '.mjs', '/index.js', '/index.mjs'].map((end) => file + end).find(existsFile) ?? file);
  }
}

const existsFile = (file) => path.extname(file) !== '' && existsSync(file);

try {
  if (process.env[LOADER] !== '1') sniffEntry();
} catch {
  // Whatever this is: the program comes first.
}
