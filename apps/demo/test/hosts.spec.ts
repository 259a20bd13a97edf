import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

describe('the front of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;
  let port: string;

  beforeAll(async () => {
    demo = await DemoApplication.start();
    agent = new HttpAgent(demo.origin);
    port = new URL(demo.origin).port;
  });

  afterAll(() => demo?.stop());

  const get = (path: string, host: string) => agent.get(path, { headers: { host } });

  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '[::1]'])('answers as %s, on its port only', async (name) => {
    expect((await get('/', `${name}:${port}`)).status).toBe(200);
    expect((await get('/', name)).status).toBe(421);
    expect((await get('/', `${name}:1`)).status).toBe(421);
  });

  it.each(['evil.example', 'localhost.evil.example', 'evil-localhost', 'localhost.', 'user@localhost', '0.0.0.0', ''])(
    'refuses requests for the host "%s", whatever the path',
    async (name) => {
      for (const path of ['/', '/page.js', '/session', '/events', '/nothing']) {
        expect((await get(path, `${name}:${port}`)).status).toBe(421);
      }
    },
  );

  it('says of a refused request what to do, and does nothing else', async () => {
    const victim = new HttpAgent(demo.origin);
    await victim.post('/cart', { name: 'apple' });
    const headers = { host: `evil.example:${port}` };
    const refused = await victim.post('/cart', { name: 'pear' }, { headers });
    expect(refused.json()).toMatchObject({
      statusCode: 421,
      message: `The Host header is "evil.example:${port}": if this is a name of the demo, add it to the environment variable HOSTS`,
    });
    expect(refused.setCookies).toEqual([]);
    expect((await victim.get('/session')).json()).toMatchObject({ items: ['apple'] });
  });

  it('loads no session for a request that it refuses, and so keeps none alive', async () => {
    const victim = new HttpAgent(demo.origin);
    await victim.post('/cart', { name: 'apple' });
    const { id } = (await victim.get('/session')).json<SessionView>();
    const events = await EventStream.open(victim);
    await change(victim, 'PUT', '/session', { maxInactiveInterval: 1 });
    const ended = new AbortController();
    const attack = async (): Promise<void> => {
      while (!ended.signal.aborted) await victim.get('/session', { headers: { host: 'evil.example' } });
    };
    const attacker = attack();
    try {
      await events.next('expired', id);
    } finally {
      ended.abort();
      await attacker;
      events.close();
    }
  });

  it.each(['/', '/page.js', '/page.css', '/session', '/csrf', '/events', '/nothing'])(
    'sends the same strict headers with %s',
    async (path) => {
      const response = await agent.open('GET', path);
      response.destroy();
      const { headers } = response;
      const policy = String(headers['content-security-policy']);
      expect(Object.fromEntries(policy.split('; ').map((directive) => directive.split(/ (.*)/)))).toEqual({
        'default-src': "'none'",
        'script-src': "'self'",
        'style-src': "'self'",
        'img-src': "'self'",
        'connect-src': "'self'",
        'form-action': "'self'",
        'base-uri': "'none'",
        'frame-ancestors': "'none'",
      });
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin' });
    },
  );
});
