import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { COMMANDS } from '../../packages/session-redis/src/command/commands.js';
import { ROOT } from './support/compiler.js';
import { codeBlocks } from './support/markdown.js';
import { FEATURES, sentences, suspects } from './support/statements.js';

/** Modules that every page has, and those that a feature in the list comes with. */
const COMMON = [
  'DeadlineHandlerModule',
  'MapDeadlineModule',
  'MapSessionModule',
  'RedisDeadlineModule',
  'RedisSessionModule',
  'SessionModule',
  'TestDeadlineModule',
  'TestSessionModule',
];

/** True sentences that read as if something were not there, by a part of each. */
const TRUE = [
  'an instance that has no handler for a deadline',
  'it has no events and no index',
  'they have no metric and no span',
  'with encryption, the encrypted text; missing without data',
  '`@SpringSessionRedisOperations`',
  '`The CSRF token is missing: ...`',
  '`The session cookie was not sent, so the client has no session: ...`',
];

/** What pages say is not there, with the names that it would have. */
const NOT_THERE: readonly { page: string; says: string; wouldBe: RegExp }[] = [
  { page: 'docs/comparison.md', says: 'node-redis clients are not taken', wouldBe: /node-?redis/i },
  {
    page: 'docs/comparison.md',
    says: 'no passwords, no OAuth, no second factor',
    wouldBe: /^(OAuth|Passwords?[A-Z]|Users?[A-Z])/,
  },
  { page: 'docs/comparison.md', says: 'Two regions that both write', wouldBe: /region/i },
  { page: 'docs/comparison.md', says: 'one set of timeouts', wouldBe: /tenant/i },
  { page: 'docs/options.md', says: 'There is no option for the log', wouldBe: /^log(ger|Level)$/ },
  { page: 'docs/writing-a-store.md', says: 'The library has no list of all sessions', wouldBe: /^(findAll|listAll)/ },
];

/** Pages whose sentences quote figures of tables on other pages. */
const WITH_FIGURES = ['docs/comparison.md', 'docs/troubleshooting.md'];

const SIGN_OUT = /@Post\('(?:\w+\/)?(?:sign-?out|log-?out)'\)[^]*?\n {2}\}/g;

/** Texts for users, by their paths. */
let pages: Map<string, string>;
/** The names of all that ships: in the API reports, the tables of options and the list of commands. */
let shipped: Set<string>;
let classes: string[];

const read = (path: string) => readFile(join(ROOT, path), 'utf8');

beforeAll(async () => {
  const packages = (await readdir(join(ROOT, 'packages'))).map((name) => `packages/${name}/README.md`);
  const names = await readdir(join(ROOT, 'docs'), { recursive: true });
  // What the site copies of them is no page.
  const docs = names.filter((name) => name.endsWith('.md') && !name.startsWith('site/')).map((name) => `docs/${name}`);
  const isReport = (path: string) => path.endsWith('.api.md');
  const others = ['README.md', 'SECURITY.md', 'libs/testing/README.md', ...packages];
  const paths = [...others, ...docs.filter((path) => !isReport(path))];
  pages = new Map(await Promise.all(paths.map(async (path) => [path, await read(path)] as const)));
  const reports = (await Promise.all(docs.filter(isReport).map(read))).join('\n');
  classes = [...reports.matchAll(/^export (?:abstract )?class (\w+)/gm)].map(([, name]) => name!);
  const options = [...pages.get('docs/options.md')!.matchAll(/^\| `([\w.]+)`/gm)];
  shipped = new Set([
    ...(reports.match(/\b[a-zA-Z]\w+\b/g) ?? []),
    ...options.flatMap(([, name]) => name!.split('.')),
    ...COMMANDS.map(({ name }) => name),
  ]);
});

describe('the pages', () => {
  it('do not say that something is not there which is, and do not tell users to build it', () => {
    const found = [...pages].flatMap(([page, text]) => suspects(text).map((suspect) => ({ page, ...suspect })));
    expect(found.filter(({ text }) => !TRUE.some((part) => text.includes(part)))).toEqual([]);
    // An exception that nothing needs would hide what is written later.
    expect(TRUE.filter((part) => !found.some(({ text }) => text.includes(part)))).toEqual([]);
  });

  it.each(NOT_THERE)('say truly in $page: $says', ({ page, says, wouldBe }) => {
    expect(pages.get(page)!.replaceAll(/\s+/g, ' ')).toContain(says);
    expect([...shipped].filter((name) => wouldBe.test(name))).toEqual([]);
  });

  it('sign out with signOut()', async () => {
    const code = [...pages.values()].flatMap((text) => codeBlocks(text, 'ts'));
    const routes = code.flatMap((block) => block.match(SIGN_OUT) ?? []);
    expect(routes.length).toBeGreaterThan(5);
    expect(routes.filter((route) => !/[sS]ignOut\(\);|logOut\(|req\.logout\(/.test(route))).toEqual([]);
    expect(code.filter((block) => block.includes('.invalidate('))).toEqual([]);
  });

  it.each(WITH_FIGURES)('have the figures of the tables that they name: %s', (page) => {
    const others = [...pages].flatMap(([path, text]) => (WITH_FIGURES.includes(path) ? [] : [text])).join('\n');
    const measured = sentences(pages.get(page)!).filter((text) => /\btable\b/.test(text));
    const figures = measured.flatMap((text) => text.match(/\b\d+\.\d+\b|\b\d{1,3}(?:,\d{3})+\b/g) ?? []);
    expect(figures.length).toBeGreaterThan(1);
    expect(figures.filter((figure) => !others.includes(` ${figure} `))).toEqual([]);
  });
});

describe('the features that pages may not deny', () => {
  it('ship', () => {
    expect(FEATURES.filter(({ name }) => !shipped.has(name))).toEqual([]);
  });

  it('are all modules, guards and indicators', () => {
    const named = [...FEATURES.map(({ name }) => name), ...COMMON];
    const kinds = classes.filter((name) => /(Module|Guard|Indicator)$/.test(name));
    expect(kinds.length).toBeGreaterThan(10);
    expect(kinds.filter((name) => !named.includes(name))).toEqual([]);
  });
});

describe('a sentence', () => {
  // The first of them were in the documentation, and not true.
  it.each([
    ['indexes', 'The principal is the only index.'],
    ['maxSessions', '| `maximumSessions()` | not here | Spring Security has it |'],
    ['SessionWebSocketModule', 'The messages of sockets have none yet, so load the session yourself.'],
    ['AuthenticatedGuard', 'To require a signed-in user, write a guard that checks `session.principalName`.'],
    ['CsrfGuard', 'Keep a CSRF token in the session, and compare it.'],
    ['repartition', 'The number of partitions is fixed at the first start.'],
    ['SessionTelemetryModule', 'There are no metrics yet.'],
    ['SessionTelemetryModule', 'Prometheus is not supported: count requests in a middleware.'],
    ['SessionHealthIndicator', 'For a load balancer, write your own health indicator that sends a `PING`.'],
    ['encryption', 'The library does not offer encryption at rest.'],
    ['doctor', 'There is no command line.'],
  ])('that denies %s is found: %s', (feature, text) => {
    expect(suspects(text).map((suspect) => suspect.feature)).toContain(feature);
  });

  it.each([
    'There is no session in the message of a microservice.',
    'To require a signed-in user, use `AuthenticatedGuard`: you need not write a guard.',
    'With one partition there are no signals.',
    '`maximumSessions()` of Spring is the option `maxSessions.perPrincipal` here.',
    'Metrics have no ids.',
  ])('that denies nothing is not: %s', (text) => {
    expect(suspects(text)).toEqual([]);
  });
});
