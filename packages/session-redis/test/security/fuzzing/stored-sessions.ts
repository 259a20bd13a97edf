import type { Redis } from 'ioredis';
import { KEYS, patternsOfKeys } from '../../support/documented.keys.js';

const PATTERNS = patternsOfKeys('(?:\\{\\d-\\d\\}:)?', {
  '<index name>': '(?:principal|team)',
  '<hash>': '[\\w-]{43}',
  '<group>': 'default',
  '<type>': '(?:created|id-changed|signed-in|deleted|expired)',
});

/** The fields of a session hash, beside the attributes, as docs/evidence/redis-data-model.md has them. */
const FIELDS: Readonly<Record<string, RegExp>> = {
  creationTime: /^\d{13}$/,
  lastAccessedTime: /^\d{13}$/,
  maxInactiveInterval: /^-?\d{1,10}$/,
  authenticatedAt: /^\d{13}$/,
  absoluteExpiry: /^\d{13}$/,
  size: /^\d+$/,
  bucket: /^\d{9}0000$/,
  device: /^\{[^]{0,198}\}$/,
  index: /^\[\[[^]*\]\]$/,
  ended: /^(?:deleted|expired)$/,
};
const ATTRIBUTE = /^sessionAttr:/;
const HASH = 'nest:session:sessions:<id>';
const SHADOW = 'nest:session:sessions:expires:<id>';

/** The keys of Redis under their documented names; others under their own. */
export async function keysByName(client: Redis): Promise<Map<string, string[]>> {
  const names = new Map<string, string[]>();
  for (const key of await client.keys('*')) {
    const name = PATTERNS.find(({ pattern }) => pattern.test(key))?.key ?? key;
    names.set(name, [...(names.get(name) ?? []), key]);
  }
  return names;
}

/** Every key and every field that the documentation does not have, and every live session without its data. */
export async function foreignIn(client: Redis): Promise<string[]> {
  const names = await keysByName(client);
  const foreign: string[] = [];
  for (const [name, keys] of names) {
    const types = await Promise.all(keys.map((key) => client.type(key)));
    // Keys may have gone since.
    foreign.push(...keys.filter((_, i) => types[i] !== 'none' && types[i] !== (KEYS as Record<string, string>)[name]));
  }
  for (const key of names.get(HASH) ?? []) {
    const hash = await client.hgetall(key);
    const fields = Object.entries(hash).filter(([field, value]) => !isDocumented(field, value));
    foreign.push(...fields.map(([field]) => `${field} of ${key}`));
  }
  const hashes = new Set(names.get(HASH));
  for (const shadow of names.get(SHADOW) ?? []) {
    const isWhole = hashes.has(shadow.replace(':expires:', ':'));
    if (!isWhole && (await client.exists(shadow)) === 1) foreign.push(`${shadow} without its hash`);
  }
  return foreign;
}

function isDocumented(field: string, value: string): boolean {
  if (!ATTRIBUTE.test(field)) return Object.hasOwn(FIELDS, field) && FIELDS[field]!.test(value);
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

export async function liveSessions(client: Redis): Promise<number> {
  return (await keysByName(client)).get(SHADOW)?.length ?? 0;
}
