// Where mistakes are made: functions, classes and their members in TypeScript, scripts and their functions in Lua. They are
// found by their names, in whatever file they are.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { root } from '../processes.mjs';
import { commonTokens, occurrencesOf, tokensOf } from './tokens.mjs';

/** All places by name. Where several have the same name, only `file: name` tells them apart. */
export async function findPlaces() {
  // Not before it may have been installed.
  const { default: ts } = await import('typescript');
  const places = [
    ...filesIn(['packages'], /\/src\/.*\.ts$/).flatMap((file) => placesInTypeScript(ts, file, sourceOf(file))),
    ...filesIn(['packages'], /\/src\/.*\.lua$/).flatMap((file) => placesInLua(file, sourceOf(file))),
  ];
  const byName = groupedBy(places, ({ name }) => name);
  for (const place of places) byName.set(`${place.home}: ${place.name}`, [place]);
  return byName;
}

/** @returns the file, and from where to where the code stands in it that a mutant replaces */
export function locate(mutant, places) {
  const named = places.get(mutant.in) ?? [];
  const problem = (text, candidates) => new Error(`"${mutant.mistake}": ${text}\n${candidates.join('\n')}\n`);
  if (named.length !== 1) {
    const text = named.length === 0 ? 'there is no' : 'there are several of the name';
    const names = named.map(({ home, name }) => `${home}: ${name}`);
    throw problem(`${text} ${mutant.in}. The nearest:`, named.length > 0 ? names : nearestNames(mutant.in, places));
  }
  const [{ file, language, start, end }] = named;
  const code = tokensOf(mutant.code, language);
  const tokens = tokensOf(sourceOf(file).slice(start, end), language);
  const [at, ...others] = occurrencesOf(code, tokens);
  const where = (first) => ({
    file,
    start: start + tokens[first].start,
    end: start + tokens[first + code.length - 1].end,
  });
  if (others.length > 0) throw problem(`${mutant.in} has more than once`, [mutant.code]);
  if (at !== undefined) return where(at);
  const near = nearestCode(code, tokens).map((first) => textAt(where(first)));
  throw problem(`${mutant.in} does not have`, [
    mutant.code,
    'The nearest there:',
    ...near,
    ...elsewhere(mutant, places),
  ]);
}

/** The base names of the specs, each with the paths of those that have it. */
export function findSpecs() {
  return groupedBy(filesIn(['packages', 'libs'], /\/test\/.*\.(spec|chaos)\.ts$/), (file) => basename(file));
}

/** The names most like one, by the pairs of letters that they share. */
export function nearestNames(name, named) {
  const pairs = (text) =>
    [...text.toLowerCase()].slice(1).map((letter, i) => ({ token: text[i].toLowerCase() + letter }));
  const likeness = (other) => (2 * commonTokens(pairs(name), pairs(other))) / (name.length + other.length);
  return [...named.keys()].sort((one, other) => likeness(other) - likeness(one)).slice(0, 5);
}

function placesInTypeScript(ts, file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const place = (node, name) => {
    return { name, file, home: homeOf(file), language: 'ts', start: node.getStart(), end: node.end };
  };
  return source.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map((each) => place(statement, each.name.getText()));
    }
    if (!statement.name) return [];
    const name = statement.name.getText();
    const members = ts.isClassDeclaration(statement) ? statement.members : [];
    const isBody = (member) => !ts.isMethodDeclaration(member) || member.body !== undefined;
    return [
      place(statement, name),
      ...members.filter(isBody).map((member) => place(member, `${name}.${member.name?.getText() ?? 'constructor'}`)),
    ];
  });
}

/** A script is named as its file, an include as `includes/<file>`; a function of either behind its name and a colon. */
function placesInLua(file, text) {
  const home = file.includes('/includes/') ? `includes/${homeOf(file)}` : homeOf(file);
  const functions = [...text.matchAll(/^local function (\w+)[^]*?^end$/gm)];
  const inside = functions.map(({ 0: code, 1: name, index }) => ({
    name: `${home}: ${name}`,
    start: index,
    end: index + code.length,
  }));
  return [{ name: home, start: 0, end: text.length }, ...inside].map((each) => ({
    ...each,
    file,
    home,
    language: 'lua',
  }));
}

function nearestCode(code, tokens) {
  const windows = tokens.map((_, first) => first).slice(0, Math.max(1, tokens.length - code.length + 1));
  const likeness = (first) => commonTokens(code, tokens.slice(first, first + code.length));
  return windows
    .filter((first) => tokens[first + code.length - 1])
    .sort((a, b) => likeness(b) - likeness(a))
    .slice(0, 1);
}

function elsewhere(mutant, places) {
  const having = [...new Set([...places.values()].flat())].filter(({ file, language, start, end }) => {
    const tokens = tokensOf(sourceOf(file).slice(start, end), language);
    return occurrencesOf(tokensOf(mutant.code, language), tokens).length > 0;
  });
  return having.length > 0 ? ['It is in:', ...having.map(({ name }) => name)] : [];
}

function textAt({ file, start, end }) {
  return sourceOf(file).slice(start, end);
}

function homeOf(file) {
  return basename(file).replace(/\.\w+$/, '');
}

/** The files in the packages of some folders whose paths match. */
function filesIn(folders, pattern) {
  const packages = folders.flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  const rooms = packages
    .flatMap((each) => [`${each}/src`, `${each}/test`])
    .filter((room) => existsSync(join(root, room)));
  const files = rooms.flatMap((room) =>
    readdirSync(join(root, room), { encoding: 'utf8', recursive: true }).map((path) => `${room}/${path}`),
  );
  return files.filter((file) => pattern.test(file)).sort();
}

function groupedBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

const sources = new Map();

function sourceOf(file) {
  if (!sources.has(file)) sources.set(file, readFileSync(join(root, file), 'utf8'));
  return sources.get(file);
}
