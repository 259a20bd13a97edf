// The two programs of the page that share sessions, on one Redis and in one browser. Prints TAP; ends by itself if nothing is
// left open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ProgramPair, submitForm } from '@nest-session/test-infrastructure/spring';
import { eventually, HttpAgent, type HttpResponse } from '@nest-session/testing';

// Undefined when a program has not started: then that is told.
let programs: ProgramPair;
before(async () => (programs = await ProgramPair.start()));
after(() => (programs as ProgramPair | undefined)?.stop());

/** Has one cookie for both applications, as for all ports of a host. */
class Browser {
  readonly #agents = { spring: new HttpAgent(programs.spring.origin), nest: new HttpAgent(programs.nestOrigin) };

  async visit(name: 'spring' | 'nest', request: (agent: HttpAgent) => Promise<HttpResponse>): Promise<HttpResponse> {
    const response = await request(this.#agents[name]);
    const cookie = this.#agents[name].cookie('SESSION');
    const other = this.#agents[name === 'nest' ? 'spring' : 'nest'];
    other.clearCookies();
    if (cookie !== undefined) other.setCookie(`SESSION=${cookie}; Path=/`);
    return response;
  }

  /** With the headers of a program that is no browser, to which Spring does not send its login form. */
  get(name: 'spring' | 'nest', path: string): Promise<HttpResponse> {
    return this.visit(name, (agent) => agent.get(path, { headers: { 'x-requested-with': 'XMLHttpRequest' } }));
  }

  post(path: string): Promise<HttpResponse> {
    return this.visit('nest', (agent) => agent.post(path));
  }

  submit(path: string, fields?: Readonly<Record<string, string>>): Promise<HttpResponse> {
    return this.visit('spring', (agent) => submitForm(agent, path, fields));
  }

  /** At both applications, somebody is signed in, or nobody. */
  async statuses(): Promise<number[]> {
    return [(await this.get('spring', '/')).status, (await this.get('nest', '/account')).status];
  }
}

test('who signs in to Spring is signed in to NestJS, with one cart, until they sign out of NestJS', async () => {
  const browser = new Browser();
  assert.deepEqual(await browser.statuses(), [401, 401]);
  await browser.submit('/login', { username: 'ann', password: 'secret' });
  assert.equal((await browser.get('spring', '/coffee')).text, 'Hello, ann: [coffee]');
  const account = await browser.get('nest', '/account');
  assert.deepEqual(account.json(), { name: 'ann', authorities: ['ROLE_USER', 'FACTOR_PASSWORD'], cart: ['coffee'] });
  assert.equal((await browser.post('/tea')).status, 201);
  assert.equal((await browser.get('spring', '/')).text, 'Hello, ann: [coffee, tea]');
  assert.equal((await browser.get('spring', '/admin')).status, 403);
  assert.equal((await browser.post('/logout')).status, 201);
  assert.deepEqual(await browser.statuses(), [401, 401]);
});

test('who signs in to NestJS is signed in to Spring, with one cart, until they sign out of Spring', async () => {
  const browser = new Browser();
  assert.equal((await browser.post('/login')).status, 201);
  assert.equal((await browser.get('spring', '/admin')).text, 'bob is an admin');
  assert.equal((await browser.post('/tea')).status, 201);
  assert.equal((await browser.get('spring', '/coffee')).text, 'Hello, bob: [tea, coffee]');
  const account = await browser.get('nest', '/account');
  assert.deepEqual(account.json(), {
    name: 'bob',
    authorities: ['ROLE_USER', 'ROLE_ADMIN'],
    cart: ['tea', 'coffee'],
  });
  await browser.submit('/logout');
  assert.deepEqual(await browser.statuses(), [401, 401]);
});

test('who signs in to Spring takes the place of who was signed in to NestJS', async () => {
  const browser = new Browser();
  await browser.post('/login');
  await browser.submit('/login', { username: 'ann', password: 'secret' });
  assert.equal((await browser.get('nest', '/account')).json<{ name: string }>().name, 'ann');
  await browser.post('/logout');
});

test('NestJS has heard of each end once, with who was signed in, and the cart', async () => {
  const left = () => programs.nest.output.split('\n').filter((line) => line.includes('has left'));
  await eventually(() => assert.equal(left().length, 3));
  assert.deepEqual(left(), [
    "ann has left [ 'coffee', 'tea' ]",
    "bob has left [ 'tea', 'coffee' ]",
    'ann has left undefined',
  ]);
});

test('Spring has nothing to complain about', () => {
  assert.doesNotMatch(programs.spring.output, /^.* (?:WARN|ERROR) .*$/m);
});
