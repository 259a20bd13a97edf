import type { Session } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import fc from 'fast-check';
import type { EncryptionKey } from '../../src/configuration/encryption.options.js';
import { attributesOf, encryptionWith, instanceOf, keyOf, load, stored } from '../support/encryption.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());

const name = fc.constantFrom('a', 'b', 'c');
/** What JSON restores: -0 is 0 afterwards, and a key `__proto__` is a matter of the serializer. */
const json = fc
  .jsonValue()
  .map((each): unknown => JSON.parse(JSON.stringify(each)))
  .filter((each) => !JSON.stringify(each).includes('__proto__'));
const value = fc.oneof(json, fc.string({ unit: 'grapheme' })).map((each) => ({ each }));
const step = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), name, value }),
  fc.record({ kind: fc.constant('remove' as const), name }),
  fc.record({ kind: fc.constant('update' as const), name, value }),
  fc.record({ kind: fc.constant('set in a held session' as const), name, value }),
  fc.record({ kind: fc.constant('hold' as const) }),
  fc.record({ kind: fc.constant('change the id' as const) }),
  fc.record({ kind: fc.constant('next keys' as const) }),
);

/** The steps of the documentation: without keys, keys that are only known, then a rotation of keys after the other. */
class Deployment {
  #step = 0;

  next(): void {
    this.#step++;
  }

  /** Whether the oldest key must go: then every session has to be saved with the newer one. */
  get retiresKey(): boolean {
    return this.#step >= 2 && (this.#step - 2) % 3 === 2;
  }

  get repository() {
    if (this.#step === 0) return instanceOf(store);
    if (this.#step === 1) return instanceOf(store, encryptionWith('write', key(0)));
    const rotation = Math.floor((this.#step - 2) / 3);
    const [current, next] = [key(rotation), key(rotation + 1)];
    const keys = [[current], [current, next], [next, current]][(this.#step - 2) % 3]!;
    return instanceOf(store, encryptionWith('read', ...keys));
  }
}

const key = (number: number): EncryptionKey => keyOf(`key-${number}`);

it('any sequence of writes, changes of id and rotations of keys reads back what was written', async () => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    const deployment = new Deployment();
    const written: Record<string, unknown> = { a: 0 };
    let { id } = await stored(deployment.repository, written);
    let held: Session | undefined;
    for (const each of steps) {
      const session = await load(deployment.repository, id);
      switch (each.kind) {
        case 'set':
          session.setAttribute(each.name, (written[each.name] = each.value));
          break;
        case 'remove':
          session.removeAttribute(each.name);
          delete written[each.name];
          break;
        case 'update':
          await session.updateAttribute(each.name, (current) => {
            expect(current).toEqual(written[each.name]);
            return (written[each.name] = each.value);
          });
          break;
        case 'hold':
          held = session;
          break;
        case 'set in a held session':
          held?.setAttribute(each.name, (written[each.name] = each.value));
          if (held) expect(await held.save()).toBe('saved');
          else session.setAttribute(each.name, (written[each.name] = each.value));
          break;
        case 'change the id':
          id = session.changeSessionId();
          break;
        case 'next keys':
          if (deployment.retiresKey) {
            session.setAttribute('a', (written['a'] = 'saved again'));
            // Its instance is gone with the keys that it knew.
            held = undefined;
          }
          deployment.next();
      }
      expect(await session.save()).toBe('saved');
      expect(await attributesOf(deployment.repository, id)).toEqual(written);
    }
    await store.client.flushall();
  });
  await fc.assert(property, { numRuns: 100 });
});
