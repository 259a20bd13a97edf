import { ManualClock } from '@nest-session/testing';
import { isCsrfTokenOf } from '../../src/csrf/csrf-token.js';
import { csrfTokenOf, MapSessionRepository, type Session } from '../../src/index.js';

const sessions = new MapSessionRepository({ clock: new ManualClock() });

async function stored(): Promise<Session> {
  const session = sessions.createSession();
  session.setAttribute('visits', 1);
  await session.save();
  return session;
}

async function loaded({ id }: Session): Promise<Session> {
  return (await sessions.findById(id))!;
}

describe('csrfTokenOf()', () => {
  it('starts a new session, and is valid once that is stored', async () => {
    const session = sessions.createSession();
    const token = await csrfTokenOf(session);
    await session.save();
    expect(isCsrfTokenOf(await loaded(session), token)).toBe(true);
  });

  it('gives valid tokens to all pages that load at once', async () => {
    const session = await stored();
    const requests = await Promise.all(Array.from({ length: 5 }, () => loaded(session)));
    const tokens = await Promise.all(requests.map((each) => csrfTokenOf(each)));
    for (const request of requests) await request.save();
    const later = await loaded(session);
    expect(tokens.map((token) => isCsrfTokenOf(later, token))).toEqual(tokens.map(() => true));
  });

  it('is drawn anew when the id changes, at once and for later requests', async () => {
    const session = await stored();
    const before = await csrfTokenOf(session);
    session.changeSessionId();
    expect(isCsrfTokenOf(session, before)).toBe(false);
    const after = await csrfTokenOf(session);
    expect(isCsrfTokenOf(session, after)).toBe(true);
    await session.save();
    const later = await loaded(session);
    expect([isCsrfTokenOf(later, before), isCsrfTokenOf(later, after)]).toEqual([false, true]);
  });

  it('cannot be planted by a request that is held open across a sign-in', async () => {
    const anonymous = await stored();
    const held = await loaded(anonymous);
    const login = await loaded(anonymous);
    login.changeSessionId();
    login.principalName = 'victim';
    await login.save();
    const planted = await csrfTokenOf(held);
    await held.save();
    const victim = await loaded(login);
    expect(isCsrfTokenOf(victim, planted)).toBe(false);
    expect(isCsrfTokenOf(victim, await csrfTokenOf(victim))).toBe(true);
  });

  it('is not valid for another session', async () => {
    const [one, other] = [await stored(), await stored()];
    expect(isCsrfTokenOf(other, await csrfTokenOf(one))).toBe(false);
    await csrfTokenOf(other);
    expect(isCsrfTokenOf(other, await csrfTokenOf(one))).toBe(false);
  });

  it('ends with the session', async () => {
    const session = await stored();
    const token = await csrfTokenOf(session);
    session.invalidate();
    expect(isCsrfTokenOf(session, token)).toBe(false);
  });

  it('is not what the store has, and no part of it', async () => {
    const session = await stored();
    const texts = [await csrfTokenOf(session), await csrfTokenOf(session)];
    const token = session.getRequiredAttribute<string>('nest-session.visitor.csrf').split(':')[1]!;
    for (const text of texts) expect(text).not.toContain(token);
    // The mask, too, is new each time.
    expect(texts[0]!.slice(0, 40)).not.toBe(texts[1]!.slice(0, 40));
  });
});
