import { once } from 'node:events';
import { type IncomingMessage, request, type Server } from 'node:http';
import { jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { eventually } from '@nest-session/testing';
import { OnSecurityEvent, type SecurityEvent, Sessions } from '../../src/index.js';
import type { DeviceBinding } from '../../src/device/device-binding.js';
import { DEVICE_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import type { GatedStore } from '../support/gated.repository.js';
import { type Devices, heard, MINUTE } from './device.app.js';
import { type Answer, challengeIn, DeviceBrowser, newKey, offerIn, proofBy } from './device.browser.js';

const OTHER_SITE = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
const ID = 'a'.repeat(43);

/** The binding of ann's session, as the store has it. */
async function stored(store: GatedStore): Promise<DeviceBinding> {
  const [session] = await store.findByIndex('principal', 'ann');
  return TrackedSession.of(session!).getOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE)!;
}

/** As if the store had failed after the registration. */
async function forgetAnswer(store: GatedStore): Promise<void> {
  await eventually(async () => expect((await stored(store)).key?.isConfirmed).toBe(true));
  const [session] = await store.findByIndex('principal', 'ann');
  await TrackedSession.of(session!).updateOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE, (binding) => ({
    ...binding!,
    key: { ...binding!.key!, isConfirmed: false },
  }));
}

/** A browser with a copy of the session cookie alone. */
function thiefOf(browser: DeviceBrowser): DeviceBrowser {
  const thief = browser.thief();
  thief.jar.delete('SESSION-device');
  return thief;
}

const upgrades: IncomingMessage[] = [];

/** The request of an upgrade, whose connection stays open until the test has ended. */
async function upgradeOf(app: INestApplication, path: string, cookie: string): Promise<IncomingMessage> {
  const upgrading = once(app.getHttpServer() as Server, 'upgrade');
  const headers = { connection: 'upgrade', upgrade: 'websocket', cookie };
  const sent = request(await app.getUrl(), { path, headers, agent: false }).on('error', () => undefined);
  sent.end();
  const [upgrade] = (await upgrading) as [IncomingMessage];
  upgrades.push(upgrade);
  return upgrade;
}

/** Lets the owner renew the proof, and asks whether that is still possible. */
async function expectOwnerServed(browser: DeviceBrowser): Promise<void> {
  browser.jar.delete('SESSION-device');
  expect((await browser.get('/money')).body).toBe('money');
  expect(browser.jar.has('SESSION-device')).toBe(true);
}

/** What attackers try, with a software browser. */
export function describeAttacks({ startDevices, signedIn }: Devices): void {
  describe('with a copied session cookie', () => {
    // Before the applications are closed, which wait for them.
    afterEach(() => {
      for (const { socket } of upgrades.splice(0)) socket.destroy();
    });

    it('(1, 22) leaving the bound cookie out, or coming with another client, opens nothing', async () => {
      const { browser } = await signedIn();
      const thief = thiefOf(browser);
      const none = { 'sec-fetch-site': '', 'sec-fetch-mode': '', 'sec-fetch-dest': '', 'user-agent': 'curl' };
      const clients: Record<string, string>[] = [{}, none, { 'x-forwarded-proto': 'http' }];
      for (const headers of clients)
        for (const path of ['/inside', '/money']) expect((await thief.send('GET', path, headers)).status).toBe(401);
      expect(thief.own).toEqual([]);
      await expectOwnerServed(browser);
    });

    it('(2) registering first is told of when the owner is refused', async () => {
      const { browser } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      const thief = thiefOf(browser);
      await thief.register(offer.path, offer.challenge);
      expect(thief.own).toEqual(['register 200']);
      await browser.register(offer.path, offer.challenge);
      expect(browser.own).toEqual(['register 403']);
      expect(heard).toEqual(['refused-proof second-key']);
    });

    it('(3) registering later with another key is refused', async () => {
      const { browser, store } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      await browser.register(offer.path, offer.challenge);
      await browser.get('/who');
      const thief = thiefOf(browser);
      const before = await stored(store);
      await thief.register(offer.path, offer.challenge);
      expect(thief.own).toEqual(['register 403']);
      expect(await stored(store)).toEqual(before);
    });

    it('(4) a new offer cannot be had once the browser has registered', async () => {
      const { browser, clock } = await signedIn();
      const thief = thiefOf(browser);
      for (let minutes = 0; minutes < 4; minutes++) {
        for (const path of ['/inside', '/money', '/who', '/landing'])
          expect(offerIn(await thief.send('GET', path, { 'secure-session-skipped': 'server_error' }))).toBeUndefined();
        await clock.advance(MINUTE);
      }
      // The user reads the page.
      const other = await startDevices();
      await other.browser.post('/sign-in');
      for (let minutes = 1; minutes < 10; minutes++) {
        await other.clock.advance(MINUTE);
        const { status, headers } = await thiefOf(other.browser).send('GET', '/inside');
        expect([status, offerIn({ headers })]).toEqual([401, undefined]);
      }
      await expectOwnerServed(other.browser);
    });

    it('(4) a key that gives way, because the store failed before its browser was answered, takes its bound cookies with it', async () => {
      const { browser, clock, store } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      await browser.register(offer.path, offer.challenge);
      await forgetAnswer(store);
      await clock.advance(MINUTE);
      const thief = thiefOf(browser);
      await thief.get('/who');
      expect(thief.own).toEqual(['register 200']);
      await thief.get('/who');
      await clock.advance(MINUTE);
      // Neither holds both: the session is the thief's, and the owner is told at once.
      expect((await browser.send('GET', '/money')).status).toBe(401);
      expect(heard).toContain('missing-proof forged');
    });

    it('(4) a registration that the store did not see answered binds after five minutes', async () => {
      const { browser, clock, store } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      await browser.register(offer.path, offer.challenge);
      await forgetAnswer(store);
      await clock.advance(5 * MINUTE + 1);
      for (const path of ['/inside', '/money']) expect((await thiefOf(browser).send('GET', path)).status).toBe(401);
      await expectOwnerServed(browser);
    });

    it('(4) a browser that binds nothing is told to for ten minutes, so that nobody else can afterwards', async () => {
      const { browser, clock } = await startDevices();
      const owner = browser.thief();
      expect(offerIn(await owner.send('POST', '/sign-in'))).toBeDefined();
      await clock.advance(9.8 * MINUTE);
      expect(offerIn(await owner.send('GET', '/inside'))).toBeDefined();
      await clock.advance(0.3 * MINUTE);
      const thief = owner.thief();
      await thief.get('/inside');
      expect(thief.own).toEqual([]);
      expect((await owner.send('GET', '/inside')).status).toBe(200);
    });

    it('(11) a session of the own in front of it opens nothing in a connection, once it has ended', async () => {
      for (const binds of [false, true]) {
        const { browser, app } = await signedIn();
        const attacker = new DeviceBrowser(browser.origin, binds);
        await attacker.post('/sign-in');
        await attacker.get('/who');
        const both = `SESSION=${attacker.jar.get('SESSION')}; SESSION=${browser.jar.get('SESSION')}`;
        const cookie = binds ? `${both}; SESSION-device=${attacker.jar.get('SESSION-device')}` : both;
        const upgrade = await upgradeOf(app, '/sockets', cookie);
        const principal = async () => (await app.get(Sessions).load(upgrade))?.principalName;
        expect(await principal()).toBe('ann');
        await attacker.post('/sign-out');
        expect(await principal()).toBeUndefined();
      }
    });

    it('(11) the sessions of a browser are listed with their proofs only', async () => {
      for (const multipleSessions of [false, true]) {
        const { browser, clock } = await signedIn(undefined, { session: { multipleSessions } });
        expect((await browser.get('/list')).body).toBe('ann');
        expect((await thiefOf(browser).send('GET', '/list')).body).toBe('');
        if (!multipleSessions) continue;
        await browser.send('POST', '/sign-in?_s=1');
        const second = thiefOf(browser);
        expect((await second.send('GET', '/list?_s=1')).body).toBe('ann');
        await clock.advance(MINUTE);
        expect((await browser.get('/list')).body).toBe('ann,ann');
      }
    });

    it('(22) a path that leads elsewhere is not left out', async () => {
      const { browser, app } = await signedIn({ mode: 'enforce', exclude: ['/assets'] });
      const thief = thiefOf(browser);
      expect((await thief.sendTo('/assets')).body).toBe('ann');
      for (const path of [
        '/assets/../inside',
        '/assets/%2e%2e/inside',
        '/assets/..%2finside',
        '/assets//../inside',
        '/assets;/x',
      ])
        expect((await thief.sendTo(path)).status).not.toBe(200);
      const cookie = `SESSION=${browser.jar.get('SESSION')}`;
      for (const path of ['/assets/../sockets', '/assets/%2E%2E/sockets', '/assets/sockets', '/assets']) {
        const upgrade = await upgradeOf(app, path, cookie);
        expect(await app.get(Sessions).load(upgrade)).toBeNull();
      }
    });

    it('(15) the session of another user, planted in front, does not hide the own', async () => {
      const { browser, clock } = await signedIn();
      const attacker = new DeviceBrowser(browser.origin);
      await attacker.post('/sign-in');
      await attacker.get('/who');
      await clock.advance(MINUTE);
      const cookie = `SESSION=${attacker.jar.get('SESSION')}; SESSION=${browser.jar.get('SESSION')}`;
      const own = `${cookie}; SESSION-device=${browser.jar.get('SESSION-device')}`;
      expect((await browser.send('GET', '/money', { cookie: own })).body).toBe('money');
      expect((await browser.send('GET', '/money', { cookie })).status).toBe(401);
    });

    it('(11) a challenge of the own session is none of the other', async () => {
      const { browser } = await signedIn();
      const attacker = new DeviceBrowser(browser.origin);
      await attacker.post('/sign-in');
      const { challenge } = attacker.binding!;
      const answer = await browser.sendRefresh(browser.proof(challenge));
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined]);
    });

    it('(12) what was made for one purpose serves no other', async () => {
      const { browser } = await signedIn();
      const cookie = browser.jar.get('SESSION-device')!;
      const challenge = browser.binding!.challenge!;
      expect((await browser.sendRefresh(browser.proof(cookie))).status).toBe(403);
      for (const value of [challenge, browser.binding!.id, `${ID}.${ID}`]) {
        const thief = thiefOf(browser);
        thief.jar.set('SESSION-device', value);
        expect((await thief.get('/inside')).status).toBe(401);
      }
      const handle = `${browser.binding!.id}.${challenge.split('.')[1]}`;
      expect((await browser.register(`/session/device/register/${handle}`, challenge)).status).toBe(403);
    });

    it('(21) saying why there is no proof opens nothing', async () => {
      const { browser } = await signedIn();
      const thief = thiefOf(browser);
      for (const reason of ['unreachable', 'server_error', 'quota_exceeded', 'unknown']) {
        const headers = { 'secure-session-skipped': `${reason};session_identifier="${browser.binding!.id}"` };
        for (const path of ['/inside', '/money']) expect((await thief.get(path, headers)).status).toBeGreaterThan(400);
        expect(JSON.parse((await thief.get('/who', headers)).body)).toEqual({ name: null, device: null });
      }
    });

    it('(24) that was copied before the registration serves for a minute after it, and never where a proof is asked', async () => {
      const { browser, clock } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      const thief = thiefOf(browser);
      expect((await thief.send('GET', '/money')).status).toBe(403);
      await browser.register(offer.path, offer.challenge);
      await browser.get('/who');
      expect((await thief.send('GET', '/inside')).body).toBe('in');
      expect((await thief.send('GET', '/money')).status).toBe(403);
      await clock.advance(MINUTE);
      expect((await thief.send('GET', '/inside')).status).toBe(401);
    });
  });

  describe.each(['express', 'fastify'] as const)(
    'with a stream that was opened before the registration, on %s,',
    (platform) => {
      afterEach(() => jest.restoreAllMocks());

      it.each(['report', 'enforce'] as const)('(24) the session cookie alone gets no more of it (%s)', async (mode) => {
        const { browser, clock } = await startDevices({ mode }, { platform });
        const signedIn = await browser.send('POST', '/sign-in');
        const thief = await fetch(`${browser.origin}/stream`, {
          headers: { cookie: `SESSION=${browser.jar.get('SESSION')}` },
        });
        await browser.takeOffer(signedIn);
        await browser.get('/who');
        const cookie = [...browser.jar].map((each) => each.join('=')).join('; ');
        const own = await fetch(`${browser.origin}/stream`, { headers: { cookie } });
        await clock.advance(20 * MINUTE);
        const now = performance.now.bind(performance);
        jest.spyOn(performance, 'now').mockImplementation(() => now() + MINUTE);
        if (mode === 'enforce') await expect(thief.text()).rejects.toThrow();
        await eventually(() => expect(heard).toEqual(['missing-proof missing']));
        const rest = own.body!.getReader();
        expect((await rest.read()).done).toBe(false);
        await rest.cancel();
        if (mode === 'report') await thief.body!.cancel();
      });
    },
  );

  describe('with what was recorded', () => {
    it('(7) a proof opens nothing a minute later', async () => {
      const { browser, clock } = await signedIn();
      const recorded = browser.proof();
      await browser.refresh();
      await clock.advance(MINUTE + 1);
      const thief = browser.thief();
      thief.binding = { ...browser.binding! };
      const answer = await thief.sendRefresh(recorded);
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined]);
      await expectOwnerServed(browser);
    });

    it('(8) a registration opens nothing a minute later', async () => {
      const { browser, clock } = await startDevices();
      const offer = offerIn(await browser.send('POST', '/sign-in'))!;
      const key = newKey();
      await browser.register(offer.path, offer.challenge, key);
      await clock.advance(MINUTE + 1);
      const recorded = { 'secure-session-response': proofBy(key, offer.challenge, true) };
      const answer = await new DeviceBrowser(browser.origin).send('POST', offer.path, recorded);
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined]);
    });
  });

  describe('without the session cookie', () => {
    it('(5) a session that is planted in a browser does not stay bound to its planter', async () => {
      const { browser: attacker, clock } = await signedIn();
      const victim = attacker.thief();
      await victim.post('/sign-in');
      await victim.get('/who');
      await clock.advance(MINUTE);
      expect(victim.own).toEqual(['register 200']);
      expect(victim.binding!.id).not.toBe(attacker.binding!.id);
      const planted = attacker.thief();
      planted.jar.set('SESSION', victim.jar.get('SESSION')!);
      expect((await planted.get('/inside')).status).toBe(401);
      await attacker.refresh();
      expect(attacker.binding).toBeUndefined();
    });

    it('(6, 20) proofs that are garbage cost no write and no signature of the owner, and are told of as one', async () => {
      const { browser, store } = await signedIn();
      const attacker = new DeviceBrowser(browser.origin);
      attacker.binding = { ...browser.binding!, key: newKey() };
      const before = store.changes.length;
      for (let i = 0; i < 200; i++) {
        const answer = await attacker.sendRefresh(attacker.proof(i % 2 === 0 ? 'x' : undefined));
        expect([answer.status, challengeIn(answer)?.id]).toEqual([403, browser.binding!.id]);
      }
      expect(store.changes).toHaveLength(before);
      expect(heard.length).toBeLessThan(20);
      await expectOwnerServed(browser);
      expect(browser.own).toEqual(['register 200', 'refresh 200']);
    });

    it('(9, 10) a key that others could use is not registered, and nothing beside the public one is kept', async () => {
      const { browser, store } = await startDevices();
      const { path, challenge } = offerIn(await browser.send('POST', '/sign-in'))!;
      const key = newKey();
      const { x, y } = key.jwk as Record<'x' | 'y', string>;
      const secret = key.privateKey.export({ format: 'jwk' });
      const weak = [
        { ...key, jwk: { kty: 'EC', crv: 'P-256', x, y: x } },
        { ...key, jwk: { kty: 'oct', k: x } },
      ];
      for (const each of weak) expect((await browser.register(path, challenge, each)).status).toBe(403);
      expect(
        (await browser.register(path, challenge, { ...key, jwk: { ...secret, x5c: ['a'], use: 'enc' } })).status,
      ).toBe(200);
      expect((await stored(store)).key!.publicKey).toEqual({ kty: 'EC', crv: 'P-256', x, y });
    });

    it('(14, 15) pages of other sites cause no refresh, read no answer and frame none', async () => {
      const { browser } = await startDevices();
      const { path, challenge } = offerIn(await browser.send('POST', '/sign-in'))!;
      const answer = await browser.register(path, challenge);
      expect(JSON.parse(answer.body)).not.toHaveProperty('allowed_refresh_initiators');
      expect(JSON.parse(answer.body)).toMatchObject({ scope: { include_site: false } });
      const other = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
      for (const each of [answer, await browser.sendRefresh(other)]) {
        expect(each.headers['cross-origin-resource-policy']).toBe('same-origin');
        expect(each.headers['access-control-allow-origin']).toBeUndefined();
      }
    });

    it('(16) bound cookies that another host has planted hide none of the own', async () => {
      const { browser } = await signedIn();
      const planted = Array.from({ length: 40 }, (_, i) => `SESSION-device=${i}`).join('; ');
      const own = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
      expect((await browser.send('GET', '/money', { cookie: `${planted}; ${own}` })).body).toBe('money');
    });

    it('(17) nothing that a client sends reaches the header of an offer', async () => {
      const { browser } = await startDevices();
      const strange = { host: 'a";path="b', 'user-agent': '";challenge="x', referer: 'https://x/";path="' };
      const { headers } = await browser.send('POST', `/sign-in?a=";path="/b"`, strange);
      expect(headers['secure-session-registration']).toMatch(
        /^\(ES256 RS256\);path="\/session\/device\/register\/[\w-]{43}\.[\w-]{43}";challenge="[\w-]{43}"$/,
      );
    });

    it('(18) no header binds the session to another host', async () => {
      const { browser } = await startDevices(undefined, { trustProxy: '10.0.0.0/8' });
      // Not offered, because the proxy that says so is not trusted.
      const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
      expect(offerIn(await browser.send('POST', '/sign-in', forwarded))).toBeUndefined();
      const trusting = await startDevices();
      const { path, challenge } = offerIn(await trusting.browser.send('POST', '/sign-in'))!;
      const proof = { 'secure-session-response': proofBy(newKey(), challenge, true) };
      const { body } = await trusting.browser.send('POST', path, {
        ...proof,
        host: 'shop.test',
        origin: 'https://evil.example',
      });
      expect(JSON.parse(body)).toMatchObject({ scope: { origin: 'https://shop.test' } });
    });

    it('(19) an id that never was, one that has ended and one that was never registered are answered alike', async () => {
      const { browser, store } = await startDevices();
      await browser.send('POST', '/sign-in');
      const { id: offered } = await stored(store);
      const ended = new DeviceBrowser(browser.origin);
      await ended.post('/sign-in');
      const { id } = ended.binding!;
      await ended.post('/sign-out');
      const attacker = new DeviceBrowser(browser.origin);
      const ask = async (each: string) => {
        const { status, headers, body } = await attacker.send('POST', '/session/device/refresh', {
          'sec-secure-session-id': each,
        });
        return [status, Object.keys(headers), body.replace(each, 'id')];
      };
      const unknown = await ask(ID);
      expect(await ask(id)).toEqual(unknown);
      expect(await ask(offered)).toEqual(unknown);
    });

    it('(27) an id that somebody has seen is worth nothing', async () => {
      const { browser, store } = await signedIn();
      const attacker = new DeviceBrowser(browser.origin);
      attacker.binding = { ...browser.binding!, key: newKey(), challenge: undefined };
      await attacker.refresh();
      expect([...attacker.jar.keys()]).toEqual([]);
      expect(attacker.binding).toBeUndefined();
      expect(await store.countByIndex('principal', 'ann')).toBe(1);
      await expectOwnerServed(browser);
    });
  });

  describe('what is sent', () => {
    it('(25) leads to no other host and shows nothing of the request but its address', async () => {
      const { browser } = await signedIn();
      const thief = thiefOf(browser);
      const pageAt = async (path: string) => {
        thief.jar.delete('SESSION-device-asked');
        // Sent as it is: `new URL()` would resolve it.
        return thief.sendTo(path, OTHER_SITE);
      };
      for (const path of [
        '//evil.example/',
        '/\\evil.example',
        '//',
        'https://evil.example/',
        '/..//evil.example',
        '/%0d%0a//x/..//..//evil.example',
      ]) {
        const { headers } = await pageAt(path);
        expect(headers.refresh ?? '1;url=/').toMatch(/^1;url=\/(?![/\\])/);
      }
      const page: Answer = await pageAt('/inside?a=<script>alert(1)</script>&b="\'');
      expect(page.headers.refresh).toBe('1;url=/inside?a=%3Cscript%3Ealert(1)%3C/script%3E&b=%22%27');
      expect(page.body).not.toContain('alert');
      expect(page.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': expect.stringMatching(/^default-src 'none'; script-src 'sha256-[\w+/]{43}='$/),
      });
    });

    it('(26) is kept by no cache where it has an offer or a bound cookie', async () => {
      const { browser } = await startDevices();
      const offering = await browser.send('POST', '/sign-in');
      const { path, challenge } = offerIn(offering)!;
      const answers = [offering, await browser.register(path, challenge), await browser.sendRefresh(browser.proof())];
      for (const { status, headers } of answers) {
        expect(status).toBeLessThan(300);
        expect(headers['cache-control']).toContain('no-store');
      }
    });

    it('has no key, secret, challenge or cookie in events and log lines', async () => {
      const events: SecurityEvent[] = [];
      class HearsAll {
        @OnSecurityEvent('missing-proof', 'refused-proof')
        hear(event: SecurityEvent) {
          events.push(event);
        }
      }
      const { browser, log, store } = await signedIn(undefined, { providers: [HearsAll] });
      await browser.sendRefresh(browser.proof(undefined, newKey()));
      await thiefOf(browser).get('/inside');
      const { secret, key } = await stored(store);
      expect(events.map(({ reason }) => reason)).toEqual(['wrong-key', 'missing']);
      const told = JSON.stringify([events, log]);
      for (const each of [secret, JSON.stringify(key!.publicKey), ...browser.jar.values(), browser.binding!.challenge!])
        expect(told).not.toContain(each);
      const shown = (await browser.get('/who')).body;
      expect(Object.keys((JSON.parse(shown) as { device: object }).device).toSorted()).toEqual([
        'algorithm',
        'bound',
        'since',
      ]);
    });
  });
}
