import { LeakGuard } from '@nest-session/test-infrastructure';
import { SharedUserErasure } from '../../src/erasure/shared-user-erasure.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { SharedScripts } from '../../../session-spring/src/scripts/shared/shared.scripts.js';
import { SharedKeys } from '../../../session-spring/src/keys/spring-keys.js';
import { SPRING_PRINCIPAL_NAME } from '../../../session-spring/src/values/spring-principal.js';
import { SpringWriter } from '../../../session-spring/test/support/spring-writer.js';
import { exactDump } from '../../../session-redis/test/support/exact.dump.js';
import { Store, updateOf } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const partitions = new SessionPartitions('spring:session:nest', 1, { holds: 'shared-sessions' });

let store: Store;
beforeEach(async () => (store = await Store.open()));
afterEach(() => store.close());

it('the erasure of a user beside Spring finds each session, however often all of them are rotated meanwhile', async () => {
  const scripts = new SharedScripts(store.client, new SharedKeys('spring:session', partitions.all[0]!, 0));
  const spring = new SpringWriter(store.client);
  const create = (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, () => spring.create({ [SPRING_PRINCIPAL_NAME]: name })));
  await create(1500, 'otto');
  let ids = await create(20, 'ann');
  const rotations: Promise<unknown>[] = [];
  const rotate = (id: string) => {
    const newId = store.id();
    // Redis gets it before the next call of the erasure.
    rotations.push(scripts.change(updateOf(id, { newId }), { before: undefined, after: undefined }));
    return newId;
  };
  // As often as the scan of the sessions tells of its progress.
  const onProgress = () => void (rotations.length < 600 && (ids = ids.map(rotate)));
  const options = { isRehearsal: false, signal: new AbortController().signal, onProgress };
  const erasure = new SharedUserErasure(store.client, partitions, 'ann', options);
  expect(await erasure.run()).toMatchObject({ live: 20 });
  await Promise.all(rotations);
  for (const id of ids) expect(await store.client.exists(spring.session(id))).toBe(0);
  expect(await store.client.exists(spring.index('ann'))).toBe(0);
});

it.each(['ann', 'Ada Lovelace'])(
  'the erasure of %s beside Spring removes what is noted of who signed in, also beside the session of another',
  async (name) => {
    const keys = new SharedKeys('spring:session', partitions.all[0]!, 0);
    const spring = new SpringWriter(store.client);
    const [theirs, gone, others] = [
      await spring.create({ [SPRING_PRINCIPAL_NAME]: 'otto' }),
      store.id(),
      await spring.create({ [SPRING_PRINCIPAL_NAME]: 'otto' }),
    ];
    await store.client.set(keys.signedIn(others), '1000 otto ann', 'PX', 60_000);
    await store.client.rpush(keys.signedIn(store.id()), 'planted');
    const before = await exactDump(store.client);
    // Spring has signed in somebody else, or has removed the session.
    for (const id of [theirs, gone]) await store.client.set(keys.signedIn(id), `1000 ${name}`, 'PX', 60_000);
    const options = { isRehearsal: false, signal: new AbortController().signal, onProgress: () => undefined };
    await new SharedUserErasure(store.client, partitions, name, options).run();
    expect(await exactDump(store.client)).toEqual(before);
  },
);

it('the erasure of a user beside Spring finds a session that Spring has expired, and one whose name only Spring can read', async () => {
  const spring = new SpringWriter(store.client);
  const expired = 'org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED';
  const context = {
    '@class': 'org.springframework.security.core.context.SecurityContextImpl',
    authentication: {
      '@class': 'com.example.Token',
      authenticated: true,
      principal: { '@class': 'com.example.Account' },
    },
  };
  const marked = await spring.create({ [SPRING_PRINCIPAL_NAME]: 'ann', [expired]: true });
  const [listed, other] = [
    await spring.create({ SPRING_SECURITY_CONTEXT: context }),
    await spring.create({ SPRING_SECURITY_CONTEXT: context }),
  ];
  await store.client.sadd(spring.index('ann'), JSON.stringify(listed));
  const options = { isRehearsal: false, signal: new AbortController().signal, onProgress: () => undefined };
  expect(await new SharedUserErasure(store.client, partitions, 'ann', options).run()).toMatchObject({
    live: 2,
    ended: 0,
  });
  const all = [marked, listed, other].map((id) => store.client.exists(spring.session(id)));
  expect(await Promise.all(all)).toEqual([0, 0, 1]);
});
