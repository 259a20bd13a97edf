import { Controller, Get } from '@nestjs/common';
import { Authenticated, OnSecurityEvent, SessionStoreError } from '../../src/index.js';
import { DEVICE_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { type GatedStore, replaceMethods, STORE_FAILURE } from '../support/gated.repository.js';
import { DeviceRoutes, type Devices, heard, MINUTE } from './device.app.js';
import { type Answer, challengeIn, type DeviceBrowser, newKey, offerIn, proofBy } from './device.browser.js';

const ID = 'a'.repeat(43);
const OTHER_SITE = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };

/** That the browser keeps its binding, and can sign once more. */
function expectAsked(answer: Answer, browser: DeviceBrowser): void {
  expect(answer.status).toBe(403);
  expect(challengeIn(answer)?.id).toBe(browser.binding!.id);
}

/** That the browser ends its binding, and only that. */
function expectOver(answer: Answer, id: string): void {
  expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { session_identifier: id, continue: false }]);
  expect(answer.headers['set-cookie']).toBeUndefined();
}

/** That the binding is as good as before. */
async function expectRenewed(browser: DeviceBrowser): Promise<void> {
  browser.jar.delete('SESSION-device');
  expect((await browser.get('/money')).body).toBe('money');
}

class Throws {
  @OnSecurityEvent('missing-proof', 'refused-proof')
  hear() {
    throw new Error('The handler has failed');
  }
}

/** From now on the store has lost the key of its encryption. Returns what finds it again. */
function loseKey(store: GatedStore): () => void {
  let isLost = true;
  const unread = {
    bytes: 1,
    read: () => {
      throw new SessionStoreError('The key is missing');
    },
  };
  replaceMethods(store, ({ lookUp }) => ({
    lookUp: async (indexName, value) => {
      const records = await lookUp(indexName, value);
      if (!isLost) return records;
      return records.map((each) => ({
        ...each,
        attributes: [...each.attributes].map(
          ([name, text]) => [name, name === DEVICE_ATTRIBUTE ? unread : text] as const,
        ),
      }));
    },
  }));
  return () => (isLost = false);
}

@Controller()
class SlowRoute {
  static meanwhile: () => unknown = () => undefined;

  @Authenticated()
  @Get('slow')
  async slow() {
    await SlowRoute.meanwhile();
    return 'done';
  }
}

/** The rows of the failure table. */
export function describeFailureTable({ startDevices, signedIn }: Devices): void {
  /** Signs in, and leaves the offer alone. */
  async function offered(platform: 'express' | 'fastify') {
    const started = await startDevices(undefined, { platform });
    const offer = offerIn(await started.browser.send('POST', '/sign-in'))!;
    const key = newKey();
    const register = (path = offer.path, challenge = offer.challenge, by = key, browser = started.browser) =>
      browser.send('POST', path, { 'secure-session-response': proofBy(by, challenge, true) });
    return { ...started, offer, key, register };
  }

  describe.each(['express', 'fastify'] as const)('on %s, a registration', (platform) => {
    it('(1) during an outage is a 503, and the next offer binds', async () => {
      for (const call of ['look-up', 'clock', 'update'] as const) {
        const { browser, store, clock, register } = await offered(platform);
        store.break(call);
        const answer = await register();
        expect([answer.status, answer.headers['retry-after'], answer.headers['cache-control']]).toEqual([
          503,
          '5',
          'no-store',
        ]);
        store.repair();
        await clock.advance(MINUTE);
        await browser.get('/who');
        expect(browser.own).toEqual(['register 200']);
        await browser.get('/who');
        await clock.advance(MINUTE);
        await expectRenewed(browser);
      }
    });

    it('(4) with an unknown handle, or that of another session, is a 403 that changes nothing', async () => {
      const { browser, offer, key, register } = await offered(platform);
      const other = browser.thief();
      other.jar.clear();
      const others = offerIn(await other.send('POST', '/sign-in'))!;
      const [, handle = ''] = /register\/(.*)/.exec(offer.path) ?? [];
      for (const wrong of ['', 'x', handle.slice(1), `${ID}.${ID}`, `${handle}/`, `${handle}.x`]) {
        const answer = await register(offer.path.replace(handle, wrong));
        expect([answer.status, answer.body, answer.headers['set-cookie']]).toEqual([403, '', undefined]);
      }
      expect((await register(others.path)).status).toBe(403);
      expect((await register(offer.path, others.challenge)).status).toBe(403);
      expect(heard).toContain('refused-proof unknown-handle');
      expect((await register(offer.path, offer.challenge, key)).status).toBe(200);
    });

    it('(4) is refused five minutes after the offer, and a minute after the browser has registered', async () => {
      const late = await offered(platform);
      await late.clock.advance(6 * MINUTE);
      expect((await late.register()).status).toBe(403);
      const used = await offered(platform);
      await used.browser.register(used.offer.path, used.offer.challenge, used.key);
      await used.browser.get('/who');
      await used.clock.advance(MINUTE + 1);
      expect((await used.register()).status).toBe(403);
      await expectRenewed(used.browser);
    });

    it('(4) of an earlier sign-in is a 403', async () => {
      const { browser, register } = await offered(platform);
      expect(offerIn(await browser.send('POST', '/sign-in'))).toBeDefined();
      expect((await register()).status).toBe(403);
      expect(JSON.parse((await browser.get('/who')).body)).toEqual({ name: 'ann', device: null });
    });

    it('(5) of a session that has ended is a 403', async () => {
      const { browser, register } = await offered(platform);
      await browser.send('POST', '/sign-out');
      expect((await register()).status).toBe(403);
    });

    it('(6) of a session that was given another id in between binds it', async () => {
      const { browser, offer, key, clock } = await offered(platform);
      await browser.send('POST', '/rotate');
      await browser.register(offer.path, offer.challenge, key);
      expect(browser.own).toEqual(['register 200']);
      await browser.get('/who');
      await clock.advance(MINUTE);
      await expectRenewed(browser);
    });

    it('(6) binds also when the session is given another id while it is stored', async () => {
      const { browser, offer, key, store } = await offered(platform);
      const gate = store.gate('update');
      const registering = browser.register(offer.path, offer.challenge, key);
      await gate.reached();
      store.repair();
      await browser.send('POST', '/rotate');
      gate.open();
      await registering;
      expect(browser.own).toEqual(['register 200']);
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('(7) by the same key again is a retry', async () => {
      const { browser, register, offer, key } = await offered(platform);
      expect((await register()).status).toBe(200);
      await browser.register(offer.path, offer.challenge, key);
      expect(browser.own).toEqual(['register 200']);
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('(8) by a second key is a 403, and the first one stays', async () => {
      const { browser, register, offer, key, clock } = await offered(platform);
      await browser.register(offer.path, offer.challenge, key);
      expect((await register(offer.path, offer.challenge, newKey())).status).toBe(403);
      expect(heard).toEqual(['refused-proof second-key']);
      await browser.get('/who');
      expect((await register(offer.path, offer.challenge, newKey())).status).toBe(403);
      await clock.advance(MINUTE);
      await expectRenewed(browser);
    });

    it('(17) that is no proof is a 403, and the browser may try again', async () => {
      const { browser, offer, key, register } = await offered(platform);
      const proof = proofBy(key, offer.challenge, true);
      const [head, body] = proof.split('.');
      const without = await browser.send('POST', offer.path);
      expect(without.status).toBe(403);
      const wrong = [
        '',
        'x',
        proofBy(key, offer.challenge, false),
        `${head}.${body}.AAAA`,
        `${proof}, ${proof}`,
        'a'.repeat(9000),
      ];
      for (const text of wrong)
        expect((await browser.send('POST', offer.path, { 'secure-session-response': text })).status).toBe(403);
      expect(heard[0]).toBe('refused-proof malformed');
      expect((await register()).status).toBe(200);
    });

    it('(18) that a proxy has made a GET is served', async () => {
      const { browser, offer, key } = await offered(platform);
      expect((await browser.send('GET', offer.path)).status).toBe(403);
      const headers = { 'secure-session-response': proofBy(key, offer.challenge, true) };
      expect((await browser.send('GET', offer.path, headers)).status).toBe(200);
    });

    it('(19) from another origin never names it as that of the session', async () => {
      const { browser, offer, key } = await offered(platform);
      const headers = { 'secure-session-response': proofBy(key, offer.challenge, true) };
      const originFor = async (origin: string) => {
        const { body } = await browser.send('POST', offer.path, { ...headers, host: 'shop.test:8443', origin });
        return (JSON.parse(body) as { scope: { origin: string } }).scope.origin;
      };
      for (const origin of [
        'https://evil.example',
        'http://shop.test:8443',
        'null',
        'https://shop.test.evil.example',
        'x',
      ])
        expect(await originFor(origin)).toBe('https://shop.test:8443');
      // A proxy may have left the port out of Host.
      expect(await originFor('https://shop.test')).toBe('https://shop.test');
    });

    it('(33) that the store made, and failed, is offered again, and leaves nobody out meanwhile', async () => {
      const { browser, clock, store, register } = await offered(platform);
      let isBroken = true;
      replaceMethods(store, ({ write }) => ({
        write: async (change) => {
          const reply = await write(change);
          if (isBroken) throw STORE_FAILURE;
          return reply;
        },
      }));
      expect((await register()).status).toBe(503);
      isBroken = false;
      expect((await browser.get('/inside')).body).toBe('in');
      await clock.advance(MINUTE);
      expect((await browser.get('/inside')).body).toBe('in');
      expect(browser.own).toEqual(['register 200']);
      await browser.get('/who');
      await clock.advance(MINUTE);
      await expectRenewed(browser);
    });
  });

  describe.each(['express', 'fastify'] as const)('on %s, a refresh', (platform) => {
    const bound = (options = {}) => signedIn(undefined, { platform, ...options });

    it('(2) during an outage is a 503, and the binding is as good as before', async () => {
      for (const call of ['look-up', 'clock', 'update'] as const) {
        const { browser, store } = await bound();
        store.break(call);
        const answer = await browser.sendRefresh(browser.proof());
        expect([answer.status, answer.headers['retry-after'], answer.headers['cache-control']]).toEqual([
          503,
          '5',
          'no-store',
        ]);
        store.repair();
        await expectRenewed(browser);
      }
    });

    it('(9) without cookies is served: another site may have caused it', async () => {
      const { browser } = await bound();
      const jar = [...browser.jar];
      browser.jar.clear();
      expectAsked(await browser.sendRefresh(), browser);
      await browser.refresh();
      expect(browser.own).toEqual(['register 200', 'refresh 200']);
      expect([...browser.jar.keys()]).toEqual(['SESSION-device']);
      browser.jar.set('SESSION', new Map(jar).get('SESSION')!);
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('(10) without an id, which a proxy may have taken away, is a 503', async () => {
      const { browser } = await bound();
      for (const id of [undefined, '', 'x', `${ID}x`, `"${ID}`, `${ID},${ID}`, 'ä'.repeat(43)]) {
        const headers: Record<string, string> = id === undefined ? {} : { 'sec-secure-session-id': id };
        expect((await browser.send('POST', '/session/device/refresh', headers)).status).toBe(503);
      }
      await expectRenewed(browser);
    });

    it('(11) of a binding that another session has followed ends that alone', async () => {
      const { browser, clock } = await bound();
      const old = browser.binding!;
      await browser.post('/sign-in');
      await browser.get('/who');
      expect(browser.binding!.id).not.toBe(old.id);
      expectOver(await browser.sendRefresh({ 'sec-secure-session-id': old.id }), old.id);
      await clock.advance(MINUTE);
      await expectRenewed(browser);
    });

    it('(11) ends what the browser was bound to before, whatever session it has now', async () => {
      const { browser, store } = await bound();
      const { jar, binding } = browser;
      for (const path of ['/sign-in', '/kiosk']) {
        const other = browser.thief();
        other.jar.clear();
        await other.send('POST', path);
        browser.jar.set('SESSION', other.jar.get('SESSION')!);
        expectOver(await browser.sendRefresh(browser.proof()), binding!.id);
      }
      expect(jar.size).toBe(2);
      expect(await store.countByIndex('principal', 'ann')).toBe(3);
    });

    it('(12) of a session that has ended, signed out elsewhere or expired, ends the binding', async () => {
      const ends = [
        async ({ store }: Awaited<ReturnType<typeof bound>>) => store.deleteByIndex('principal', 'ann'),
        async ({ browser }: Awaited<ReturnType<typeof bound>>) => browser.thief().post('/sign-out'),
        async ({ clock }: Awaited<ReturnType<typeof bound>>) => clock.advance(13 * 60 * MINUTE),
      ];
      for (const end of ends) {
        const started = await bound();
        await end(started);
        const { browser } = started;
        expectOver(await browser.sendRefresh(browser.proof()), browser.binding!.id);
        expect((await browser.get('/inside')).status).toBe(401);
      }
    });

    it('(12) of an id that never was is answered like that of a session that has ended', async () => {
      const { browser } = await bound();
      expectOver(await browser.send('POST', '/session/device/refresh', { 'sec-secure-session-id': `"${ID}"` }), ID);
    });

    it('(13) without a proof asks for one', async () => {
      const { browser } = await bound();
      const answer = await browser.sendRefresh();
      expectAsked(answer, browser);
      expect([answer.body, answer.headers['set-cookie'], answer.headers['cache-control']]).toEqual([
        '',
        undefined,
        'no-store',
      ]);
      expect(heard).toEqual([]);
    });

    it('(14) with a challenge that is too old, or older than one that was answered, asks again', async () => {
      const { browser, clock } = await bound();
      const first = browser.binding!.challenge!;
      await clock.advance(8 * MINUTE);
      await browser.refresh();
      await clock.advance(2 * MINUTE);
      await browser.refresh();
      expectAsked(await browser.sendRefresh(browser.proof(first)), browser);
      await clock.advance(80 * MINUTE);
      expectAsked(await browser.sendRefresh(browser.proof()), browser);
      expect(heard).toEqual([]);
      await expectRenewed(browser);
      expect(browser.own.slice(-2)).toEqual(['refresh 403', 'refresh 200']);
    });

    it('(15) with a challenge of another session asks again', async () => {
      const { browser } = await bound();
      const other = browser.thief();
      other.jar.clear();
      await other.post('/sign-in');
      expectAsked(await browser.sendRefresh(browser.proof(other.binding!.challenge!)), browser);
      expectAsked(await browser.sendRefresh(browser.proof('challenge')), browser);
      expect(heard).toEqual(['refused-proof foreign-challenge']);
      await expectRenewed(browser);
    });

    it('(16) by another key asks again, and changes nothing', async () => {
      const { browser, store } = await bound();
      const before = store.changes.length;
      expectAsked(await browser.sendRefresh(browser.proof(undefined, newKey())), browser);
      expect(heard).toEqual(['refused-proof wrong-key']);
      expect(store.changes).toHaveLength(before);
      await expectRenewed(browser);
    });

    it('(17) with anything else asks again', async () => {
      const { browser } = await bound();
      const { 'secure-session-response': proof } = browser.proof();
      const [, body, signature] = proof.split('.');
      const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'dbsc+jwt' })).toString('base64url');
      const wrong = ['', 'x', `${none}.${body}.${signature}`, `${proof}, ${proof}`, 'a'.repeat(9000)];
      for (const text of wrong) expectAsked(await browser.sendRefresh({ 'secure-session-response': text }), browser);
      expectAsked(await browser.sendRefresh(browser.proof(undefined, undefined, true)), browser);
      expectAsked(await browser.sendRefresh(browser.proof(undefined, newKey(), true)), browser);
      expect(heard).toEqual(['refused-proof malformed']);
      await expectRenewed(browser);
    });

    it('(18) by another method, which a proxy may have chosen, is served', async () => {
      const { browser, clock } = await bound();
      for (const method of ['GET', 'PUT', 'OPTIONS']) {
        expectAsked(await browser.sendRefresh({}, method), browser);
        const answer = await browser.sendRefresh(browser.proof(), method);
        expect([answer.status, answer.headers['set-cookie']?.length]).toEqual([200, 1]);
        browser.binding!.challenge = challengeIn(answer)!.challenge;
        await clock.advance(1000);
      }
    });

    it('(29) is a 404 once the option is gone, and the session goes on unbound', async () => {
      const started = await bound();
      const { browser } = started;
      const { origin } = await startDevices(false, { platform, beside: started });
      const later = browser.thief(origin);
      expect((await later.send('POST', '/session/device/refresh', { 'sec-secure-session-id': ID })).status).toBe(404);
      later.jar.delete('SESSION-device');
      expect((await later.get('/inside')).body).toBe('in');
    });

    it('(31) is a 503 while the store cannot read the binding', async () => {
      const { browser, store } = await bound();
      const findKey = loseKey(store);
      expect((await browser.sendRefresh(browser.proof())).status).toBe(503);
      findKey();
      await expectRenewed(browser);
    });

    it('(32) is answered whatever a handler of security events throws', async () => {
      const { browser } = await bound({ providers: [Throws] });
      expectAsked(await browser.sendRefresh(browser.proof(undefined, newKey())), browser);
      await expectRenewed(browser);
    });

    it('keeps its answer from caches and other origins', async () => {
      const { browser } = await bound();
      const cross = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
      for (const answer of [await browser.sendRefresh(browser.proof()), await browser.sendRefresh(cross, 'OPTIONS')]) {
        expect(answer.headers).toMatchObject({
          'cache-control': 'no-store',
          'cross-origin-resource-policy': 'same-origin',
        });
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    });
  });

  describe.each(['express', 'fastify'] as const)('on %s, a request', (platform) => {
    const bound = (deviceBound?: Parameters<typeof signedIn>[0], options = {}) =>
      signedIn(deviceBound, { platform, ...options });

    /** Without the key, so that it renews nothing. */
    async function unproven(deviceBound?: Parameters<typeof signedIn>[0]) {
      const started = await bound(deviceBound);
      const browser = started.browser.thief();
      browser.jar.delete('SESSION-device');
      return { ...started, browser };
    }

    it('(3) during an outage is a 503, as without the option', async () => {
      const { browser, store } = await bound();
      store.break('load');
      expect((await browser.get('/inside')).status).toBe(503);
      store.repair();
      expect((await browser.get('/inside')).body).toBe('in');
    });

    it('(22) over http, or through a proxy that is not trusted, is offered nothing', async () => {
      const { browser } = await startDevices(undefined, { platform });
      expect(offerIn(await browser.send('POST', '/sign-in', { 'x-forwarded-proto': 'http' }))).toBeUndefined();
      expect(offerIn(await browser.send('GET', '/who', { 'x-forwarded-proto': 'http' }))).toBeUndefined();
      expect(offerIn(await browser.send('GET', '/who'))).toBeDefined();
      const distrusting = await startDevices(undefined, { platform, trustProxy: '10.0.0.0/8' });
      expect(offerIn(await distrusting.browser.send('POST', '/sign-in'))).toBeUndefined();
    });

    it('(23) is served for 30 seconds after the end of the bound cookie, because clocks differ', async () => {
      const { browser, clock } = await bound();
      const copy = browser.thief();
      await clock.advance(9.5 * MINUTE);
      expect((await copy.get('/money')).body).toBe('money');
      await clock.advance(1000);
      expect((await copy.get('/money')).status).toBe(401);
    });

    it('(24) with a bound cookie that is none is one without', async () => {
      const { browser } = await unproven();
      browser.jar.set('SESSION-device', 'x');
      expect((await browser.get('/inside')).status).toBe(401);
      expect(heard).toEqual(['missing-proof forged']);
    });

    it('(25) with several bound cookies counts by any of them', async () => {
      const { browser } = await bound();
      const { jar } = browser;
      const cookie = `SESSION-device=x; SESSION=${jar.get('SESSION')}; SESSION-device=${jar.get('SESSION-device')}`;
      expect((await browser.send('GET', '/money', { cookie })).body).toBe('money');
    });

    it('(26) of a session that is bound to no browser is served, but not where that is asked for', async () => {
      for (const [mode, status] of [
        ['enforce', 403],
        ['report', 200],
      ] as const) {
        const { browser } = await startDevices({ mode }, { platform });
        await browser.send('POST', '/sign-in');
        expect((await browser.get('/inside')).body).toBe('in');
        const answer = await browser.send('GET', '/money');
        expect(answer.status).toBe(status);
        if (mode === 'enforce') expect(JSON.parse(answer.body)).toMatchObject({ reason: 'device-not-bound' });
        expect(heard).toEqual(['missing-proof device-not-bound']);
      }
    });

    it('(27) without a proof is a 401 where a user is asked for, and has no session elsewhere', async () => {
      const { browser } = await unproven();
      for (const path of ['/inside', '/money']) {
        const { status, body } = await browser.get(path);
        expect([status, JSON.parse(body)]).toEqual([401, expect.objectContaining({ reason: 'device-proof-missing' })]);
      }
      expect(JSON.parse((await browser.get('/who')).body)).toEqual({ name: null, device: null });
      expect(heard).toEqual(['missing-proof missing']);
    });

    it('(27) without a proof is served everywhere while it is only reported', async () => {
      const { browser } = await unproven({ mode: 'report' });
      for (const path of ['/inside', '/money', '/who', '/landing']) expect((await browser.get(path)).status).toBe(200);
      const skipped = { 'secure-session-skipped': 'unreachable' };
      expect((await browser.get('/inside', skipped)).body).toBe('in');
      expect((await browser.get('/inside', OTHER_SITE)).body).toBe('in');
      expect(heard).toEqual(['missing-proof missing']);
    });

    it('(28) that takes longer than its proof counts is served', async () => {
      const { browser, clock } = await bound(undefined, { controllers: [DeviceRoutes, SlowRoute] });
      SlowRoute.meanwhile = () => clock.advance(20 * MINUTE);
      expect((await browser.get('/slow')).body).toBe('done');
      SlowRoute.meanwhile = () => undefined;
    });

    it.each([
      ['unreachable', 503, '5'],
      ['server_error;session_identifier="ID"', 503, '5'],
      ['server_error;session_identifier="other", unreachable;session_identifier="ID"', 503, '5'],
      ['quota_exceeded;session_identifier="ID"', 503, '60'],
      ['server_error;session_identifier="other"', 401, undefined],
      ['something_else', 401, undefined],
      ['x,'.repeat(2000), 401, undefined],
    ])('that the browser sends without a proof because of `%.30s` is a %i', async (skipped, status, retryAfter) => {
      const { browser, store } = await unproven();
      const [session] = await store.findByIndex('principal', 'ann');
      const { id } = TrackedSession.of(session!).getOwnAttribute<{ id: string }>(DEVICE_ATTRIBUTE)!;
      const headers = { 'secure-session-skipped': skipped.replaceAll('ID', id) };
      const answer = await browser.get('/inside', headers);
      expect([answer.status, answer.headers['retry-after']]).toEqual([status, retryAfter]);
      const reason = status === 503 ? 'device-proof-unreachable' : 'device-proof-missing';
      expect(JSON.parse(answer.body)).toMatchObject({ statusCode: status, reason });
      // It never opens anything.
      expect(JSON.parse((await browser.get('/who', headers)).body)).toEqual({ name: null, device: null });
    });

    const page = (answer: Answer) => answer.headers.refresh;

    it('that another site has caused navigates again once, where it is a navigation to a page', async () => {
      const { browser } = await unproven();
      for (const headers of [
        OTHER_SITE,
        { ...OTHER_SITE, 'sec-fetch-site': 'same-site' },
        { ...OTHER_SITE, 'sec-fetch-dest': 'empty' },
      ]) {
        browser.jar.delete('SESSION-device-asked');
        const answer = await browser.get('/inside?a=%2F&b="', headers);
        expect([answer.status, page(answer)]).toEqual([200, '1;url=/inside?a=%2F&b=%22']);
        expect(answer.headers['cache-control']).toBe('no-store');
        expect((await browser.get('/inside', headers)).status).toBe(401);
      }
    });

    it('that another site has caused is a 401 in any other case', async () => {
      const { browser } = await unproven();
      const others = [
        { ...OTHER_SITE, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
        { ...OTHER_SITE, 'sec-fetch-dest': 'iframe' },
        { ...OTHER_SITE, 'sec-purpose': 'prefetch;prerender' },
        { ...OTHER_SITE, 'sec-fetch-site': 'none' },
        { ...OTHER_SITE, 'sec-fetch-site': 'same-origin' },
      ];
      for (const headers of others) {
        const answer = await browser.get('/inside', headers);
        expect([answer.status, page(answer)]).toEqual([401, undefined]);
      }
      const head = await browser.request('HEAD', '/inside', OTHER_SITE);
      expect([head.status, page(head)]).toEqual([401, undefined]);
      expect(page(await browser.post('/sign-out', OTHER_SITE))).toBeUndefined();
    });
  });
}
