import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './support/program.js';

interface Row {
  readonly spring: string;
  readonly here: string;
  readonly difference: string;
}

/** What the tables name in the column "here" exists: in the API reports, the options or the README. */
describe('docs/from-spring-session.md', () => {
  let rows: Row[];
  let known: string;

  const read = (path: string) => readFile(join(ROOT, path), 'utf8');

  beforeAll(async () => {
    const tables = (await read('docs/from-spring-session.md')).matchAll(/^\| (.+?) +\| (.+?) +\|(?: (.*?) *\|)$/gm);
    const all = [...tables].map(([, spring, here, difference]) => ({
      spring: spring!,
      here: here!,
      difference: difference!,
    }));
    rows = all.filter(({ spring, here }) => here !== 'here' && !spring.startsWith('-'));
    const reports = (await readdir(join(ROOT, 'docs/api'))).map((file) => `docs/api/${file}`);
    known = (await Promise.all([...reports, 'docs/options.md', 'README.md'].map(read))).join('\n');
  });

  it('names only what exists here', () => {
    expect(rows.length).toBeGreaterThan(100);
    const names = rows.flatMap(({ here }) => [...here.matchAll(/`([^`]+)`/g)].map(([, code]) => code!));
    const unknown = names.filter((code) => !exists(code));
    expect(unknown).toEqual([]);
  });

  it('gives a reason for everything that is not here', () => {
    const unexplained = rows.filter(({ here, difference }) => here === 'not here' && difference === '');
    expect(unexplained).toEqual([]);
  });

  it('has no row twice', () => {
    const names = rows.map(({ spring }) => spring).filter((spring) => spring !== 'not in Spring Session');
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  /** `await session.save()`, `timeout: '30m'`, `cookie.path`, `@Session()`: the last name before a bracket or a colon. */
  function exists(code: string): boolean {
    if (/^(spring|server)\./.test(code) || code.startsWith('@nestjs/')) return true;
    const [, name = ''] = /(\w+)(?:\(.*\))?(?:: .*)?$/.exec(code) ?? [];
    return new RegExp(`\\b${name}\\b`).test(known);
  }
});
