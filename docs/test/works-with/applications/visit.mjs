import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Starts an application with the added files, and is a customer of its shop: it stores an item, reads it, leaves, and
 * asks until the application has heard that the session expired. Resolves to the output, with what went wrong at its
 * end.
 */
export async function visit(folder, program, redis) {
  // Built by the time it is asked for.
  const { eventually, freePort, HttpAgent } = await import('../../../../libs/testing/dist/index.js');
  const port = await freePort();
  const child = spawn('node', [program], {
    cwd: folder,
    env: { ...process.env, PORT: `${port}`, REDIS_URL: redis.url, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = once(child, 'close');
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  try {
    const origin = `http://localhost:${port}`;
    const [customer, manager] = [new HttpAgent(origin), new HttpAgent(origin)];
    await eventually(() => child.exitCode !== null || customer.get('/'), { timeout: 60_000 });
    await customer.post('/shop/items', { item: 'apple' });
    expectSame((await customer.get('/shop/items')).json(), ['apple']);
    await customer.post('/shop/leave');
    // Without the cookie: a request of the customer would keep the session alive.
    await eventually(async () => {
      const leftBehind = (await manager.get('/shop/left-behind')).json();
      expectSame(leftBehind.toSorted(), ['apple by @OnEvent', 'apple by @OnSessionEvent']);
    });
    return { code: 0, output };
  } catch (error) {
    return { code: 1, output: `${output}\n${error.stack}` };
  } finally {
    kill();
    await ended;
    process.off('exit', kill);
  }
}

function expectSame(actual, expected) {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
  }
}
