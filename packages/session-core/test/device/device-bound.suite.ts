import { Controller, Get, Post } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { eventually } from '@nest-session/testing';
import { Authenticated, CsrfGuard, CsrfToken, Session, type SessionModuleOptions } from '../../src/index.js';
import { DeviceBrowser } from './device.browser.js';
import { bound, type Devices, heard, MINUTE } from './device.app.js';

@Controller()
class TokenRoutes {
  @Get('token')
  token(@CsrfToken() token: string) {
    return token;
  }

  @Post('in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('pay')
  @Authenticated()
  pay() {
    return 'paid';
  }
}

/** What bound sessions do. */
export function describeBoundSessions({ startDevices, signedIn }: Devices): void {
  describe.each(['express', 'fastify'] as const)('a bound session on %s', (platform) => {
    it('is offered at the sign-in, registered and proven', async () => {
      const { browser } = await startDevices(undefined, { platform });
      expect((await browser.post('/sign-in')).status).toBe(201);
      expect(browser.own).toEqual(['register 200']);
      expect([...browser.jar.keys()].toSorted()).toEqual(['SESSION', 'SESSION-device']);
      expect(JSON.parse((await browser.get('/who')).body)).toMatchObject({
        name: 'ann',
        device: { algorithm: 'ES256' },
      });
      expect(JSON.parse((await browser.get('/who')).body)).toMatchObject({ device: { bound: true } });
      expect(JSON.parse((await browser.get('/list-devices')).body)).toMatchObject([
        { bound: true, algorithm: 'ES256' },
      ]);
      expect((await browser.get('/money')).body).toBe('money');
      await eventually(() => expect(bound).toEqual(['session.bound ann nest-session.principal']));
      expect(heard).toEqual([]);
    });

    it('is renewed when the cookie has run out, with a challenge that came before', async () => {
      const { browser } = await startDevices(undefined, { platform });
      await browser.post('/sign-in');
      await browser.get('/who');
      for (let round = 1; round <= 3; round++) {
        browser.jar.delete('SESSION-device');
        expect((await browser.get('/inside')).body).toBe('in');
      }
      expect(browser.own).toEqual(['register 200', 'refresh 200', 'refresh 200', 'refresh 200']);
      expect(browser.jar.has('SESSION-device')).toBe(true);
    });

    it('opens nothing for who has copied the session cookie', async () => {
      const { browser } = await signedIn(undefined, { platform });
      const thief = browser.thief();
      thief.jar.delete('SESSION-device');
      const seen = await thief.get('/inside');
      expect([seen.status, JSON.parse(seen.body)]).toEqual([
        401,
        expect.objectContaining({ reason: 'device-proof-missing' }),
      ]);
      expect(JSON.parse((await thief.get('/who')).body)).toEqual({ name: null, device: null });
      expect((await thief.get('/money')).status).toBe(401);
      expect(heard).toContain('missing-proof missing');
      expect((await browser.get('/money')).body).toBe('money');
      expect(browser.own).toEqual(['register 200']);
    });

    it('opens for who has copied the whole jar until the proof runs out, and no longer', async () => {
      const { browser, clock } = await signedIn(undefined, { platform });
      const thief = browser.thief();
      expect((await thief.get('/money')).body).toBe('money');
      await clock.advance(10 * MINUTE);
      expect((await thief.get('/money')).status).toBe(401);
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('only reports what is missing unless it is enforced', async () => {
      const { browser } = await signedIn({}, { platform });
      const thief = browser.thief();
      thief.jar.delete('SESSION-device');
      expect((await thief.get('/inside')).body).toBe('in');
      expect((await thief.get('/money')).body).toBe('money');
      expect(heard).toEqual(['missing-proof missing']);
    });

    it('opens without a proof for a route that asks for none', async () => {
      const { browser } = await signedIn(undefined, { platform });
      const thief = browser.thief();
      thief.jar.delete('SESSION-device');
      expect(JSON.parse((await thief.get('/landing')).body)).toEqual({ name: 'ann' });
    });

    it('is left by a new sign-in without a proof, and the old one cannot be renewed in its place', async () => {
      const { browser, clock } = await signedIn(undefined, { platform });
      const old = browser.binding!;
      browser.binding = undefined;
      browser.jar.delete('SESSION-device');
      expect((await browser.post('/sign-in')).status).toBe(201);
      expect(browser.own).toEqual(['register 200', 'register 200']);
      await browser.get('/who');
      await clock.advance(2 * MINUTE);
      expect((await browser.get('/money')).body).toBe('money');
      const now = browser.binding;
      browser.binding = old;
      await browser.refresh();
      expect(browser.binding).toBeUndefined();
      browser.binding = now;
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('leaves its place to a new sign-in of its user, and to nobody else', async () => {
      const session: SessionModuleOptions = { maxSessions: { perPrincipal: 1, whenReached: 'refuse' } };
      const { browser, store } = await signedIn(undefined, { platform, session });
      browser.binding = undefined;
      browser.jar.delete('SESSION-device');
      expect((await browser.send('GET', '/inside')).status).toBe(401);
      expect((await browser.thief(browser.origin).send('POST', '/become-bob')).status).toBe(201);
      expect(await store.countByIndex('principal', 'ann')).toBe(1);
      expect((await browser.post('/sign-in')).status).toBe(201);
      expect(await store.countByIndex('principal', 'ann')).toBe(1);
      expect((await new DeviceBrowser(browser.origin).post('/sign-in')).status).toBe(409);
      await browser.get('/who');
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('is named as what is missing where a CSRF token cannot be that of the session', async () => {
      const providers = [{ provide: APP_GUARD, useExisting: CsrfGuard }];
      const { browser, clock } = await startDevices(undefined, { platform, controllers: [TokenRoutes], providers });
      const post = (path: string, token: string) => browser.post(path, { 'x-csrf-token': token });
      expect((await post('/in', (await browser.get('/token')).body)).status).toBe(201);
      const { body: token } = await browser.get('/token');
      expect((await post('/pay', token)).body).toBe('paid');
      browser.binding = undefined;
      browser.jar.delete('SESSION-device');
      await clock.advance(MINUTE);
      expect(JSON.parse((await post('/pay', token)).body)).toMatchObject({ reason: 'device-proof-missing' });
      expect((await post('/in', (await browser.get('/token')).body)).status).toBe(201);
    });

    it('is followed by another at a sign-in with a proof, offered in its response', async () => {
      const { browser, clock } = await signedIn(undefined, { platform });
      const old = browser.binding!;
      await browser.post('/sign-in');
      expect(browser.own).toEqual(['register 200', 'register 200']);
      expect(browser.binding!.id).not.toBe(old.id);
      await browser.get('/who');
      await clock.advance(MINUTE);
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('ends with a sign-out, with or without a proof', async () => {
      for (const isProven of [true, false]) {
        const { browser, store } = await signedIn(undefined, { platform });
        const copy = browser.thief();
        if (!isProven) {
          browser.binding = undefined;
          browser.jar.delete('SESSION-device');
        }
        expect((await browser.post('/sign-out')).status).toBe(201);
        expect([...browser.jar.keys()].filter((name) => !name.endsWith('csrf'))).toEqual([]);
        expect(await store.countByIndex('principal', 'ann')).toBe(0);
        expect(JSON.parse((await copy.get('/who')).body)).toEqual({ name: null, device: null });
      }
    });

    it('needs no proof on a path that is excluded, and below it, and on no other', async () => {
      const { browser } = await signedIn({ mode: 'enforce', exclude: ['/who'] }, { platform });
      browser.binding = undefined;
      browser.jar.delete('SESSION-device');
      for (const path of ['/who', '/who?a=1', '/who/deep']) await browser.get(path);
      expect(JSON.parse((await browser.get('/who')).body)).toMatchObject({ name: 'ann' });
      expect(heard).toEqual([]);
      await browser.get('/whole');
      expect((await browser.get('/inside')).status).toBe(401);
      expect(heard).toContain('missing-proof missing');
    });

    it('cannot be unbound by an attribute whose name a client may choose', async () => {
      const { browser, log } = await signedIn(undefined, { platform });
      expect((await browser.post('/lose')).status).toBe(500);
      expect(log.matching(/is the browser that the session is bound to/)).toHaveLength(1);
      expect((await browser.get('/money')).body).toBe('money');
    });

    it('may be bound again once another user has it who did not sign in at a kiosk', async () => {
      const { browser } = await startDevices(undefined, { platform });
      await browser.post('/kiosk');
      await browser.get('/who');
      expect(browser.own).toEqual([]);
      await browser.post('/become-bob');
      await browser.get('/who');
      expect(browser.own).toEqual(['register 200']);
    });

    it('keeps its binding through a rotation', async () => {
      const { browser } = await signedIn(undefined, { platform });
      const id = browser.jar.get('SESSION');
      await browser.post('/rotate');
      expect(browser.jar.get('SESSION')).not.toBe(id);
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/money')).body).toBe('money');
      expect(browser.own).toEqual(['register 200', 'refresh 200']);
    });

    it('loads again when another site has led there, and then with its proof', async () => {
      const { browser } = await signedIn(undefined, { platform });
      browser.jar.delete('SESSION-device');
      const outside = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
      const page = await browser.get('/inside?a=1', outside);
      expect([page.status, page.headers.refresh]).toEqual([200, '1;url=/inside?a=1']);
      expect(page.body).toContain('location.reload()');
      expect((await browser.get('/inside?a=1')).body).toBe('in');
      browser.jar.delete('SESSION-device');
      expect((await browser.get('/inside', outside)).status).toBe(401);
    });

    it('answers an outage so that the browser keeps its binding', async () => {
      const { browser, store } = await signedIn(undefined, { platform });
      browser.jar.delete('SESSION-device');
      store.break('update');
      await browser.refresh();
      expect(browser.own).toEqual(['register 200', 'refresh 503']);
      store.repair();
      expect((await browser.get('/money')).body).toBe('money');
    });
  });
}
