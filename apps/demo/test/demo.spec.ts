import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import type { SessionView } from '../src/shop/session.controller.js';
import { change } from './support/change.js';
import { DemoApplication } from './support/demo.application.js';
import { EventStream } from './support/event.stream.js';

LeakGuard.install();

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url));

describe('demo', () => {
  let demo: DemoApplication;
  let agent: HttpAgent;

  beforeAll(async () => {
    demo = await DemoApplication.start();
  });

  afterAll(() => demo?.stop());

  beforeEach(() => {
    agent = new HttpAgent(demo.origin);
  });

  async function session(): Promise<SessionView> {
    return (await agent.get('/session')).json();
  }

  async function startSession(): Promise<SessionView> {
    await agent.post('/cart', { name: 'apple' });
    return session();
  }

  it('serves the page, and everything that the page refers to, without a session', async () => {
    const page = await agent.get('/');
    expect(page.headers['content-type']).toMatch('text/html');
    const files = [...page.text.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path]) => path!);
    const script = await agent.get('/page.js');
    files.push(...[...script.text.matchAll(/from '\.(\/[^']+)'/g)].map(([, path]) => path!));
    expect(files).toEqual(expect.arrayContaining(['/page.js', '/page.css', '/favicon.svg']));
    for (const path of files) {
      const { status, headers } = await agent.get(path);
      expect([path, status, headers.vary]).toEqual([path, 200, undefined]);
    }
    expect(agent.cookies).toEqual({});
  });

  it('stores nothing for a visitor who only reads the page', async () => {
    expect(await session()).toMatchObject({ isNew: true, items: [], maxInactiveInterval: 1800 });
    expect(agent.cookies).toEqual({});
  });

  it('keeps all items that are added at once', async () => {
    await startSession();
    const names = Array.from({ length: 20 }, (_, i) => `pear ${i}`);
    await Promise.all(names.map((name) => agent.post('/cart', { name })));
    const { items } = await session();
    expect(items.toSorted()).toEqual(['apple', ...names].toSorted());
  });

  it('empties the cart', async () => {
    await startSession();
    expect((await change(agent, 'DELETE', '/cart')).status).toBe(204);
    expect((await session()).items).toEqual([]);
  });

  it('rotates the session at sign-in, and keeps the cart', async () => {
    const visitor = await startSession();
    const stranger = agent.fork();
    expect((await change(agent, 'POST', '/login', { name: 'ann' })).status).toBe(204);
    const signedIn = await session();
    expect(signedIn).toMatchObject({ principalName: 'ann', items: ['apple'] });
    expect(signedIn.id).not.toBe(visitor.id);
    // A client with the cookie from before the sign-in.
    expect((await stranger.get('/session')).json()).toMatchObject({ isNew: true, items: [] });
    const events = await EventStream.open(agent);
    expect(await events.next('id-changed', signedIn.id)).toMatchObject({ previousSessionId: visitor.id });
    events.close();
  });

  it('shows the end of a session at sign-out, with its cart', async () => {
    await startSession();
    await change(agent, 'POST', '/login', { name: 'ann' });
    const { id } = await session();
    const events = await EventStream.open(agent);
    await change(agent, 'POST', '/logout');
    expect(agent.cookies).toEqual({});
    expect(await events.next('deleted', id)).toMatchObject({ principalName: 'ann', items: ['apple'], dataLost: false });
    events.close();
  });

  it('shows the expiry of a session, with its cart, and watching does not keep it alive', async () => {
    await change(agent, 'POST', '/login', { name: 'ann' });
    await agent.post('/cart', { name: 'apple' });
    await agent.post('/cart', { name: 'pear' });
    const { id } = await session();
    const events = await EventStream.open(agent);
    await change(agent, 'PUT', '/session', { maxInactiveInterval: 1 });
    let watching = true;
    const watch = async (): Promise<void> => {
      while (watching) {
        await agent.get('/');
        (await EventStream.open(agent)).close();
      }
    };
    const watcher = watch();
    try {
      const expired = await events.next('expired', id);
      expect(expired).toMatchObject({ principalName: 'ann', items: ['apple', 'pear'], dataLost: false });
    } finally {
      watching = false;
      await watcher;
    }
    expect(await session()).toMatchObject({ isNew: true, items: [] });
    expect(events.entries.filter((entry) => entry['sessionId'] === id).map(({ type }) => type)).toEqual([
      'created',
      'signed-in',
      'expired',
    ]);
    events.close();
  });

  it('starts a session with the chosen timeout', async () => {
    await change(agent, 'PUT', '/session', { maxInactiveInterval: 120 });
    const view = await session();
    expect(view).toMatchObject({ isNew: false, maxInactiveInterval: 120 });
    const events = await EventStream.open(agent);
    await events.next('created', view.id);
    events.close();
  });

  it('shows to a later tab the events that the session has had, also before the sign-in', async () => {
    const { id } = await startSession();
    const early = await EventStream.open(agent);
    await early.next('created', id);
    await change(agent, 'POST', '/login', { name: 'ann' });
    const late = await EventStream.open(agent);
    await late.next('created', id);
    expect(late.headers).toMatchObject({ 'content-type': 'text/event-stream' });
    expect(late.headers).not.toHaveProperty('set-cookie');
    early.close();
    late.close();
  });

  it('refuses the event stream to a visitor without a session', async () => {
    expect((await agent.get('/events')).status).toBe(404);
    expect(agent.cookies).toEqual({});
  });

  it('welcomes once who signs in, and keeps the theme as an attribute', async () => {
    await change(agent, 'PUT', '/session/theme', { theme: 'dark' });
    await change(agent, 'POST', '/login', { name: 'ann' });
    expect(await session()).toMatchObject({ flash: expect.stringContaining('Welcome, ann'), theme: 'dark' });
    const next = await session();
    expect(next).toMatchObject({ theme: 'dark' });
    expect(next).not.toHaveProperty('flash');
  });

  describe('the devices of an account', () => {
    const devices = async (of: HttpAgent) => (await of.get('/devices')).json<{ id: string; isThisOne: boolean }[]>();
    const idOf = async (of: HttpAgent) => (await of.get('/session')).json<SessionView>().id;

    async function signedIn(name: string): Promise<HttpAgent> {
      const each = new HttpAgent(demo.origin, { headers: { 'user-agent': `Browser of ${name}` } });
      await change(each, 'POST', '/login', { name });
      return each;
    }

    // Other tests have signed in as well.
    beforeEach(async () => {
      for (const name of ['ann', 'bob']) {
        const each = await signedIn(name);
        await change(each, 'DELETE', '/devices');
        await change(each, 'POST', '/logout');
      }
    });

    it('are listed for the account only, and end one by one', async () => {
      const [laptop, phone, bobs] = [await signedIn('ann'), await signedIn('ann'), await signedIn('bob')];
      expect((await agent.get('/devices')).status).toBe(401);
      const device = { device: { userAgent: 'Browser of ann', address: '127.0.0.0' }, timeToLive: expect.any(Number) };
      const [ofLaptop, ofPhone] = [await idOf(laptop), await idOf(phone)];
      expect(await devices(laptop)).toMatchObject([
        { id: ofPhone, isThisOne: false, ...device },
        { id: ofLaptop, isThisOne: true, ...device },
      ]);
      expect((await change(laptop, 'DELETE', `/devices/${await idOf(bobs)}`)).status).toBe(404);
      expect(await devices(bobs)).toHaveLength(1);
      expect((await change(laptop, 'DELETE', `/devices/${ofPhone}`)).status).toBe(204);
      expect((await phone.get('/devices')).status).toBe(401);
      expect(await devices(laptop)).toHaveLength(1);
    });

    it('end all but the one in use, and that one with its cookie', async () => {
      const [laptop, phone] = [await signedIn('ann'), await signedIn('ann')];
      expect((await change(laptop, 'DELETE', '/devices')).json()).toEqual({ ended: 1 });
      expect((await phone.get('/devices')).status).toBe(401);
      await change(laptop, 'DELETE', `/devices/${await idOf(laptop)}`);
      expect(laptop.cookie('SESSION')).toBeUndefined();
    });
  });

  it('hands no cart from one user to another', async () => {
    await startSession();
    await change(agent, 'POST', '/login', { name: 'ann' });
    expect((await change(agent, 'POST', '/login', { name: 'bob' })).status).toBe(409);
    expect(await session()).toMatchObject({ principalName: 'ann' });
    await change(agent, 'POST', '/logout');
    await change(agent, 'POST', '/login', { name: 'bob' });
    expect(await session()).toMatchObject({ principalName: 'bob', items: [] });
  });

  it.each([
    ['POST', '/login', {}],
    ['POST', '/login', { name: ' ' }],
    ['POST', '/login', { name: 'mallory' }],
    ['PUT', '/session/theme', { theme: 'blue' }],
    ['POST', '/faults/unknown', {}],
    ['POST', '/faults/none', { end: 'account' }],
    ['POST', '/cart', { name: ['apple'] }],
    ['PUT', '/session', { maxInactiveInterval: 0 }],
    ['PUT', '/session', { maxInactiveInterval: '10' }],
    ['PUT', '/session', { maxInactiveInterval: 86_401 }],
  ])('refuses %s %s with %j', async (method, path, body) => {
    expect((await change(agent, method, path, body)).status).toBe(400);
    expect(await session()).toMatchObject({ items: [], maxInactiveInterval: 1800 });
    expect(await session()).not.toHaveProperty('principalName');
  });

  it('starts no session for a request that it refuses', async () => {
    expect((await agent.post('/cart', { name: ['apple'] })).status).toBe(400);
    expect(agent.cookies).toEqual({});
  });

  it.each([
    ['POST', '/login'],
    ['POST', '/logout'],
    ['DELETE', '/cart'],
    ['PUT', '/session'],
    ['PUT', '/session/theme'],
    ['DELETE', '/devices'],
    ['POST', '/orders'],
    ['POST', '/orders/pay'],
    ['POST', '/faults/none'],
    ['POST', '/faults/frozen'],
    ['POST', '/faults/replay/x'],
  ])('refuses %s %s without the token of the session', async (method, path) => {
    await startSession();
    const body = { name: 'mallory', maxInactiveInterval: 60, seconds: 30 };
    expect((await agent.request(method, path, { body })).status).toBe(403);
    expect(await session()).toMatchObject({ isNew: false, items: ['apple'], maxInactiveInterval: 1800 });
  });

  it.each(['http://evil.example', 'null'])('adds nothing to the cart for a page of %s', async (origin) => {
    const form = { body: 'name=apple', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    expect((await agent.request('POST', '/cart', form)).status).toBe(201);
    const fromPage = { ...form, headers: { ...form.headers, origin } };
    expect((await agent.request('POST', '/cart', fromPage)).status).toBe(403);
    expect((await session()).items).toEqual(['apple']);
    // As a victim's browser without a session, whose cookie would be replaced.
    expect((await new HttpAgent(demo.origin).request('POST', '/cart', fromPage)).setCookies).toEqual([]);
  });

  it('refuses more items than the cart holds, and keeps those in it', async () => {
    await startSession();
    for (let i = 1; i < 100; i++) await agent.post('/cart', { name: 'apple' });
    expect((await agent.post('/cart', { name: 'apple' })).status).toBe(400);
    expect((await session()).items).toHaveLength(100);
  });

  it('has server code that one can read: at most 810 lines, 1000 for the comparison, and no file longer than a page', async () => {
    const files = (await readdir(SOURCE, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const isCode = (line: string) => !/^\s*($|\/\/|\/?\*)/.test(line);
    const lengthOf = async (file: string) =>
      (await readFile(join(SOURCE, file), 'utf8')).split('\n').filter(isCode).length;
    const ofComparison = files.filter((file) => /^(comparison|sides)\//.test(file));
    const others = files.filter((file) => !ofComparison.includes(file));
    for (const [part, most] of [[ofComparison, 1000] as const, [others, 810] as const]) {
      const lengths = await Promise.all(part.map(lengthOf));
      expect(lengths.reduce((total, length) => total + length, 0)).toBeLessThanOrEqual(most);
      expect(Math.max(...lengths)).toBeLessThanOrEqual(70);
    }
  });

  it('imports nothing of the packages but what they offer to everybody', async () => {
    const files = (await readdir(SOURCE, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const texts = await Promise.all(files.map((file) => readFile(join(SOURCE, file), 'utf8')));
    const named = texts.flatMap((text) => [...text.matchAll(/from '(@nest-session[^']*)'/g)].map(([, name]) => name));
    // Of `testing`: the browsers that the split screen compares.
    const offered = ['core', 'redis', 'testing', 'websockets', 'deadlines', 'deadlines/redis'];
    expect(new Set(named)).toEqual(new Set(offered.map((name) => `@nest-session/${name}`)));
  });
});
