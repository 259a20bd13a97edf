import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SPRING_RULES } from '../../packages/session-spring/src/look/spring-look.js';
import { ROOT } from './support/compiler.js';
import { section } from './support/markdown.js';

it('docs/spring-boot.md has the rules that `spring` knows, in its words', async () => {
  const page = await readFile(join(ROOT, 'docs/spring-boot.md'), 'utf8');
  const rows = [...section(page, 'What Spring leaves behind').matchAll(/^\| `([\w-]+)` +\| (.+?) +\| (.+?) +\|$/gm)];
  const told = rows.map(([, rule, problem, mending]) => [
    rule,
    problem,
    mending!.startsWith('stays: ') ? undefined : mending,
  ]);
  expect(told).toEqual(Object.entries(SPRING_RULES).map(([rule, { problem, mending }]) => [rule, problem, mending]));
});
