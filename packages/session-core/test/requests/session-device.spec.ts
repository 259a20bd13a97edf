import { Body, Controller, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import type { HttpAgent } from '@nest-session/testing';
import fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import { deviceOf } from '../../src/http/session-device.js';
import { Session, type SessionModuleOptions, Sessions } from '../../src/index.js';
import type { SessionDevice } from '../../src/session/session-info.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class SignInController {
  @Post('visit')
  visit(@Session() session: Session) {
    session.setAttribute('cart', []);
  }

  @Post('sign-in')
  signIn(@Session() session: Session, @Body('name') name: string) {
    session.signIn(name);
  }

  @Post('forge')
  forge(@Session() session: Session) {
    session.setAttribute('device', '{"address":"forged"}');
  }
}

async function start(devices: SessionModuleOptions['devices'], options: Partial<SessionAppOptions> = {}) {
  const session: SessionModuleOptions = devices === undefined ? {} : { devices };
  const { app, agent, log } = await startApp({ ...options, controllers: [SignInController], session });
  const sessions = app.get(Sessions);
  const deviceOfAda = async () => {
    const devices: (SessionDevice | undefined)[] = [];
    for await (const { device } of sessions.ofPrincipal('ada')) devices.push(device);
    expect(devices).toHaveLength(1);
    return devices[0];
  };
  return { agent: agent(), deviceOfAda, log };
}

const signIn = (agent: HttpAgent, headers: Record<string, string>) =>
  agent.post('/sign-in', { name: 'ada' }, { headers });

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const EDGE =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0';

describe.each(['express', 'fastify'] as const)('the device of a session on %s', (platform) => {
  it('belongs to the client that signed in last, shortened', async () => {
    const { agent, deviceOfAda } = await start(true, { platform });
    await agent.post('/visit', {}, { headers: { 'user-agent': 'Visitor' } });
    await signIn(agent, { 'user-agent': FIREFOX });
    expect(await deviceOfAda()).toEqual({
      address: '127.0.0.0',
      userAgent: '(X11; Linux x86_64; rv:140.0) Firefox/140.0',
    });
    await agent.post('/forge', {}, { headers: { 'user-agent': 'Forger' } });
    expect(await deviceOfAda()).toMatchObject({ userAgent: '(X11; Linux x86_64; rv:140.0) Firefox/140.0' });
    await signIn(agent, { 'user-agent': 'Again' });
    expect(await deviceOfAda()).toMatchObject({ userAgent: 'Again' });
  });

  it('belongs to the client that created the session by a sign-in', async () => {
    const { agent, deviceOfAda } = await start(true, { platform });
    await signIn(agent, { 'user-agent': 'Phone' });
    expect(await deviceOfAda()).toEqual({ address: '127.0.0.0', userAgent: 'Phone' });
  });

  it('has the address that a trusted proxy says, and of no other proxy', async () => {
    const forwarded = { 'x-forwarded-for': '203.0.113.77', 'user-agent': 'x' };
    const trusting = await start(true, { platform, trustProxy: 'loopback' });
    await signIn(trusting.agent, forwarded);
    expect(await trusting.deviceOfAda()).toMatchObject({ address: '203.0.113.0' });
    const others = await start(true, { platform });
    await signIn(others.agent, forwarded);
    expect(await others.deviceOfAda()).toMatchObject({ address: '127.0.0.0' });
  });

  it('has what the options say', async () => {
    const full = await start({ address: 'full', userAgent: false }, { platform });
    await signIn(full.agent, {});
    expect(await full.deviceOfAda()).toEqual({ address: '127.0.0.1' });
    const none = await start({ address: 'none' }, { platform });
    await signIn(none.agent, { 'user-agent': 'Phone' });
    expect(await none.deviceOfAda()).toEqual({ userAgent: 'Phone' });
    const own = await start({ addressOf: ({ headers }) => String(headers['cf-connecting-ip']) }, { platform });
    await signIn(own.agent, { 'cf-connecting-ip': '2001:db8:1:2::3' });
    expect(await own.deviceOfAda()).toMatchObject({ address: '2001:db8:1::' });
  });

  it('has no address when `addressOf` throws, and one log line says so', async () => {
    const addressOf = ({ headers }: { readonly headers: object }) =>
      (headers as { readonly client: string }).client.trim();
    const { agent, deviceOfAda, log } = await start({ addressOf }, { platform });
    for (const name of ['ada', 'ada']) {
      expect((await agent.post('/sign-in', { name }, { headers: { 'user-agent': 'Phone' } })).status).toBe(201);
    }
    expect(await deviceOfAda()).toEqual({ userAgent: 'Phone' });
    expect(log.lines).toEqual([expect.stringMatching(/^warn The option `devices\.addressOf` threw, .*: TypeError: "/)]);
  });

  it('is not recorded unless the option is set', async () => {
    for (const devices of [undefined, false] as const) {
      const { agent, deviceOfAda } = await start(devices, { platform });
      await signIn(agent, { 'user-agent': 'Phone' });
      expect(await deviceOfAda()).toBeUndefined();
    }
  });
});

const deviceFrom = (address: unknown, userAgent?: string) => {
  const request = { headers: { 'user-agent': userAgent }, socket: { remoteAddress: address } };
  const options = { address: 'network', addressOf: undefined, userAgent: true } as const;
  return deviceOf(request as unknown as IncomingMessage, options);
};

it.each([
  ['192.0.2.255', '192.0.2.0'],
  ['::ffff:192.0.2.255', '192.0.2.0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::'],
  ['2001:DB8::6', '2001:db8::'],
  ['2001:db8:0:1::', '2001:db8::'],
  ['::1', '::'],
  ['fe80::1%eth0', 'fe80::'],
  ['1::2:3:4', '1::'],
  ['unix', undefined],
  [undefined, undefined],
])('the address %p is shortened to %p', (address, network) => {
  expect((JSON.parse(deviceFrom(address)) as SessionDevice).address).toBe(network);
});

it('a user agent keeps what tells browsers apart', () => {
  const { userAgent } = JSON.parse(deviceFrom(undefined, EDGE)) as SessionDevice;
  expect(userAgent).toBe('(Windows NT 10.0; Win64; x64) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0');
});

it('takes at most 200 bytes in Redis, whatever the client sends', () => {
  const size = (text: string) => Buffer.byteLength(JSON.stringify(text));
  const addresses = fc.oneof(fc.ipV4(), fc.ipV6());
  // Any character of Unicode: the unit `binary` of fast-check, which has the same ones, lists them all first.
  const codePoint = fc.oneof(fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }));
  const texts = fc.string({ unit: codePoint.map((code) => String.fromCodePoint(code)), maxLength: 300 });
  fc.assert(
    fc.property(addresses, texts, (address, userAgent) => {
      expect(size(deviceFrom(address, userAgent))).toBeLessThanOrEqual(200);
    }),
  );
  const longest = deviceOf({ headers: { 'user-agent': 'x'.repeat(9999) } } as IncomingMessage, {
    address: 'full',
    addressOf: () => '2001:0db8:1111:2222:3333:4444:255.255.255.255',
    userAgent: true,
  });
  expect(size(longest)).toBeLessThanOrEqual(200);
  expect(longest).toContain('255.255.255.255');
});
