import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LeakGuard, Program } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { codeBlocks } from './support/markdown.js';
import { compile, ROOT } from './support/compiler.js';

LeakGuard.install();

it('the first program of docs/deadlines.md prints what the page shows', async () => {
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'deadlines-'));
  const redis = await RedisServer.start();
  const text = await readFile(join(ROOT, 'docs/deadlines.md'), 'utf8');
  const [[block = ''], [shown = '']] = [codeBlocks(text, 'ts'), codeBlocks(text, 'text')];
  await writeFile(join(folder, 'main.ts'), block);
  expect(await compile(new Map([[join(folder, 'tsconfig.json'), ['main.ts']]]))).toBe('');
  const program = Program.start([join(folder, 'main.js')], { REDIS_URL: redis.url });
  try {
    const printed = () => program.output.split('\n').filter((line) => line !== '' && !line.includes('[Nest]'));
    await eventually(() => expect(printed()).toEqual(shown.trimEnd().split('\n')), { timeout: 30_000 });
  } finally {
    program.child.kill('SIGKILL');
    await program.exit;
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
