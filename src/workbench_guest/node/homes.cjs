'use strict';
// `require`, `module` and dynamic imports of cells, as a module in the working folder has them. Packages that are not there are
// asked for where the sandbox does that for every program (packages/node).

const { existsSync } = require('fs');
const Module = require('module');
const path = require('path');
const { fileURLToPath, pathToFileURL } = require('url');

const ASK = path.join(path.dirname(__dirname), 'packages', 'node', 'ask.cjs');
const HOOK = path.join(path.dirname(ASK), 'hook.cjs');
// Under which Node runs code that is in no file.
const FILE = '[eval]';
// What cells call instead: an evaluated text of the inspector's has nothing that imports. As long as the word itself, so that
// columns stay.
const BRING = '$mport';
// In pieces, as the hook for packages looks through texts for the whole.
const BRINGING = ['exports.bring = (what, how) => imp', 'ort(what, how);'].join('');

class Homes {
  #homes = new Map();

  /** The names of a module, as globals. Each follows the working folder until the agent gives it another meaning. */
  install() {
    const own = {
      require: (home) => home.require,
      module: (home) => home.module,
      exports: (home) => home.module.exports,
      __filename: (home) => home.module.filename,
      __dirname: (home) => path.dirname(home.module.filename),
      [BRING]: (home) => home.bring,
    };
    for (const [name, get] of Object.entries(own)) this.#installOne(name, get);
  }

  #installOne(name, get) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => get(this.#here()),
      set: (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true }),
    });
  }

  /** A cell with this text begins: the hook looks into it whether an import is guarded. */
  enter(code) {
    process._eval = code;
  }

  folder() {
    try {
      return process.cwd();
    } catch {
      return '';
    }
  }

  #here() {
    return this.#home(this.folder() || '/');
  }

  #home(folder) {
    let home = this.#homes.get(folder);
    if (home === undefined) this.#homes.set(folder, (home = makeHome(folder)));
    home.bring ??= this.#bringer(home);
    return home;
  }

  #bringer(home) {
    const bring = (specifier, options) => this.#bring(home, `${specifier}`, options);
    const url = pathToFileURL(home.module.filename).href;
    const resolve = (specifier) => pathOrName(home.require.resolve(specifier));
    return Object.assign(bring, { checked, meta: { url, filename: home.module.filename, dirname: path.dirname(home.module.filename), resolve } });
  }

  async #bring(home, specifier, options) {
    sniff(home, specifier);
    try {
      return await home.load(specifier, options);
    } catch (error) {
      // The loader may have a hook of its own by now, which has asked.
      const isAsked = String(error?.message).includes('[sandbox]');
      if (error?.code !== 'ERR_MODULE_NOT_FOUND' || isAsked || !isHooked()) throw error;
      // From the folder that the package has come to lie in.
      const next = (_, { parentURL }) => this.#home(path.dirname(fileURLToPath(parentURL))).load(specifier, options);
      return require(ASK).provideImport(specifier, { parentURL: pathToFileURL(home.module.filename).href }, next, error);
    }
  }
}

function makeHome(folder) {
  const module = new Module(FILE);
  module.filename = path.join(folder, FILE);
  module.paths = Module._nodeModulePaths(folder);
  const bringer = new Module(FILE);
  bringer.filename = module.filename;
  bringer.paths = module.paths;
  bringer._compile(BRINGING, module.filename);
  return { module, require: Module.createRequire(module.filename), load: bringer.exports.bring, bring: null };
}

// As a static one has it, which tells at once what is not there. Of modules of CommonJS more is found than Node looks for.
function checked(namespace, specifier, names) {
  const missing = names.filter((name) => !(name in namespace));
  if (missing.length === 0) return namespace;
  const whole = Object(namespace.default);
  for (const name of missing) {
    if (!(name in whole)) throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${name}'`);
  }
  return { ...namespace, ...Object.fromEntries(missing.map((name) => [name, whole[name]])) };
}

const pathOrName = (found) => (path.isAbsolute(found) ? pathToFileURL(found).href : `node:${found.replace(/^node:/, '')}`);

function isHooked() {
  return require.cache[HOOK] !== undefined || (process.env.NODE_OPTIONS ?? '').includes(HOOK);
}

// The hook looks into files that are required for what they import; of those that are imported it is told here.
function sniff(home, specifier) {
  if (!/^\.{0,2}\//.test(specifier) || !isHooked()) return;
  const file = path.resolve(path.dirname(home.module.filename), specifier);
  if (existsSync(file)) Module._resolveFilename(file, home.module, false);
}

module.exports = { Homes, BRING };
