import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BeanstalkdServer, LeakGuard, Program } from '@nest-session/test-infrastructure';
import { eventually, freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { codeBlocks, section } from './support/markdown.js';
import { compile, ROOT } from './support/compiler.js';

LeakGuard.install();

it('the program of docs/expiry.md hears of the end of a cart from beanstalkd', async () => {
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'timers-'));
  const [redis, beanstalkd] = [await RedisServer.start(), await BeanstalkdServer.start()];
  // Without key events, which could be faster.
  const environment = { REDIS_URL: redis.url, BEANSTALKD_PORT: `${beanstalkd.port}`, PORT: `${await freePort()}` };
  const text = section(await readFile(join(ROOT, 'docs/expiry.md'), 'utf8'), 'Timers outside of Redis');
  const [block = ''] = codeBlocks(text, 'ts');
  await writeFile(join(folder, 'main.ts'), block.replace('expirations:', "notifications: 'off',\n      expirations:"));
  expect(await compile(new Map([[join(folder, 'tsconfig.json'), ['main.ts']]]))).toBe('');
  const program = Program.start([join(folder, 'main.js')], environment);
  try {
    const agent = new HttpAgent(`http://localhost:${environment.PORT}`);
    await eventually(() => agent.get('/'), { timeout: 60_000 });
    expect((await agent.post('/cart', { item: 'apple', seconds: 1 })).status).toBe(201);
    const begin = performance.now();
    await eventually(() => expect(program.output).toContain("Released [ 'apple' ]"), { timeout: 30_000 });
    // The cleanup job would need a minute, or what is left of one.
    expect(performance.now() - begin).toBeLessThan(15_000);
    program.child.kill();
    await program.exit;
    expect(program.output).not.toMatch(/ERROR|WARN/);
  } finally {
    program.child.kill('SIGKILL');
    await program.exit;
    await beanstalkd.kill();
    await redis.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
