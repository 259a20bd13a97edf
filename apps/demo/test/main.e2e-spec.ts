import { networkInterfaces } from 'node:os';
import { fileURLToPath } from 'node:url';
import { LeakGuard, Program } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import { change } from './support/change.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

// Enough time to start a program on a busy machine.
const SLOWLY = { timeout: 120_000 };

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** Addresses of this machine at which a server for 127.0.0.1 does not answer. On Linux, all of 127.0.0.0/8 is local. */
const OTHER_ADDRESSES = [
  ...(process.platform === 'linux' ? ['127.0.0.2'] : []),
  ...Object.values(networkInterfaces()).flatMap((addresses) =>
    addresses!.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address),
  ),
];

describe('the demo as a program, without Redis', () => {
  let program: Program;

  afterEach(async () => {
    program.child.kill('SIGKILL');
    await program.exit;
  });

  /** Resolves to the address that the demo prints. */
  function start(env: NodeJS.ProcessEnv = {}): Promise<string> {
    const all = { HOST: undefined, HOSTS: undefined, ...env, SESSION_STORE: 'memory', PORT: '0' };
    program = Program.start([MAIN], all);
    return eventually(() => {
      const address = /^Open (http:\/\/\S+:\d+)$/m.exec(program.output)?.[1];
      if (!address) throw new Error(`No address in: ${program.output}`);
      return address;
    }, SLOWLY);
  }

  const statusAt = async (origin: string, host?: string) =>
    (await new HttpAgent(origin).get('/session', { headers: host ? { host } : {} })).status;

  it(
    'prints its address, reports an expiry, and ends on a signal, also while the event stream is open',
    async () => {
      const agent = new HttpAgent(await start());
      await agent.post('/cart', { name: 'apple' });
      const { id } = (await agent.get('/session')).json<{ id: string }>();
      const events = await EventStream.open(agent);
      await change(agent, 'PUT', '/session', { maxInactiveInterval: 1 });
      expect(await events.next('expired', id)).toMatchObject({ items: ['apple'] });
      await eventually(() => expect(program.output).toMatch('A visitor has left behind: ["apple"]'));

      program.child.kill('SIGTERM');
      expect(await program.exit).toEqual([null, 'SIGTERM']);
      await eventually(() => events.isEnded);
    },
    SLOWLY.timeout,
  );

  it(
    'quotes in the log what visitors have written',
    async () => {
      const agent = new HttpAgent(await start());
      await change(agent, 'POST', '/login', { name: 'ann' });
      await agent.post('/cart', { name: 'pear\nERROR' });
      await change(agent, 'PUT', '/session', { maxInactiveInterval: 1 });
      await eventually(() => expect(program.output).toMatch(String.raw`"ann" has left behind: ["pear\nERROR"]`));
    },
    SLOWLY.timeout,
  );

  it(
    'listens on 127.0.0.1 only',
    async () => {
      const origin = new URL(await start());
      expect(origin.hostname).toBe('127.0.0.1');
      expect(await statusAt(origin.href)).toBe(200);
      expect(OTHER_ADDRESSES).not.toEqual([]);
      for (const address of OTHER_ADDRESSES) {
        await expect(statusAt(`http://${address}:${origin.port}`)).rejects.toThrow('ECONNREFUSED');
      }
    },
    SLOWLY.timeout,
  );

  it(
    'listens on HOST, and answers there under the names of HOSTS as well',
    async () => {
      const printed = new URL(await start({ HOST: '0.0.0.0', HOSTS: 'demo.example, Shop.example:8443' }));
      expect(printed.hostname).toBe('localhost');
      expect(await statusAt(printed.href)).toBe(200);
      for (const address of OTHER_ADDRESSES) {
        const origin = `http://${address}:${printed.port}`;
        expect([await statusAt(origin), await statusAt(origin, 'demo.example')]).toEqual([421, 200]);
        expect(await statusAt(origin, 'shop.example:8443')).toBe(200);
        expect(await statusAt(origin, 'shop.example')).toBe(421);
        expect(await statusAt(origin, `0.0.0.0:${printed.port}`)).toBe(421);
      }
    },
    SLOWLY.timeout,
  );

  it(
    'answers under the name in HOST, and prints it',
    async () => {
      const [address] = OTHER_ADDRESSES;
      const printed = new URL(await start({ HOST: address }));
      expect(printed.hostname).toBe(address);
      expect(await statusAt(printed.href)).toBe(200);
    },
    SLOWLY.timeout,
  );
});
