import { createHash } from 'node:crypto';
import type { EncryptionKey } from '../../src/configuration/encryption.options.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { KeyRing } from '../../src/encryption/key-ring.js';
import { type PlainValues, SessionEncryption } from '../../src/encryption/session-encryption.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { MINUTE, type Store } from './store.fixture.js';

/** A key that follows from its id and seed. */
export function keyOf(id: string, seed = id): EncryptionKey {
  return { id, key: createHash('sha256').update(seed).digest('base64') };
}

function ringOf(...keys: readonly EncryptionKey[]): KeyRing {
  return new KeyRing(keys.map(({ id, key }) => ({ id, bytes: Buffer.from(key, 'base64') })));
}

export function encryptionOf(...keys: readonly EncryptionKey[]): SessionEncryption {
  return encryptionWith('read', ...keys);
}

export function encryptionWith(plainValues: PlainValues, ...keys: readonly EncryptionKey[]): SessionEncryption {
  return new SessionEncryption({ ring: ringOf(...keys), plainValues });
}

/** All instances in a store use one, as each wraps its client. */
const connections = new WeakMap<Store, RequestConnection>();

function connectionTo(store: Store): RequestConnection {
  const known =
    connections.get(store) ?? new RequestConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
  connections.set(store, known);
  return known;
}

/** An instance of an application with this encryption; undefined: none. */
export function instanceOf(
  store: Store,
  encryption?: SessionEncryption,
  options: RedisRepositoryOptions = {},
): RedisSessionRepository {
  const { scripts, partitions } = store;
  return new RedisSessionRepository(connectionTo(store), () => scripts, partitions, { ...options, encryption });
}

/** The session with these attributes, stored. */
export async function stored(repository: RedisSessionRepository, attributes: Record<string, unknown>) {
  const session = repository.createSession();
  for (const [name, value] of Object.entries(attributes)) session.setAttribute(name, value);
  await session.save();
  return session;
}

/** The session of an id, which exists. */
export async function load(repository: RedisSessionRepository, id: string) {
  const session = await repository.findById(id);
  if (!session) throw new Error('The session is not found');
  return session;
}

/** All attributes by name. */
export async function attributesOf(repository: RedisSessionRepository, id: string): Promise<Record<string, unknown>> {
  const session = await load(repository, id);
  return Object.fromEntries(session.attributeNames.toSorted().map((name) => [name, session.getAttribute(name)]));
}
