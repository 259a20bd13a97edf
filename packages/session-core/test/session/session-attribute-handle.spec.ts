import { ManualClock } from '@nest-session/testing';
import { MapSessionRepository, type Session, sessionAttribute } from '../../src/index.js';

const Cart = sessionAttribute<string[]>('items', []);
const Theme = sessionAttribute<'dark' | 'light'>('theme');

const sessions = new MapSessionRepository({ clock: new ManualClock() });

async function stored(): Promise<Session> {
  const session = sessions.createSession();
  session.setAttribute('other', true);
  await session.save();
  return session;
}

async function loaded({ id }: Session): Promise<Session> {
  return (await sessions.findById(id))!;
}

describe('sessionAttribute()', () => {
  it('gets, sets and removes the attribute of its name', async () => {
    const session = await stored();
    expect([Theme.get(session), Theme.name]).toEqual([undefined, 'theme']);
    Theme.set(session, 'dark');
    await session.save();
    const again = await loaded(session);
    expect([Theme.get(again), again.getAttribute('theme')]).toEqual(['dark', 'dark']);
    Theme.set(again, undefined);
    expect(again.attributeNames).toEqual(['other']);
  });

  it.each(['new', 'stored'])(
    'updates the attribute of a %s session from its default, and then from its value',
    async (kind) => {
      const session = kind === 'new' ? sessions.createSession() : await stored();
      const add = (item: string) => (items: string[]) => {
        items.push(item);
        return items;
      };
      expect(await Cart.update(session, add('apple'))).toEqual(['apple']);
      expect(await Cart.update(session, add('pear'))).toEqual(['apple', 'pear']);
      await session.save();
      expect(Cart.get(await loaded(session))).toEqual(['apple', 'pear']);
      expect(Cart.get(await stored())).toEqual([]);
    },
  );

  it('loses no update of two requests at once', async () => {
    const session = await stored();
    const requests = [await loaded(session), await loaded(session)];
    await Promise.all(requests.map((each, i) => Cart.update(each, (items) => [...items, `of ${i}`])));
    expect(Cart.get(await loaded(session)).toSorted()).toEqual(['of 0', 'of 1']);
  });

  it('refuses changes of the default, which would not be saved', () => {
    const Address = sessionAttribute('address', { lines: [''], country: { code: 'de' } });
    const address = Address.get(sessions.createSession());
    expect(() => address.lines.push('secret')).toThrow(/not extensible|read only/);
    expect(() => (address.country.code = 'fr')).toThrow(/not extensible|read only/);
  });

  it('has the default that it was made with, and never starts a session for it', () => {
    const items = ['apple'];
    const Started = sessionAttribute('items', items);
    items.push('pear');
    const session = sessions.createSession();
    expect(Started.get(session)).toEqual(['apple']);
    expect(session.attributeNames).toEqual([]);
  });

  it('saves an object that was read and changed in place', async () => {
    const session = await stored();
    Cart.set(session, ['apple']);
    await session.save();
    const again = await loaded(session);
    Cart.get(again).push('pear');
    await again.save();
    expect(Cart.get(await loaded(session))).toEqual(['apple', 'pear']);
  });
});
