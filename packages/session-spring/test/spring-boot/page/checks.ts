// The two programs of the page, on one Redis: what it tells a reader to do in a browser. Prints TAP; ends by itself if nothing
// is left open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ProgramPair, submitForm } from '@nest-session/test-infrastructure/spring';
import { HttpAgent, type HttpResponse } from '@nest-session/testing';

// Undefined when a program has not started: then that is told.
let programs: ProgramPair;
before(async () => (programs = await ProgramPair.start()));
after(() => (programs as ProgramPair | undefined)?.stop());

test('who signs in to Spring is signed in to NestJS, and no more when they sign out of Spring', async () => {
  const browser = new HttpAgent(programs.spring.origin);
  assert.equal((await account(browser)).status, 401);
  const signedIn = await submitForm(browser, '/login', { username: 'ann', password: 'secret' });
  assert.deepEqual([signedIn.status, new URL(signedIn.headers.location!, programs.spring.origin).pathname], [302, '/']);
  assert.equal((await browser.get('/')).text, 'Hello, ann');
  const response = await account(browser);
  assert.deepEqual([response.status, response.json()], [200, { name: 'ann', isAdmin: true, cart: ['tea'] }]);
  assert.equal((await browser.get('/')).text, 'Hello, ann');
  await submitForm(browser, '/logout');
  assert.equal((await account(browser)).status, 401);
});

/** The page of NestJS, in the same browser. */
function account(browser: HttpAgent): Promise<HttpResponse> {
  return new HttpAgent(programs.nestOrigin, { headers: browser.headersFor('/') }).get('/account');
}
