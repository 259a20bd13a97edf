// For the workers of Jest: every test file loads its modules anew, Express, Fastify and ioredis among them. This keeps
// the scripts that V8 has compiled for the next file of the same worker.
import vm from 'node:vm';

const { compileFunction } = vm;

// By the names of their files, each with its code: another transformation may have other code.
const scripts = new Map();

/** Whether it imports on demand: that belongs to the test file that runs. */
const IMPORTS = /\bimport\s*\(/;

export function compileOnce() {
  vm.compileFunction = compileScript;
}

/** A script, unlike a function, belongs to no context. It also keeps the functions that were compiled in a call. */
function compileScript(code, params, options) {
  const { filename, parsingContext } = options;
  if (IMPORTS.test(code)) return compileFunction(code, params, options);
  let known = scripts.get(filename);
  if (known?.code !== code) {
    const head = `(function (${params.join(', ')}) {`;
    known = { code, script: new vm.Script(`${head}${code}\n})`, { filename, columnOffset: -head.length }) };
    scripts.set(filename, known);
  }
  return known.script.runInContext(parsingContext);
}
