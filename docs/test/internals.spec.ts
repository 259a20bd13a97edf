import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ROOT } from './support/compiler.js';
import { section } from './support/markdown.js';

interface Sign {
  /** Found in a line of code. */
  readonly line: RegExp;
  /** Also found there where it is about an object of the library, or about a contract. */
  readonly unless?: RegExp;
}

const FOREIGN =
  '(?:client|cluster|node|one|connection|connector|stream|socket|server|request|response|instance|engine)';

/** What the use of a detail of others looks like. */
const SIGNS: Readonly<Record<string, Sign>> = {
  'imports a file of another package': {
    line: /(?:from|import\(|require\(|module) ?'(?!@nest-session\/|node:|\.)(?:@[\w-]+\/)?[\w.-]+\/[^']+'/,
  },
  'loads a module by a path': { line: /\bcreateRequire\b|(?<![#\w])require(?:\.resolve)?\(/ },
  'casts to a shape that a type does not have': {
    line: new RegExp(String.raw` as unknown as |\b${FOREIGN}(?:\.\w+)? as (?:\{|\w+ & \{)`),
    // Another view of the same value.
    unless: / as unknown as (?:string|\[|Redis\b|Cluster\b)/,
  },
  'replaces a method': {
    line: /\b\w+\.(?:\w+ = \(?(?:async )?(?:function\b|\([^()]*(?:\([^()]*\)[^()]*)*\)(?:: [^=]+)? =>|\w+ =>)|(?:writeHead|write|end|emit|send\w*|use) = \w+;)/,
    // Objects of the library whose properties are there for it.
    unless: /\b(?:this|extension|epochs|serializer)\.\w+ = /,
  },
  'defines or deletes a property': {
    line: /\b(?:Object\.(?:definePropert(?:y|ies)|setPrototypeOf)|Reflect\.(?:deleteProperty|set))\((?!this,)/,
  },
  'inherits from an object': { line: /\bObject\.create\((?!null\b)/ },
  'names a member with an underscore': { line: /\._[a-z]|\{ _[a-z]\w*[ ,:]|^\s*(?:readonly )?_[a-z]\w*\?/ },
  'finds a symbol': { line: /\bgetOwnPropertySymbols\b|\bSymbol\.for\('(?!nodejs\.util\.inspect\.custom')/ },
  'names metadata': {
    line: /'(?!node:|nest-session:|nest:|spring:)[a-z]+:[a-z]+(?:_[a-z]+)*'|'__(?!proto__)\w+__'|\w+_METADATA\b/,
  },
  'takes what Nest does not document': {
    line: /\b(?:ModulesContainer|ApplicationConfig|InstanceWrapper)\b.* from '@nestjs\/|\.getGlobal\w+\(|\.distance\b|\binit\$/,
  },
  'knows the text of an error': {
    line: /\bmessage\)?\??\.(?:startsWith|includes|match)\(|\.(?:test|exec)\([^()]*\bmessage\)|\berror\.name === '/,
  },
};

/** Files that show a sign, and are about objects of the library. */
const OURS: Readonly<Record<string, string>> = {
  'session-bag.ts': 'a bag',
  'session-cookie.ts': 'copies of the methods of a class of the library',
  'session-principals.ts': 'an object of its own',
  'session-admin.module.ts': 'a class of the module',
  'refusals.ts': 'an error of the library',
  'request-bags.ts': 'a class of the library',
  'shared-session.listener.ts': 'a text that a script of the library returns',
};

interface Hit {
  readonly path: string;
  readonly sign: string;
  readonly line: string;
}

let page: string;
/** The files that the page names. */
let named: ReadonlySet<string>;
let sources: Map<string, string>;

beforeAll(async () => {
  page = section(await readFile(join(ROOT, 'docs/evidence/internals.md'), 'utf8'), 'Internals of others');
  named = new Set([...page.matchAll(/`([\w.-]+\.ts)`/g)].map(([, name]) => name!));
  const files = await readdir(join(ROOT, 'packages'), { recursive: true });
  const paths = files.filter((file) => /^[\w-]+\/src\/.*\.ts$/.test(file) && !file.endsWith('lua-sources.ts'));
  const read = paths.map(async (path) => [path, await readFile(join(ROOT, 'packages', path), 'utf8')] as const);
  sources = new Map(await Promise.all(read));
});

/** The lines of a source, without comments. An import of several lines counts as one. */
function linesOf(source: string): string[] {
  const code = source.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, '');
  return code.replaceAll(/^import [^;]*;/gm, (all) => all.replaceAll(/\s+/g, ' ')).split('\n');
}

function hitsIn(path: string, source: string): Hit[] {
  return linesOf(source).flatMap((line) =>
    Object.entries(SIGNS).flatMap(([sign, each]) =>
      each.line.test(line) && !each.unless?.test(line) ? [{ path, sign, line: line.trim() }] : [],
    ),
  );
}

describe('docs/evidence/internals.md, "Internals of others"', () => {
  it('names each file that uses a detail of others', () => {
    const hits = [...sources].flatMap(([path, source]) => hitsIn(path, source));
    expect(new Set(hits.map(({ path }) => path)).size).toBeGreaterThan(40);
    const unnamed = hits.filter(({ path }) => !named.has(basename(path)) && !(basename(path) in OURS));
    expect(unnamed).toEqual([]);
  });

  it('names only files that are there', () => {
    const files = new Set([...sources.keys()].map((path) => basename(path)));
    expect(named.size).toBeGreaterThan(50);
    expect([...named].filter((name) => !files.has(name))).toEqual([]);
  });

  it('names files and tests in each row', () => {
    const rows = [...page.matchAll(/^\| (?!relied on|-)(.*) \|$/gm)].map(([, row]) => row!.split(/ +\| +/));
    expect(rows.length).toBeGreaterThan(50);
    const without = rows.filter((cells) => {
      const [files = '', tests = ''] = cells.slice(-2);
      const isInFiles = /`[\w.-]+\.ts`$/.test(files) || files === 'scripts';
      return cells.length !== 4 || !isInFiles || !tests.startsWith('[');
    });
    expect(without).toEqual([]);
  });
});

it('what is known to be of the library shows a sign', () => {
  const hits = [...sources].flatMap(([path, source]) => hitsIn(path, source));
  const files = new Set(hits.map(({ path }) => basename(path)));
  expect(Object.keys(OURS).filter((file) => !files.has(file))).toEqual([]);
});

it.each([
  ["import { Thing } from '@nestjs/core/router/thing.js';", 'imports a file of another package'],
  ["import {\n  Thing,\n} from 'ioredis/built/thing.js';", 'imports a file of another package'],
  ["const { Thing } = await import('ws/lib/thing.js');", 'imports a file of another package'],
  ["const load = createRequire('/');", 'loads a module by a path'],
  ['const { secret } = client as unknown as { secret: string };', 'casts to a shape that a type does not have'],
  ['const { secret } = socket as Socket & { secret: string };', 'casts to a shape that a type does not have'],
  ['server.emit = function (event) {', 'replaces a method'],
  ['engine.verify = (request, decide) =>', 'replaces a method'],
  ['stream.write = write;', 'replaces a method'],
  ["Object.defineProperty(client, 'timer', { value });", 'defines or deletes a property'],
  ["Reflect.deleteProperty(command, 'keys');", 'defines or deletes a property'],
  ['return Object.create(client, { send });', 'inherits from an object'],
  ['const { _key } = manager;', 'names a member with an underscore'],
  ['manager._key = key;', 'names a member with an underscore'],
  ['Object.getOwnPropertySymbols(instance).find(isOptions)', 'finds a symbol'],
  ["Reflect.getMetadata('graphql:resolver_type', method)", 'names metadata'],
  ["Reflect.getMetadata('__guards__', method)", 'names metadata'],
  ["import { ModulesContainer } from '@nestjs/core';", 'takes what Nest does not document'],
  ["if (error.message.startsWith('Socket timeout')) return;", 'knows the text of an error'],
])('a new use would be noticed: %s', (line, sign) => {
  expect(hitsIn('new.ts', `/** Says createRequire() */\n${line}\n`).map((each) => each.sign)).toContain(sign);
});

it.each([
  "import { Thing } from '@nest-session/core/internal';",
  "import { once } from 'node:events';",
  '// createRequire() and client._secret',
  ' * server.emit = function () {',
  'this.done = () => undefined;',
  'const known = Object.create(null);',
  "const key = 'nest:session';",
])('what is no use of others is none: %s', (line) => {
  expect(hitsIn('new.ts', `/**\n${line}\n*/\n${line.startsWith(' *') ? '' : line}\n`)).toEqual([]);
});
