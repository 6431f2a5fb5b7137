'use strict';
// Errors as the agent should see them: places in its own cells by their numbers, and none of ours.

const path = require('path');
const { inspect } = require('util');

const OURS = path.dirname(__dirname);
const INTERRUPTED = { ename: 'Interrupted', evalue: 'the cell was interrupted', traceback: ['Interrupted: the cell was interrupted'] };
const CELL = /\b(cell-(?:after-)?\d+):(\d+)/g;
// By which cells come in: nothing that was called from there is the agent's.
const ENTRANCE = /node:inspector\b|node:internal\/inspector/;

/** From now on stacks are written without our frames. */
function installErrors() {
  Error.prepareStackTrace = (error, sites) => {
    let head;
    try {
      head = Error.prototype.toString.call(error);
    } catch {
      head = 'Error';
    }
    return [head, ...framesOf(sites)].join('\n    at ');
  };
}

function framesOf(sites) {
  const frames = [];
  for (const site of sites) {
    const file = site.getFileName() ?? '';
    if (ENTRANCE.test(file)) break;
    if (!file.startsWith(OURS)) frames.push(named(String(site)));
  }
  return frames;
}

const named = (text) => text.replace(CELL, (_, cell, line) => `<${cell.replace(/-/g, ' ')}>:${line}`);

/** As Node writes an error that nobody caught. */
function described(error) {
  try {
    return inspect(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

/** The content of an error message. */
function problemOf(error) {
  if (error === INTERRUPTED) return error;
  const text = described(error);
  if (!(error instanceof Error)) return { ename: 'Uncaught', evalue: text, traceback: `Uncaught ${text}`.split('\n') };
  return { ename: textOf(error, 'name') || 'Error', evalue: textOf(error, 'message'), traceback: text.split('\n') };
}

function textOf(error, name) {
  try {
    return String(error[name]);
  } catch {
    return '';
  }
}

/** Of code that cannot be read: where, with the line and a mark below it. */
function syntaxProblem(error, { lineNumber, columnNumber }, cell) {
  const line = cell.source.split('\n')[lineNumber] ?? '';
  const message = `${error.name}: ${error.message}`;
  const traceback = [`<${cell.name}>:${lineNumber + 1}`, line, `${line.slice(0, columnNumber).replace(/[^\t]/g, ' ')}^`, message];
  return { ename: error.name, evalue: `${error.message} (line ${lineNumber + 1})`, traceback };
}

module.exports = { INTERRUPTED, installErrors, described, problemOf, syntaxProblem };
