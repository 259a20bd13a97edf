import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REFUSALS } from '@nest-session/core';
import ts from 'typescript';
import { ROOT } from './support/compiler.js';
import { section } from './support/markdown.js';

const STATUSES = new Map([
  ['UNAUTHORIZED', 401],
  ['FORBIDDEN', 403],
  ['CONFLICT', 409],
  ['PAYLOAD_TOO_LARGE', 413],
  ['TOO_MANY_REQUESTS', 429],
  ['SERVICE_UNAVAILABLE', 503],
]);

/** Of Nest: whatever they are given is a body of these statuses, or may be one. */
const EXCEPTIONS = [
  'HttpException',
  'UnauthorizedException',
  'ForbiddenException',
  'ConflictException',
  'PayloadTooLargeException',
  'ServiceUnavailableException',
];

/** Where a status stands that is no body of ours, and why. */
const OTHERS = new Map([
  ['packages/session-core/src/errors/refusals.ts', 'the table'],
  ['packages/session-core/src/openapi/document-session.ts', 'describes the responses'],
  ['packages/session-core/src/device/device-endpoints.ts', 'the protocol of browsers has no bodies'],
  ['packages/session-core/src/device/bound-devices.ts', 'compares the status of a response'],
  [
    'packages/session-provider-logout/src/endpoints/provider-endpoints.ts',
    'the protocols of identity providers have bodies of their own',
  ],
  ['packages/session-websockets/src/gateways/platforms.ts', 'sends what ws sends when the application refuses'],
]);

interface Place {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly isOfTable: boolean;
}

/** Every place of a source that makes a refusal, and whether its body is one of the table. */
function* refusalsIn(path: string, text: string): Generator<Place> {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const places: Place[] = [];
  const note = (node: ts.Node, isOfTable: boolean) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    places.push({ path, line: line + 1, text: node.getText(), isOfTable });
  };
  const bodies = new Set<string>();
  const visit = (node: ts.Node, base?: string): void => {
    if (ts.isClassLike(node)) base = node.heritageClauses?.[0]?.types[0]?.expression.getText();
    if (ts.isVariableDeclaration(node) && node.initializer?.getText().startsWith('refusalBody('))
      bodies.add(node.name.getText());
    const { first, of } = thrown(node, base);
    if (EXCEPTIONS.includes(of ?? '') && !first.startsWith('{ statusCode: 499')) {
      note(node, /^(?:refusalBody|\.\.\.refusal)\(/.test(first) || bodies.has(first));
    }
    if (isStatus(node) && !OTHERS.has(path)) note(node, false);
    ts.forEachChild(node, (child) => visit(child, base));
  };
  visit(file);
  yield* places;
}

/** The class and the first argument of what makes an exception. */
function thrown(node: ts.Node, base: string | undefined): { of?: string | undefined; first: string } {
  const isSuper = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;
  if (!isSuper && !ts.isNewExpression(node)) return { first: '' };
  return { of: isSuper ? base : node.expression.getText(), first: node.arguments?.[0]?.getText() ?? '' };
}

function isStatus(node: ts.Node): boolean {
  if (ts.isNumericLiteral(node)) return [...STATUSES.values()].includes(Number(node.text));
  return (
    ts.isPropertyAccessExpression(node) &&
    STATUSES.has(node.name.text) &&
    node.expression.getText().endsWith('HttpStatus')
  );
}

async function filesIn(...folders: RegExp[]): Promise<string[]> {
  const all = await Promise.all(
    ['packages', 'libs'].map(async (top) =>
      (await readdir(join(ROOT, top), { recursive: true })).map((path) => `${top}/${path}`),
    ),
  );
  return all.flat().filter((path) => path.endsWith('.ts') && folders.some((folder) => folder.test(path)));
}

const SOURCES = /^packages\/[\w-]+\/src\//;
const TESTS = [/^packages\/[\w-]+\/test\//, /^libs\/test-infrastructure\/src\//];

const textOf = (path: string) => readFile(join(ROOT, path), 'utf8');

it('every response of 401, 403, 409, 413, 429 or 503 has a body with a reason of the table', async () => {
  const sources = await filesIn(SOURCES);
  const found = (await Promise.all(sources.map(async (path) => [...refusalsIn(path, await textOf(path))]))).flat();
  expect(found.filter(({ isOfTable }) => !isOfTable)).toEqual([]);
  expect(found.length).toBeGreaterThan(20);
});

it.each([
  ["throw new ForbiddenException('No')", 1],
  ['throw new ConflictException()', 1],
  ['class A extends HttpException { constructor() { super({}, 429); } }', 2],
  ['response.writeHead(503).end()', 1],
  ['response.status(HttpStatus.UNAUTHORIZED)', 1],
  ["throw new ForbiddenException(refusalBody('cross-origin'))", 0],
  ["const body = refusalBody('x'); throw new HttpException(body, body.statusCode)", 0],
])('a place like %s has %i without a reason', (text, count) => {
  expect([...refusalsIn('packages/x/src/x.ts', text)].filter(({ isOfTable }) => !isOfTable)).toHaveLength(count);
});

it('every reason of the table is sent by some place, and a test expects it', async () => {
  const product = (await Promise.all((await filesIn(SOURCES)).map(textOf)))
    .join('\n')
    .replace(/^const TABLE = [^]*?^\}/m, '');
  const tests = (await Promise.all((await filesIn(...TESTS)).map(textOf))).join('\n');
  const unused = Object.keys(REFUSALS).filter((reason) => !product.includes(`'${reason}'`));
  const untested = Object.keys(REFUSALS).filter((reason) => !tests.includes(reason));
  expect({ unused, untested }).toEqual({ unused: [], untested: [] });
});

it('protecting-routes.md has each reason with its status, and no other page has a table of them', async () => {
  const page = section(await textOf('docs/protecting-routes.md'), 'What a refusal says');
  const rows = [...page.matchAll(/^\| (\d{3}) +\| `([\w-]+)`/gm)].map(([, status, reason]) => [reason, Number(status)]);
  expect(rows).toEqual(Object.values(REFUSALS).map(({ reason, statusCode }) => [reason, statusCode]));
});
