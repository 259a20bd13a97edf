import { beganAt, DEVICE_ATTRIBUTE, deviceIn, isWellFormedIdOrToken, shownText } from '@nest-session/core/internal';
import { parsed } from '@nest-session/redis-events/internal';
import { ATTRIBUTE_FIELD, ID_PATTERN, NO_KEY, type SessionPartitions } from '@nest-session/redis/internal';
import { columns, shownBytes, shownDuration, shownTime } from './shown.js';
import type { CommandCall, ExitCode } from './command.js';
import { type OpenStore, withSessions } from './store-access.js';
import { UsageError } from './usage.error.js';

export function run(call: CommandCall): Promise<ExitCode> {
  const id = call.argument!;
  return withSessions(call, async (store) => {
    const found = await read(store, id);
    if (!found) throw noSession(store, id);
    return call.output.report(found, linesOf(found));
  });
}

export function noSession({ shownId }: OpenStore, id: string): UsageError {
  if (id.startsWith('sha256:')) {
    return new UsageError(
      `${JSON.stringify(id)} is the fingerprint of a session id, and does not lead to it: give the whole id.`,
    );
  }
  const isId = isWellFormedIdOrToken(id);
  return new UsageError(`There is no session ${isId ? shownId(id) : JSON.stringify(id)}.`);
}

type Found = NonNullable<Awaited<ReturnType<typeof read>>>;

async function read({ connection, partitions, shownId }: OpenStore<SessionPartitions>, id: string) {
  if (!isWellFormedIdOrToken(id)) return undefined;
  const keys = partitions.of(id);
  const [hash, ttl, kept, rotated, epoch] = await connection.run(
    (client) =>
      Promise.all([
        client.hgetallBuffer(keys.session(id)),
        client.pttl(keys.shadow(id)),
        client.pttl(keys.session(id)),
        client.get(keys.forwardingMark(id)),
        client.hget(keys.epoch, 'at'),
        // Refuses a stray key in its place.
        client.get(keys.shadow(id)),
      ]),
    keys.prefix,
  );
  const forwardedTo = new RegExp(`^(?:(?:closed|left):)?(${ID_PATTERN})`).exec(rotated ?? '')?.[1];
  const names = Object.keys(hash);
  if (names.length === 0) {
    return forwardedTo === undefined ? undefined : { id: shownId(id), forwardedTo: shownId(forwardedTo) };
  }
  const text = (name: string) => hash[name]?.toString();
  const number = (name: string) => (text(name) === undefined ? undefined : Number(text(name)));
  const attributes = names.filter((name) => name.startsWith(ATTRIBUTE_FIELD)).sort();
  const ended = text('ended');
  const [creationTime, authenticatedAt] = [number('creationTime'), number('authenticatedAt')];
  const [lastAccessedTime, maxInactiveInterval] = [number('lastAccessedTime'), number('maxInactiveInterval')];
  // Requests find no other one.
  const isReadable = [creationTime, lastAccessedTime, maxInactiveInterval].every(Number.isFinite);
  const isOver = beganAt({ creationTime: creationTime ?? Infinity, authenticatedAt }) <= Number(epoch ?? -Infinity);
  return {
    id: shownId(id),
    live: ttl !== NO_KEY && ended === undefined && !isOver && isReadable,
    ...(isReadable ? {} : { unreadable: true }),
    ...(ended !== undefined && { ended }),
    creationTime,
    authenticatedAt,
    lastAccessedTime,
    maxInactiveInterval,
    absoluteExpiry: number('absoluteExpiry'),
    timeToLive: ttl < 0 ? undefined : ttl,
    keptFor: kept < 0 ? undefined : kept,
    encrypted: text('dataKey') !== undefined,
    device: parsed(text('device')),
    // Not that of an encrypted one.
    bound: deviceIn(parsed(text(ATTRIBUTE_FIELD + DEVICE_ATTRIBUTE))),
    attributes: attributes.map((name) => ({ name: name.slice(ATTRIBUTE_FIELD.length), bytes: hash[name]!.length })),
  };
}

function* linesOf(found: Found): Iterable<string> {
  if (!('attributes' in found)) return yield `${found.id} has another id now: ${found.forwardedTo}`;
  const { id, live, attributes, device, bound } = found;
  const shown = (at: number | undefined) => (at === undefined ? undefined : shownTime(at));
  const facts = {
    session: id,
    state: stateOf(found),
    created: shown(found.creationTime),
    'signed in': shown(found.authenticatedAt),
    'last used': shown(found.lastAccessedTime),
    'ends at latest': shown(found.absoluteExpiry),
    [live ? 'ends in' : 'data kept for']: shownDuration(live ? found.timeToLive : found.keptFor),
    device: device === null ? undefined : JSON.stringify(device),
    bound: bound?.bound ? `since ${shownTime(bound.since)}, ${bound.algorithm}` : undefined,
    encrypted: found.encrypted ? 'yes: the sizes are those of the encrypted texts' : undefined,
  };
  for (const [title, text] of Object.entries(facts)) if (text !== undefined) yield `${title.padEnd(16)}${text}`;
  yield '';
  const rows = attributes.map(({ name, bytes }) => [shownText(name), shownBytes(bytes)]);
  yield* columns(['ATTRIBUTE', 'SIZE'], rows, 'It has no attributes.');
}

function stateOf({ live, ended, unreadable }: Extract<Found, { live: boolean }>): string {
  if (live) return 'live';
  if (ended === undefined && unreadable) return UNREADABLE;
  return `ended: ${ended ?? NOT_RECORDED}`;
}

const UNREADABLE = 'unreadable: no request finds it, because it lacks a time. To mend it, run verify --repair';
// It has expired, or every session that began until a time is over.
const NOT_RECORDED = 'nobody has recorded the end yet';
