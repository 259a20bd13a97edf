import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type INestApplication, ValidationPipe, VersioningType } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AuthenticatedGuard, CsrfGuard } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, type HttpResponse } from '@nest-session/testing';
import express from 'express';
import { IdentityProvider } from './support/identity.provider.js';
import { closeApps, LogoutApp, type LogoutAppOptions, nameOf, PLATFORMS, Told } from './support/logout.app.js';

LeakGuard.install();

const FORM = 'application/x-www-form-urlencoded';
const LOGOUT = '/session/provider/logout';

let provider: IdentityProvider;
beforeAll(async () => {
  provider = await IdentityProvider.start();
});
afterAll(() => provider.stop());
afterEach(closeApps);

describe.each(PLATFORMS)('on %s, the endpoint', (platform) => {
  const start = (options: Partial<LogoutAppOptions> = {}) =>
    LogoutApp.start({
      platform,
      issuers: [{ issuer: provider.issuer, audience: 'shop', accepts: ['back-channel', 'events'] }],
      ...options,
    });
  const token = () => provider.logoutToken({ sub: 'ann', sid: 's-1' });
  const login = () => ({ iss: provider.issuer, sub: 'ann', sid: 's-1' });
  const expectRefused = (answer: HttpResponse, status: number) => {
    expect([answer.status, answer.json<{ error: string }>().error]).toEqual([status, 'invalid_request']);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
  };

  it('takes one token in a form, with or without a charset', async () => {
    const app = await start();
    expect((await app.logOut(await token(), { 'Content-Type': `${FORM}; charset=UTF-8` })).status).toBe(200);
    expectRefused(await app.send(LOGOUT, { logout_token: await token() }, { 'Content-Type': 'application/json' }), 415);
    expectRefused(await app.send(LOGOUT, `logout_token=${await token()}`), 415);
    const form = (body: string, path = LOGOUT) => app.send(path, body, { 'Content-Type': FORM });
    expectRefused(await form(`logout_token=${await token()}&logout_token=${await token()}`), 400);
    expectRefused(await form(`logout_token[]=${await token()}`), 400);
    expectRefused(await form('', `${LOGOUT}?logout_token=${await token()}`), 400);
    expectRefused(await form(''), 400);
    expect((await form(`state=x&logout_token=${await token()}`)).status).toBe(200);
  });

  it('logs the first refusal for each reason where no handler hears of them', async () => {
    const app = await start({ providers: [{ provide: Told, useValue: {} }] });
    const foreign = await provider.logoutToken({ sub: 'ann', aud: 'bank' });
    for (const wrong of [foreign, foreign, 'x', 'y']) expectRefused(await app.logOut(wrong), 400);
    expect(app.log.matching(/refused/).map((line) => /refused: (.*) This is logged once/.exec(line)?.[1])).toEqual([
      'The token is for another audience.',
      'The request does not carry one signed JWT.',
    ]);
    const told = await start();
    await told.logOut(foreign);
    expect(told.log.matching(/refused/)).toEqual([]);
  });

  it('takes 64 kB, not compressed, and answers GET and others with 405', async () => {
    const app = await start();
    const body = `logout_token=${await token()}&x=`;
    const of = (size: number) => body + 'x'.repeat(size - body.length);
    const form = (text: unknown, headers = {}) => app.send(LOGOUT, text, { 'Content-Type': FORM, ...headers });
    expect((await form(of(65_536))).status).toBe(200);
    expectRefused(await form(of(65_537)), 413);
    expectRefused(await form(of(3_000_000)), 413);
    expectRefused(await form(gzipSync(body), { 'Content-Encoding': 'gzip' }), 415);
    for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS', 'DELETE']) {
      const answer = await app.send(LOGOUT, undefined, {}, method);
      expect([answer.status, answer.headers['allow'], answer.text]).toEqual([405, 'POST', '']);
    }
    expect((await app.send('/session/provider', undefined)).status).toBe(404);
    expect((await app.send(`${LOGOUT}/x`, undefined)).status).toBe(404);
  });

  it('keeps a connection that can be used again after a refusal', async () => {
    const app = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const post = (body: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const options = { agent, method: 'POST', headers: { 'Content-Type': FORM } };
        const sent = httpRequest(`${app.origin}${LOGOUT}`, options, (response) => {
          ports.add(sent.socket?.localPort);
          response.resume().on('end', () => resolve(response.statusCode));
        });
        sent.on('error', reject).end(body);
      });
    expect(await post('logout_token=x')).toBe(400);
    expect(await post('x'.repeat(200_000))).toBe(413);
    expect(await post(`logout_token=${await token()}`)).toBe(200);
    expect(ports.size).toBe(1);
    agent.destroy();
  });

  it('gives up a body that does not come, and finishes what a client has left', async () => {
    const app = await start();
    const agent = await app.signedIn(login());
    const { port } = new URL(app.origin);
    const head = `POST ${LOGOUT} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\n`;
    const slow = connect(Number(port), '127.0.0.1');
    const isClosed = new Promise((resolve) => slow.on('close', resolve));
    slow.write(`${head}Content-Length: 100\r\n\r\nlogout_token=`);
    await isClosed;
    const body = `logout_token=${await token()}`;
    const hasty = connect(Number(port), '127.0.0.1');
    hasty.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, () => hasty.destroySoon());
    await eventually(async () => expect(await nameOf(agent)).toBeNull());
  });

  it('neither reads, sets nor ends the session of a cookie', async () => {
    const app = await start();
    const agent = await app.signedIn({ ...login(), sid: 's-2' });
    const answer = await agent.post(LOGOUT, `logout_token=${await token()}`, { headers: { 'Content-Type': FORM } });
    expect([answer.status, answer.json(), answer.setCookies]).toEqual([200, { ended: 0 }, []]);
    expect(await nameOf(agent)).toBe('ann');
  });

  it('answers before guards, pipes, prefixes and versions of the application', async () => {
    const guards = [CsrfGuard, AuthenticatedGuard].map((useExisting) => ({ provide: APP_GUARD, useExisting }));
    const app = await start({
      providers: guards,
      configure: (nest: INestApplication) => {
        nest.setGlobalPrefix('api');
        nest.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
        nest.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }));
        nest.use((_: unknown, response: { statusCode: number; end(): void }) => {
          response.statusCode = 418;
          response.end();
        });
      },
    });
    expect((await app.logOut(await token())).status).toBe(200);
    expect((await app.pushEvent(await provider.eventToken('https://x.example'))).status).toBe(202);
    expect((await app.agent().get('/who')).status).toBe(418);
  });

  it('can have another path', async () => {
    const app = await start({ path: '/oidc' });
    const answer = await app.send('/oidc/logout', `logout_token=${await token()}`, { 'Content-Type': FORM });
    expect(answer.status).toBe(200);
    expect((await app.logOut(await token())).status).toBe(404);
  });
});

it('takes the body that a parser in front of the application has read', async () => {
  const app = await LogoutApp.start({ issuers: [{ issuer: provider.issuer, audience: 'shop' }] });
  const front = express();
  front.use(express.urlencoded({ extended: false }));
  front.use(app.nest.getHttpAdapter().getInstance() as express.RequestHandler);
  const server = front.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = new HttpAgent(`http://127.0.0.1:${port}`);
  const body = `logout_token=${await provider.logoutToken({ sub: 'ann' })}`;
  expect((await agent.post(LOGOUT, body, { headers: { 'Content-Type': FORM } })).status).toBe(200);
  server.close();
});

describe('the options', () => {
  const good = { issuer: 'https://login.example.com', audience: 'shop' };
  it.each([
    ['no issuers', {}, 'Option `issuers` is missing'],
    ['no audience', { issuers: [{ issuer: good.issuer }] }, '`issuers[0].audience` is missing'],
    ['an empty audience', { issuers: [{ ...good, audience: [] }] }, '`issuers[0].audience` must be'],
    ['http', { issuers: [{ ...good, issuer: 'http://login.example.com' }] }, '`issuers[0].issuer` must be an address'],
    [
      'keys by http',
      { issuers: [{ ...good, keys: { jwksUri: 'http://x.example' } }] },
      '`issuers[0].keys.jwksUri` must',
    ],
    ['no keys in `keys`', { issuers: [{ ...good, keys: {} }] }, '`issuers[0].keys` needs one of both'],
    ['HS256', { issuers: [{ ...good, algorithms: ['HS256'] }] }, '`issuers[0].algorithms` must be a list of RS256'],
    ['one issuer twice', { issuers: [good, good] }, 'names one issuer twice'],
    ['an unknown option', { issuers: [{ ...good, secret: 'x' }] }, 'Unknown option `issuers[0].secret`'],
    ['a path with a slash at the end', { path: '/x/', issuers: [good] }, 'Option `path` must be a path'],
    ['an unknown action', { issuers: [{ ...good, actions: { 'credential-change': 'log' } }] }, '`issuers[0].actions`'],
  ])('with %s keep the application from starting', async (_, options, problem) => {
    await expect(LogoutApp.start(options as never)).rejects.toThrow(problem);
  });
});
