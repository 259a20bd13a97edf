import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './support/compiler.js';

interface Row {
  readonly spring: string;
  readonly here: string;
  readonly difference: string;
}

/** Options for which Spring Session has nothing. The page names all others. */
const OF_OUR_OWN = [
  'anonymousTimeout',
  'deviceBound',
  'devices',
  'encryption',
  'grace',
  'maxAttributeSize',
  'maxAttributes',
  'maxSessionSize',
  'mayCreate',
  'partitions',
  'replicas',
  'requireAtStart',
  'rotateEvery',
  'security',
  'semanticMetrics',
  'sessionIds',
  'touchInterval',
  'visitorAttributes',
];

/** What the tables name in the column "here" exists: in the API reports, the options or the page about events. */
describe('docs/from-spring-session.md', () => {
  let rows: Row[];
  let known: string;
  let options: string[];

  const read = (path: string) => readFile(join(ROOT, path), 'utf8');

  beforeAll(async () => {
    const tables = (await read('docs/from-spring-session.md')).matchAll(/^\| (.+?) +\| (.+?) +\|(?: (.*?) *\|)$/gm);
    const all = [...tables].map(([, spring, here, difference]) => ({
      spring: spring!,
      here: here!,
      difference: difference!,
    }));
    rows = all.filter(({ spring, here }) => here !== 'here' && !spring.startsWith('-'));
    const reports = (await readdir(join(ROOT, 'docs/evidence/api'))).map((file) => `docs/evidence/api/${file}`);
    // No report has the interface of a session: its name is that of the decorator as well.
    const others = ['packages/session-core/src/session/session.ts', 'docs/options.md', 'docs/events.md'];
    known = (await Promise.all([...reports, ...others].map(read))).join('\n');
    const [ofSessions] = (await read('docs/options.md')).split('## `SessionAdminModule');
    const names = ofSessions!.matchAll(/^\| `(\w+)/gm);
    options = [...new Set([...names].map(([, name]) => name!))];
  });

  it('names only what exists here', () => {
    expect(rows.length).toBeGreaterThan(80);
    const names = rows.flatMap(({ here }) => [...here.matchAll(/`([^`]+)`/g)].map(([, code]) => code!));
    const unknown = names.filter((code) => !exists(code));
    expect(unknown).toEqual([]);
  });

  // So that no row says "not here" of what an option has added since.
  it('names every option that Spring Session knows in some form', () => {
    expect(options.length).toBeGreaterThan(40);
    const here = rows.map((row) => row.here).join('\n');
    const unnamed = options.filter((option) => !new RegExp(`\\b${option}\\b`).test(here));
    expect(unnamed.toSorted()).toEqual(OF_OUR_OWN);
  });

  it('gives a reason for everything that is not here', () => {
    const unexplained = rows.filter(({ here, difference }) => here === 'not here' && difference === '');
    expect(unexplained).toEqual([]);
  });

  it('has no row twice', () => {
    const names = rows.map(({ spring }) => spring).filter((spring) => spring !== 'not in Spring Session');
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  /**
   * `await session.save()`, `timeout: '30m'`, `cookie.path`, `@Session()`: the last name before a bracket or a colon.
   */
  function exists(code: string): boolean {
    if (/^(spring|server)\./.test(code) || code.startsWith('@nestjs/')) return true;
    const [, name = ''] = /(\w+)(?:\(.*\))?(?:: .*)?$/.exec(code) ?? [];
    return new RegExp(`\\b${name}\\b`).test(known);
  }
});
