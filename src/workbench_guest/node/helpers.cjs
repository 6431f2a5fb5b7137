'use strict';
// The helpers as promises: each call is a short program of Python's (helpers/answering.py), so that what is checked, asked again
// and said of failures is the same in every language.

const { spawn } = require('child_process');
const path = require('path');

const PROGRAM = path.join(path.dirname(__dirname), 'helpers', 'answering.py');

/** Resolves to the result; rejects with an error that has what came anyway as its `details`. */
async function call(name, most, given) {
  const isNamed = given.length === most + 1 && isOptions(given[most]);
  const question = isNamed ? { given: given.slice(0, most), named: snakeCased(given[most]) } : { given, named: {} };
  const { result, error, printed } = await asked(name, question);
  if (printed) process.stdout.write(printed);
  if (error) throw Object.assign(new Error(error), { name: 'HelperError', details: result });
  return result;
}

const isOptions = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

// Only the names of arguments: what is below them is the caller's.
function snakeCased(options) {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]));
}

function asked(name, question) {
  return new Promise((resolve, reject) => {
    const python = process.env.WORKBENCH_PYTHON || 'python3';
    const child = spawn(python, ['-I', '-S', PROGRAM, name], { stdio: ['pipe', 'pipe', 'inherit'] });
    const said = [];
    child.stdout.on('data', (piece) => said.push(piece));
    child.on('error', reject);
    // One that has ended early says so by its code.
    child.stdin.on('error', () => {});
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(Buffer.concat(said)));
      else reject(Object.assign(new Error(`${name} ended ${signal ? `by ${signal}` : `with code ${code}`}`), { name: 'HelperError', details: null }));
    });
    child.stdin.end(JSON.stringify(question));
  });
}

module.exports = { call };
