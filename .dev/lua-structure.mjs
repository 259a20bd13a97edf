// Whether the Redis scripts keep the rules that CONTRIBUTING.md lists under "Redis scripts".
import { relative } from 'node:path';
import luaparse from 'luaparse';
import { luaSources, scriptFolders } from './embed-scripts.mjs';
import { root } from './processes.mjs';

const LIBRARY = 'library/';
const MOST_LINES = 150;
// Without comments and empty lines; of each library file once.
const MOST_CODE = 500;
const MOST_LINES_OF_FUNCTION = 50;

// What Redis gives to a script. A library file gets KEYS and ARGV as parameters.
const OF_REDIS = new Set(
  'redis cjson struct string table math ipairs pairs type tonumber tostring unpack error next pcall select'.split(' '),
);
const OF_SCRIPT = new Set([...OF_REDIS, 'KEYS', 'ARGV']);
const CONSTANT = /^[A-Z_]+$/;
const INCLUDE = /^( *)-- include: (.+)$/gm;
const HEADER = /^#!.*\n--\[\[[^]*?\]\]\n/;

const byFolder = scriptFolders().map((folder) => [relative(root, folder), Object.entries(luaSources(folder))]);

// No two packages have a script of one name: the check of names is told the folder of each.
const sources = new Map(byFolder.flatMap(([, entries]) => entries));
const folders = new Map(byFolder.flatMap(([folder, entries]) => entries.map(([name]) => [name, folder])));

// The file of each function of the library. Where an option chooses between two files, both have the same.
const inLibrary = new Map(
  [...sources].flatMap(([name, source]) => (isOfLibrary(name) ? functionsIn(source).map((each) => [each, name]) : [])),
);

export function luaProblems() {
  return [...sources].flatMap(([name, source]) => {
    const check = isOfLibrary(name) ? libraryProblems : scriptProblems;
    const found = [...check(source), ...sameNameProblems(name, source)];
    return found.map((problem) => `${folders.get(name)}/${name}.lua: ${problem}`);
  });
}

/** A reader who knows a function of the library meets no other one of its name. */
function* sameNameProblems(name, source) {
  for (const each of functionsIn(source)) {
    const file = inLibrary.get(each);
    if (file && file !== name && placeOf(file) !== placeOf(name))
      yield `its function ${each} has the name of one in ${file}`;
  }
}

/** Nothing but functions and constants, which use nothing but each other and what they include. */
function* libraryProblems(source) {
  for (const statement of parsed(source).body) {
    if (!isFunction(statement) && !isConstant(statement)) {
      yield `line ${statement.loc.start.line} is neither a local function nor a constant`;
    }
  }
  yield* functionProblems(source);
  yield* globalProblems(source, OF_REDIS);
}

function* scriptProblems(source) {
  const lines = linesIn(source);
  if (lines > MOST_LINES) yield `has ${lines} lines, more than ${MOST_LINES}`;
  const all = sum([source, ...includedIn(source)].map(codeLinesIn));
  if (all > MOST_CODE) yield `has ${all} lines of code with what it includes, more than ${MOST_CODE}`;
  yield* functionProblems(source);
  const own = linesIn(source.replace(HEADER, '')) - sum(parsed(source).body.filter(isFunction).map(linesOf));
  if (own > MOST_LINES_OF_FUNCTION)
    yield `has ${own} lines outside of its functions, more than ${MOST_LINES_OF_FUNCTION}`;
  yield* globalProblems(source, OF_SCRIPT);
}

function* functionProblems(source) {
  const functions = [];
  luaparse.parse(withoutShebang(source), {
    locations: true,
    onCreateNode: (node) => node.type === 'FunctionDeclaration' && functions.push(node),
  });
  for (const each of functions) {
    const lines = linesOf(each);
    const name = each.identifier?.name ?? 'without a name';
    if (lines > MOST_LINES_OF_FUNCTION)
      yield `function ${name} has ${lines} lines, more than ${MOST_LINES_OF_FUNCTION}`;
  }
}

function* globalProblems(source, known) {
  for (const { name } of parsed(withIncludes(source)).globals) {
    if (!known.has(name)) yield `uses ${name}, which it neither declares nor includes`;
  }
}

function isOfLibrary(name) {
  return name.startsWith(LIBRARY);
}

/** Without what tells the files apart between which an option chooses. */
function placeOf(name) {
  return name.replace(/-in-(buckets|sorted-set)$/, '');
}

function functionsIn(source) {
  return [...source.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
}

function isFunction({ type, isLocal }) {
  return type === 'FunctionDeclaration' && isLocal;
}

function isConstant({ type, variables, init }) {
  if (type !== 'LocalStatement' || !variables.every(({ name }) => CONSTANT.test(name))) return false;
  return init.every((each) => each.type.endsWith('Literal') || each.type === 'TableConstructorExpression');
}

/** As define-scripts.ts does it. Where an included file differs by an option, any of them will do. */
function withIncludes(source, known = new Set()) {
  return source.replace(INCLUDE, (_, margin, names) => {
    const here = margin === '' ? known : new Set(known);
    const added = names.split(', ').filter((name) => !here.has(name) && here.add(name));
    return added.map((name) => withIncludes(libraryFile(name), here)).join('\n');
  });
}

/** The library files that a script includes, and those that these include. */
function includedIn(source, known = new Set()) {
  const names = [...source.matchAll(INCLUDE)].flatMap(([, , list]) => list.split(', '));
  return names.flatMap((name) => {
    if (known.has(name)) return [];
    known.add(name);
    return [libraryFile(name), ...includedIn(libraryFile(name), known)];
  });
}

function libraryFile(name) {
  const file = sources.get(LIBRARY + name) ?? sources.get(`${LIBRARY}${name}-in-sorted-set`);
  if (file === undefined) throw new Error(`There is no library file ${name}`);
  return file;
}

function parsed(source) {
  return luaparse.parse(withoutShebang(source), { locations: true, scope: true });
}

/** With as many lines. */
function withoutShebang(source) {
  return source.replace(/^#!.*/, '');
}

function linesOf({ loc: { start, end } }) {
  return end.line - start.line + 1;
}

function codeLinesIn(text) {
  const lines = text.replace(HEADER, '').split('\n');
  return lines.filter((line) => !/^\s*(--.*)?$/.test(line)).length;
}

function linesIn(text) {
  return text.split('\n').length - 1;
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
