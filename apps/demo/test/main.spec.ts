import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import { change } from './support/change.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

// Enough time to start a program on a busy machine.
const SLOWLY = { timeout: 120_000 };

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));

describe('the demo as a program, without Redis', () => {
  let program: ChildProcess;
  let output = '';

  beforeAll(() => {
    const env = { ...process.env, SESSION_STORE: 'memory', PORT: '0' };
    program = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    program.stdout?.on('data', (text) => (output += text));
    program.stderr?.on('data', (text) => (output += text));
  });

  afterAll(() => program.kill('SIGKILL'));

  it('prints its address, reports an expiry, and ends on a signal, also while the event stream is open', async () => {
    const origin = await eventually(() => {
      const address = /^Open (http:\/\/localhost:\d+)$/m.exec(output)?.[1];
      if (!address) throw new Error(`No address in: ${output}`);
      return address;
    }, SLOWLY);
    const agent = new HttpAgent(origin);
    await agent.post('/cart', { name: 'apple' });
    const { id } = (await agent.get('/session')).json<{ id: string }>();
    const events = await EventStream.open(agent);
    await change(agent, 'PUT', '/session', { maxInactiveInterval: 1 });
    expect(await events.next('expired', id)).toMatchObject({ items: ['apple'] });
    await eventually(() => expect(output).toMatch(`expired ${id}`));
    await eventually(() => expect(output).toMatch('somebody has left behind: "apple"'));

    const exit = once(program, 'exit');
    program.kill('SIGTERM');
    expect(await exit).toEqual([null, 'SIGTERM']);
    await eventually(() => events.isEnded);
  }, 300_000);
});
