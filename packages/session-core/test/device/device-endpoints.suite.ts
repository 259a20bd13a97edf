import {
  type CanActivate,
  Controller,
  Get,
  HttpException,
  HttpStatus,
  type INestApplication,
  Injectable,
  type NestMiddleware,
  ValidationPipe,
  VersioningType,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  CsrfGuard,
  HeaderSessionIdResolver,
  Session,
  type SessionModuleOptions,
} from '../../src/index.js';
import type { DeviceBinding } from '../../src/device/device-binding.js';
import { DEVICE_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import type { GatedStore } from '../support/gated.repository.js';
import { DeviceRoutes, type Devices, MINUTE } from './device.app.js';
import { type DeviceBrowser, newKey, offerIn, proofBy } from './device.browser.js';

async function sessionOf(store: GatedStore, name = 'ann'): Promise<TrackedSession> {
  const [session] = await store.findByIndex('principal', name);
  return TrackedSession.of(session!);
}

async function expectRenewed(browser: DeviceBrowser): Promise<void> {
  browser.jar.delete('SESSION-device');
  expect((await browser.get('/money')).body).toBe('money');
}

@Controller()
class VisitorRoutes {
  @Get('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
  }
}

@Injectable()
class RefusesAll implements CanActivate {
  canActivate() {
    return false;
  }
}

@Injectable()
class ThrottlesAll implements CanActivate {
  canActivate(): never {
    throw new HttpException('Too many requests', HttpStatus.TOO_MANY_REQUESTS);
  }
}

@Injectable()
class RedirectsAll implements NestMiddleware {
  use(_request: unknown, response: { writeHead(status: number, headers: object): { end(): void } }) {
    response.writeHead(302, { location: '/login' }).end();
  }
}

const SURROUNDINGS: Record<string, Parameters<Devices['startDevices']>[1]> = {
  'a guard that refuses everything': { providers: [{ provide: APP_GUARD, useClass: RefusesAll }] },
  'a guard that asks for a CSRF token': { providers: [{ provide: APP_GUARD, useClass: CsrfGuard }] },
  'a throttler': { providers: [{ provide: APP_GUARD, useClass: ThrottlesAll }] },
  'a prefix, versions, pipes and CORS': {
    configure: (app: INestApplication) => {
      app.setGlobalPrefix('api');
      app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      app.useGlobalPipes(new ValidationPipe());
      app.enableCors({ origin: '*' });
    },
  },
  'middleware that redirects everything': {
    imports: [
      class {
        configure(consumer: { apply(middleware: unknown): { forRoutes(path: string): void } }) {
          consumer.apply(RedirectsAll).forRoutes('*path');
        }
      },
    ],
  },
  'the option `exclude`': { session: { exclude: ({ url = '' }) => !url.startsWith('/api') } as SessionModuleOptions },
};

/** What browsers ask of the endpoints. */
export function describeDeviceEndpoints({ startDevices, signedIn }: Devices): void {
  describe('an offer', () => {
    it('comes for no visitor, no kiosk, no client that is no browser, and without the option', async () => {
      const { browser } = await startDevices(undefined, { controllers: [VisitorRoutes, DeviceRoutes] });
      expect(offerIn(await browser.send('GET', '/visit'))).toBeUndefined();
      expect(offerIn(await browser.send('GET', '/visit'))).toBeUndefined();
      expect(offerIn(await browser.send('POST', '/kiosk'))).toBeUndefined();
      expect(offerIn(await browser.send('GET', '/who'))).toBeUndefined();
      const off = await startDevices(false);
      expect(offerIn(await off.browser.send('POST', '/sign-in'))).toBeUndefined();
    });

    it('comes for a session whose token may be in a header as well, which is served as before', async () => {
      const [cookie, header] = [new CookieSessionIdResolver(), new HeaderSessionIdResolver('X-Auth-Token')];
      const session = { sessionIdResolver: new CompositeSessionIdResolver(header, cookie) };
      const { browser } = await startDevices(undefined, { session });
      const { headers } = await browser.send('POST', '/sign-in');
      const token = String(headers['x-auth-token']);
      expect((await browser.send('GET', '/inside', { 'x-auth-token': token })).body).toBe('in');
    });

    it('comes five times, a minute apart, until the browser has registered', async () => {
      const { browser, clock } = await startDevices();
      let offers = Number(offerIn(await browser.send('POST', '/sign-in')) !== undefined);
      for (let halves = 0; halves < 20; halves++) {
        await clock.advance(MINUTE / 2);
        if (offerIn(await browser.send('GET', '/who'))) offers++;
      }
      expect(offers).toBe(5);
    });

    it('does not fail the request when the store fails, and comes with a later one', async () => {
      for (const call of ['clock', 'update'] as const) {
        const { browser, store, log } = await startDevices();
        await browser.send('POST', '/sign-in', { 'x-forwarded-proto': 'http' });
        store.break(call);
        const answer = await browser.send('GET', '/inside');
        expect([answer.status, answer.body, offerIn(answer)]).toEqual([200, 'in', undefined]);
        expect(log.matching(/could not be bound/)).toHaveLength(call === 'update' ? 1 : 0);
        store.repair();
        expect(offerIn(await browser.send('GET', '/inside'))).toBeDefined();
      }
    });
  });

  describe('a registration', () => {
    it('tells the browser all that it needs, and nothing else', async () => {
      const options = { exclude: ['/assets', '/favicon.ico'], refreshFrom: ['login.example', '*.mail.example'] };
      const session = { csrf: { trustedOrigins: ['https://app.shop.test:8444', 'http://localhost:5173'] } };
      const { browser, store } = await startDevices(options, { session });
      const { path, challenge } = offerIn(await browser.send('POST', '/sign-in'))!;
      const { headers, body } = await browser.send('POST', path, {
        'secure-session-response': proofBy(newKey(), challenge, true),
        host: 'shop.test:8443',
        origin: 'https://shop.test:8443',
      });
      const { id } = TrackedSession.of(await sessionOf(store)).getOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE)!;
      expect(headers['content-type']).toBe('application/json');
      expect(JSON.parse(body)).toEqual({
        session_identifier: id,
        refresh_url: '/session/device/refresh',
        scope: {
          origin: 'https://shop.test:8443',
          include_site: false,
          scope_specification: ['/session/device', '/assets', '/favicon.ico'].map((each) => ({
            type: 'exclude',
            domain: '*',
            path: each,
          })),
        },
        credentials: [{ type: 'cookie', name: 'SESSION-device', attributes: 'Path=/; HttpOnly; Secure; SameSite=Lax' }],
        allowed_refresh_initiators: ['login.example', '*.mail.example', 'app.shop.test', 'localhost'],
      });
      expect(headers['set-cookie']).toEqual([
        expect.stringMatching(/^SESSION-device=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
      ]);
      expect(headers['secure-session-challenge']).toMatch(new RegExp(`^"[^"]+";id="${id}"$`));
    });

    it('is one, of a hundred at once with different keys', async () => {
      const { browser, store } = await startDevices();
      const { path, challenge } = offerIn(await browser.send('POST', '/sign-in'))!;
      const keys = Array.from({ length: 100 }, newKey);
      const answers = await Promise.all(
        keys.map((key) => browser.send('POST', path, { 'secure-session-response': proofBy(key, challenge, true) })),
      );
      const bound = keys.filter((_, i) => answers[i]!.status === 200);
      expect(bound).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 403)).toHaveLength(99);
      const { key } = TrackedSession.of(await sessionOf(store)).getOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE)!;
      expect(key!.publicKey).toMatchObject({ x: (bound[0]!.jwk as { x: string }).x });
    });
  });

  describe('a refresh', () => {
    it('renews no session, starts none and sends no other cookie', async () => {
      const { browser, clock, store } = await signedIn();
      const before = await sessionOf(store);
      await clock.advance(20 * MINUTE);
      const answer = await browser.sendRefresh(browser.proof());
      expect(answer.headers['set-cookie']).toHaveLength(1);
      expect((await sessionOf(store)).lastAccessedTime).toBe(before.lastAccessedTime);
      expect(await store.countByIndex('principal', 'ann')).toBe(1);
    });

    it('by one proof at two instances at once is good at both', async () => {
      const started = await signedIn();
      const { browser } = started;
      const { origin } = await startDevices(undefined, { beside: started });
      const other = browser.thief(origin);
      other.binding = { ...browser.binding! };
      const proof = browser.proof();
      const answers = await Promise.all([browser.sendRefresh(proof), other.sendRefresh(proof)]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      for (const each of [browser, other]) expect((await each.send('GET', '/money')).body).toBe('money');
    });

    it('whose reply was lost is repeated with the same proof', async () => {
      const { browser } = await signedIn();
      for (let i = 0; i < 3; i++) expect((await browser.sendRefresh(browser.proof())).status).toBe(200);
      await expectRenewed(browser);
    });

    it('leaves the cookie of before to the other tab until its end', async () => {
      const { browser, clock } = await signedIn();
      const tab = browser.thief();
      await clock.advance(8 * MINUTE);
      await browser.refresh();
      expect((await tab.send('GET', '/money')).body).toBe('money');
      await clock.advance(2 * MINUTE);
      expect((await tab.send('GET', '/money')).status).toBe(401);
    });

    it('after a failover that has lost the key ends the binding, and the next page binds again', async () => {
      const { browser, store, clock } = await signedIn();
      await (
        await sessionOf(store)
      ).updateOwnAttribute<DeviceBinding>(DEVICE_ATTRIBUTE, (binding) => {
        const { key: _, ...offered } = binding!;
        return offered;
      });
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/inside')).body).toBe('in');
      expect(browser.own).toEqual(['register 200', 'refresh 200', 'register 200']);
      await browser.get('/who');
      await clock.advance(MINUTE);
      await expectRenewed(browser);
    });
  });

  describe('another user of the same session', () => {
    it('has the browser that it is bound to, and nobody else is told to register', async () => {
      const { browser, store, clock } = await signedIn();
      const thief = browser.thief();
      for (const path of ['/become-bob', '/become-ann']) {
        await thief.post(path);
        browser.jar.set('SESSION', thief.jar.get('SESSION')!);
      }
      await browser.post('/become-bob');
      expect(thief.own).toEqual([]);
      expect((await sessionOf(store, 'bob')).device).toMatchObject({ bound: true });
      await clock.advance(10 * MINUTE + 1);
      await expectRenewed(browser);
      expect((await thief.get('/inside')).status).toBe(401);
    });

    it('is not bound by an offer of before', async () => {
      const other = await startDevices();
      const { path, challenge } = offerIn(await other.browser.send('POST', '/sign-in'))!;
      await other.browser.send('POST', '/become-bob');
      expect((await other.browser.register(path, challenge)).status).toBe(403);
    });
  });

  describe.each(['express', 'fastify'] as const)('the endpoints on %s are served beside', (platform) => {
    it.each(Object.keys(SURROUNDINGS))('%s', async (name) => {
      // The session is another application's, so that nothing stands in the way of its sign-in.
      const started = await signedIn(undefined, { platform });
      const { browser } = started;
      const offered = browser.thief();
      offered.jar.clear();
      const { path, challenge } = offerIn(await offered.send('POST', '/sign-in'))!;
      const { origin } = await startDevices(undefined, { platform, beside: started, ...SURROUNDINGS[name] });
      const here = browser.thief(origin);
      here.binding = { ...browser.binding! };
      for (let i = 0; i < 3; i++) expect((await here.sendRefresh()).status).toBe(403);
      const cross = await here.sendRefresh({ origin: 'https://evil.example' });
      expect(cross.headers['access-control-allow-origin']).toBeUndefined();
      const answer = await here.sendRefresh(here.proof());
      expect([answer.status, answer.headers['set-cookie']?.length]).toEqual([200, 1]);
      const proof = { 'secure-session-response': proofBy(newKey(), challenge, true) };
      expect((await here.send('POST', path, proof)).status).toBe(200);
    });
  });
}
