import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../../../docs/from-express-session.md', import.meta.url));
const README = join(dirname(createRequire(import.meta.url).resolve('express-session')), 'README.md');

/** The options, methods and properties that the documentation of express-session has headings for. */
async function documentedNames(): Promise<string[]> {
  const readme = await readFile(README, 'utf8');
  const api = readme.slice(readme.indexOf('\n## API'), readme.indexOf('\n## Compatible Session Stores'));
  return [...api.matchAll(/^#{3,5} (.+)$/gm)].map(([, name]) => name!).filter((name) => !OVERVIEWS.includes(name));
}

// Headings of groups.
const OVERVIEWS = ['session(options)', 'Options'];

describe('the page about express-session', () => {
  it('has a row for each option, method and property that express-session documents', async () => {
    const page = await readFile(PAGE, 'utf8');
    const cells = [...page.matchAll(/^\| (.*?) +\|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)]);
    const rows = cells.map(([, code]) => code);
    const names = await documentedNames();
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter((name) => !rows.includes(name))).toEqual([]);
  });
});
