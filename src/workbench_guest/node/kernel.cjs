'use strict';
// A Jupyter kernel for JavaScript: `node kernel.cjs CONNECTION_FILE`. This thread runs cells and nothing else; another one, which
// is started first, as that takes longest, speaks the protocol.

const fs = require('fs');
const path = require('path');
const { Worker } = require('worker_threads');
const { makeRing, Writer } = require('./ring.cjs');

const ring = makeRing();
const wire = new Worker(path.join(__dirname, 'wire.cjs'), {
  workerData: { connection: JSON.parse(fs.readFileSync(process.argv[2], 'utf8')), ring },
  // What the agent's programs are started with is not for this thread.
  env: { ...process.env, NODE_OPTIONS: '' },
  execArgv: [],
});
const { Output } = require('./output.cjs');
const { Kernel } = require('./main.cjs');

new Kernel(wire, new Output(new Writer(ring, wire)));
