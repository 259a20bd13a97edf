import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { DemoApplication } from './support/demo.application.js';

LeakGuard.install();

const SOURCES = fileURLToPath(new URL('../src/', import.meta.url));

describe('the comparison of the demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });
  afterAll(() => demo?.stop());
  beforeEach(() => {
    agent = new HttpAgent(demo.origin);
  });

  it('says that it needs the shop with express-session, and begins nothing without it', async () => {
    const reason = 'The shop with express-session does not run: start the demo with npm start, without --watch.';
    expect((await agent.get('/comparison')).json()).toEqual({
      'two-tabs': reason,
      redirect: reason,
      'sign-out': reason,
      'stolen-cookie': reason,
      killed: reason,
      frozen: reason,
      everywhere: reason,
      'unpaid-order': reason,
    });
    const refused = await agent.post('/comparison/two-tabs');
    expect([refused.status, refused.json()]).toMatchObject([409, { message: reason }]);
  });

  it('shows code that the shops have', async () => {
    const { SCENARIOS } = (await import(String(new URL('../public/scenarios.js', import.meta.url)))) as {
      SCENARIOS: Record<string, Record<'left' | 'right', string[]>>;
    };
    const files = await readdir(SOURCES, { recursive: true });
    const sources = await Promise.all(
      files
        .filter((name) => name.endsWith('.ts'))
        .map(async (name) => [name, await readFile(join(SOURCES, name), 'utf8')]),
    );
    const textOf = (isLeft: boolean) =>
      sources.flatMap(([name, text]) => (name!.includes('express-session') === isLeft ? [text!] : [])).join('\n');
    for (const [name, { left, right }] of Object.entries(SCENARIOS)) {
      for (const line of left)
        expect({ name, text: textOf(true) }).toMatchObject({ text: expect.stringContaining(line.trim()) });
      for (const line of right)
        expect({ name, text: textOf(false) }).toMatchObject({ text: expect.stringContaining(line.trim()) });
    }
    expect(Object.keys(SCENARIOS)).toEqual(Object.keys((await agent.get('/comparison')).json<object>()));
  });

  it('knows no other scenario, and no other comparison', async () => {
    for (const name of ['unknown', 'constructor']) {
      expect((await agent.post(`/comparison/${name}`)).status).toBe(404);
      expect((await agent.get(`/comparison/${name}`)).status).toBe(404);
    }
  });

  it.each(['/comparison/two-tabs', '/compared/cart', '/compared/login', '/compared/logout'])(
    'refuses POST %s of a page of another origin',
    async (path) => {
      const headers = { origin: 'http://evil.example' };
      const refused = await agent.post(path, { name: 'apple' }, { headers });
      expect([refused.status, refused.setCookies]).toEqual([403, []]);
    },
  );

  it('does not touch the session of the visitor', async () => {
    await agent.post('/cart', { name: 'apple' });
    const before = (await agent.get('/session')).json<SessionView>();
    const response = await agent.get('/comparison');
    expect([response.status, response.headers.vary]).toEqual([200, undefined]);
    expect((await agent.get('/session')).json()).toEqual(before);
  });
});
