// The two programs of the page, on one Redis: what it tells a reader to do in a browser. Prints TAP; ends by itself if nothing
// is left open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BoundProcess } from '@nest-session/test-infrastructure';
import { SpringProgram, submitForm } from '@nest-session/test-infrastructure/spring';
import { freePort, HttpAgent, type HttpResponse, RedisServer } from '@nest-session/testing';

let redis: RedisServer;
let spring: SpringProgram;
let nest: BoundProcess;
let port: number;

before(async () => {
  redis = await RedisServer.start();
  port = await freePort();
  nest = BoundProcess.start([process.execPath, 'src/main.js'], { PORT: `${port}`, REDIS_URL: redis.url });
  spring = await SpringProgram.start('java', { 'spring.data.redis.url': redis.url });
  await nest.printed(/(successfully started)/);
});

after(async () => {
  await Promise.all([spring.stop(), nest.stop()]);
  await redis.stop();
});

test('who signs in to Spring is signed in to NestJS, and no more when they sign out of Spring', async () => {
  const browser = new HttpAgent(spring.origin);
  assert.equal((await account(browser)).status, 401);
  const signedIn = await submitForm(browser, '/login', { username: 'ann', password: 'secret' });
  assert.deepEqual([signedIn.status, new URL(signedIn.headers.location!, spring.origin).pathname], [302, '/']);
  assert.equal((await browser.get('/')).text, 'Hello, ann');
  const response = await account(browser);
  assert.deepEqual([response.status, response.json()], [200, { name: 'ann', isAdmin: true, cart: ['tea'] }]);
  assert.equal((await browser.get('/')).text, 'Hello, ann');
  await submitForm(browser, '/logout');
  assert.equal((await account(browser)).status, 401);
});

/** The page of NestJS, in the same browser. */
function account(browser: HttpAgent): Promise<HttpResponse> {
  return new HttpAgent(`http://127.0.0.1:${port}`, { headers: browser.headersFor('/') }).get('/account');
}
