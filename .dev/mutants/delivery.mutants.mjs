// Mistakes in how events reach their handlers.
const SCRIPTS = 'packages/session-redis/src/scripts';
const DELIVERY = 'packages/session-redis/src/delivery';
const TESTS = 'packages/session-redis/test';

export const delivery = [
  {
    mistake: 'The id of an event follows from its position in the stream',
    file: `${DELIVERY}/session-event.loader.ts`,
    code: 'return toSessionEvent(entry, hash, this.#serializer);',
    instead: `const event = toSessionEvent(entry, hash, this.#serializer);
    return event && Object.defineProperty(event, 'id', { value: \`\${event.type}:\${entry.position}\` });`,
    killedBy: {
      file: `${TESTS}/delivery/session-event.groups.spec.ts`,
      test: 'is replayed for the group that failed and the handler that failed, with the same id and data',
    },
  },
  {
    mistake: 'A redelivery does not look which handlers have succeeded',
    file: `${DELIVERY}/event.delivery.ts`,
    code: 'done: [...new Set([...doneBefore(entry), ...namesIn(done)])],',
    instead: 'done: [],',
    killedBy: {
      file: `${TESTS}/delivery/retries.spec.ts`,
      test: 'of two handlers of an event, the one that fails three times runs four times, and the other once',
    },
  },
  {
    mistake: 'An event is acknowledged before it is handled',
    file: `${DELIVERY}/session-event.consumer.ts`,
    code: 'const failure = await this.#attempt(event);',
    instead: `await this.group.acknowledge(entry);
    const failure = await this.#attempt(event);`,
    killedBy: {
      file: `${TESTS}/delivery/retries.spec.ts`,
      test: 'an event that failed on one instance is tried again by any other of the group',
    },
  },
  {
    mistake: 'An instance that was slow handles again what it has finished while it took it over from itself',
    file: `${DELIVERY}/session-event.consumer.ts`,
    code: 'this.#acknowledged.add(nameOf(entry));',
    instead: '',
    killedBy: {
      file: `${TESTS}/delivery/lease.spec.ts`,
      test: 'an entry that its instance takes over from itself, and finishes before it hears so, is not handled again',
    },
  },
  {
    mistake: 'An instance takes back what another one has taken over',
    file: `${SCRIPTS}/renew-lease.lua`,
    code: 'pending_at(KEYS[1], ARGV[1], position, ARGV[2])',
    instead: 'pending_at(KEYS[1], ARGV[1], position)',
    killedBy: {
      file: `${TESTS}/scripts/delivery.scripts.spec.ts`,
      test: 'renew-lease keeps what is still in the hands of this instance, and takes nothing back',
    },
  },
  {
    mistake: 'An instance is removed together with what is pending with it',
    file: `${SCRIPTS}/remove-consumer.lua`,
    code: "if #pending > 0 then return 'pending' end",
    instead: '',
    killedBy: {
      file: `${TESTS}/delivery/session-event.trimmer.spec.ts`,
      test: 'forgets instances that ended without leaving their group, but none that has something unfinished',
    },
  },
  {
    mistake: 'An event that always fails is tried for ever',
    file: `${SCRIPTS}/settle-event.lua`,
    code: 'if attempts < tonumber(ARGV[7]) then',
    instead: 'if true then',
    killedBy: {
      file: `${TESTS}/scripts/delivery.scripts.spec.ts`,
      test: 'settle-event makes a dead letter of the last attempt, with the reason and a copy of the data, and is done with it',
    },
  },
  {
    mistake: 'Events are removed that a group has not read',
    file: `${SCRIPTS}/trim-events.lua`,
    code: 'local has_finished = not before(group.read, position)\n      and not (',
    instead: 'local has_finished = not (',
    killedBy: {
      file: `${TESTS}/delivery/session-event.trimmer.spec.ts`,
      test: 'an event stays as long as one of the groups has not read it, and its data with it',
    },
  },
  {
    mistake: 'A reader of what is broadcast is told nothing of what was removed unread',
    file: `${SCRIPTS}/read-events.lua`,
    code: "if before(position, trimmed) then return { 'gap', trimmed } end",
    instead: '',
    killedBy: {
      file: `${TESTS}/delivery/broadcast.spec.ts`,
      test: 'is told of the gap, once, when events were removed meanwhile, and hears of the later ones',
    },
  },
];
