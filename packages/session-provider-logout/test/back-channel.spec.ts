import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { IdentityProvider, nowInSeconds } from './support/identity.provider.js';
import { closeApps, LogoutApp, nameOf, PLATFORMS } from './support/logout.app.js';

LeakGuard.install();

let provider: IdentityProvider;
beforeAll(async () => {
  provider = await IdentityProvider.start();
});
afterAll(() => provider.stop());
afterEach(closeApps);

describe.each(PLATFORMS)('on %s, a logout token', (platform) => {
  const start = () => LogoutApp.start({ platform, issuers: [{ issuer: provider.issuer, audience: 'shop' }] });
  const claims = (sub: string, sid?: string, iat = nowInSeconds()) => ({ iss: provider.issuer, sub, sid, iat });

  it('with a `sid` ends the sessions of that login, and no others', async () => {
    const app = await start();
    const [tab, otherTab] = [await app.signedIn(claims('ann', 's-1')), await app.signedIn(claims('ann', 's-1'))];
    const [phone, bob] = [await app.signedIn(claims('ann', 's-2')), await app.signedIn(claims('bob', 's-3'))];
    const answer = await app.logOut(await provider.logoutToken({ sid: 's-1' }));
    expect([answer.status, answer.json(), answer.headers['cache-control']]).toEqual([200, { ended: 2 }, 'no-store']);
    expect(await Promise.all([tab, otherTab, phone, bob].map(nameOf))).toEqual([null, null, 'ann', 'bob']);
    await eventually(() => expect(app.told.provider).toHaveLength(1));
    expect(app.told.security).toMatchObject([
      { kind: 'provider-logout', by: provider.issuer, action: 'back-channel', sessions: 2, principalName: 'ann' },
    ]);
  });
});
