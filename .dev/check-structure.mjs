// npm run check:structure: whether the sources keep the rules that CONTRIBUTING.md lists under "Where things are" and
// "Redis scripts": which folder may import from which, what files are called, and that they load anywhere.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { luaProblems } from './lua-structure.mjs';
import { root } from './processes.mjs';
import { publishedPackages } from './workspaces.mjs';

// Prettier keeps code to this width, and leaves comments as they are.
const WIDE_COMMENT = /^(?=.{121})\s*(?:\/\/|\/?\*)/;
const OF_CORE = /^(?:import|export) (?:type )?\{([^}]*)\} from '(@nest-session\/[^']+)';/gm;
const EXPORTED = /^export (?:async |abstract )?(?:function\*?|class|interface) (\w+)/gm;
const IMPORT = /^(?:import|export)\s[^;]*?from '(\.{1,2}\/[^']+)';/gm;

const rules = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
const roles = new Set([...rules.matchAll(/^\| roles +\| (.+) \|$/gm)].flatMap(([, list]) => quotedIn(list)));
const orders = rowsUnder('source').map(([folder, ...order]) => [folder, order]);
const layers = new Map(rowsUnder('layer').map(([folder, last, ...names]) => [folder, { last, names }]));

const published = publishedPackages().map(({ folder }) => folder);

const exported = new Map();
const problems = [...orders.flatMap(([folder, order]) => problemsOf(folder, order)), ...luaProblems()];
if (roles.size === 0 || orders.length === 0 || layers.size === 0) {
  problems.push('CONTRIBUTING.md lists no roles, no order of folders or no layer');
}
for (const problem of problems) console.error(problem);
console.log(`${orders.map(([folder]) => folder).join(', ')}: ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;

function problemsOf(packageFolder, order) {
  const source = join(root, packageFolder, 'src');
  const files = readdirSync(source, { encoding: 'utf8', recursive: true }).filter((file) => file.endsWith('.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    const found = [...importProblems(file, text, order), ...nameProblems(file, text), ...widthProblems(text)];
    found.push(...sameNameProblems(`${packageFolder}/src/${file}`, text));
    const layer = layers.get(packageFolder);
    if (layer) found.push(...layerProblems(file, text, order, layer));
    if (published.includes(packageFolder)) found.push(...loadProblems(text));
    return found.map((problem) => `${packageFolder}/src/${file}: ${problem}`);
  });
}

/** What stands in no folder, such as the module itself, comes last. */
function* importProblems(file, text, order) {
  const own = rankOf(file, order);
  if (own < 0) yield `its folder has no place in the order: ${order.join(', ')}`;
  for (const [, specifier] of text.matchAll(IMPORT)) {
    const imported = relative('.', join(dirname(file), specifier));
    if (rankOf(imported, order) > own) yield `imports ${imported}, which comes later in the order`;
  }
}

/** The folders up to the last one of a layer import few names of other packages. */
function* layerProblems(file, text, order, { last, names }) {
  if (rankOf(file, order) > order.indexOf(last)) return;
  for (const [, list, from] of text.matchAll(OF_CORE)) {
    const imported = list.split(',').map((each) => each.trim().replace(/^type /, ''));
    for (const name of imported) {
      if (name !== '' && !names.includes(name)) yield `imports ${name} of ${from}, which its layer must not know`;
    }
  }
}

/** That of the innermost folder that has a place. Beside the folders is behind them. */
function rankOf(path, order) {
  if (!path.includes('/')) return order.length;
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    if (order.includes(folder)) return order.indexOf(folder);
  }
  return -1;
}

/** `subject.role.ts` with a role of the list, or the kebab-case name of something that has none. */
function* nameProblems(file, text) {
  const [subject, ...rest] = basename(file, '.ts').split('.');
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(subject)) yield 'its name is not in kebab case';
  for (const role of rest) if (!roles.has(role)) yield `"${role}" is no role of the list`;
  const last = subject.split('-').at(-1);
  const functions = [...text.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, each]) => each);
  const isFunction = functions.some((each) => each.toLowerCase() === subject.replaceAll('-', ''));
  if (rest.length === 0 && !isFunction && subject.includes('-') && roles.has(last)) {
    yield `a dot belongs before the role "${last}"`;
  }
  const name = [...subject.split('-'), ...rest.flatMap((role) => role.split('-'))].map(capitalized).join('');
  const classes = [...text.matchAll(/^export (?:abstract )?class (\w+)/gm)].map(([, each]) => each);
  if (classes.length === 1 && classes[0] !== name && !file.endsWith('s.ts')) {
    yield `its class ${classes[0]} is not called ${name}`;
  }
}

/** A name stands for one function, class or interface of all packages. Every command has a function `run`. */
function* sameNameProblems(path, text) {
  if (path.endsWith('.command.ts')) return;
  for (const [, name] of text.matchAll(EXPORTED)) {
    const other = exported.get(name);
    if (other && other !== path) yield `exports ${name}, as does ${other}`;
    exported.set(name, path);
  }
}

function* widthProblems(text) {
  for (const [index, line] of text.split('\n').entries())
    if (WIDE_COMMENT.test(line)) yield `line ${index + 1} is a comment of more than 120 columns`;
}

/** CommonJS has no `import.meta`, and nothing lies beside a bundle. */
function* loadProblems(text) {
  if (/\bimport\.meta\b/.test(text)) yield 'uses import.meta, and must load as CommonJS and from a bundle';
}

/** What is quoted in each row of the table whose head begins with a word. */
function rowsUnder(head) {
  const [, table = ''] = new RegExp(`^\\| ${head} .*\\n\\|.*\\n((?:\\|.*\\n)+)`, 'm').exec(rules) ?? [];
  return table
    .split('\n')
    .filter((row) => row !== '')
    .map(quotedIn);
}

function quotedIn(list) {
  return [...list.matchAll(/`([\w/-]+)`/g)].map(([, each]) => each);
}

function capitalized(word) {
  return word[0].toUpperCase() + word.slice(1);
}
