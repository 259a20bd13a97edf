// Mistakes in how events reach their handlers.
export const delivery = [
  {
    mistake: 'The id of an event follows from its position in the stream',
    in: 'SessionEventLoader.load',
    code: 'return toSessionEvent(',
    instead: `return ((...of: Parameters<typeof toSessionEvent>) => {
      const event = toSessionEvent(...of);
      return event && Object.defineProperty(event, 'id', { value: \`\${event.type}:\${entry.position}\` });
    })(`,
    killedBy: {
      spec: 'session-event-groups.spec.ts',
      test: 'is replayed for the failed group and handler only, with the same id and data',
    },
  },
  {
    mistake: 'A redelivery does not look which handlers have succeeded',
    in: 'toPendingEvent',
    code: '[...new Set([...doneBefore(entry), ...namesIn(done)])]',
    instead: '[]',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'of two handlers of an event, one that fails three times runs four times, and the other once',
    },
  },
  {
    mistake: 'An event is acknowledged before it is handled',
    in: 'SessionEventConsumer.#handle',
    code: 'const failure =',
    instead: 'await this.group.acknowledge(entry); const failure =',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'an event that failed on one instance is retried by any instance of the group',
    },
  },
  {
    mistake: 'An instance that was slow handles again what it has finished while it took it over from itself',
    in: 'SessionEventConsumer.#handle',
    code: 'this.#acknowledged.add(nameOf(entry));',
    instead: '',
    killedBy: {
      spec: 'lease.spec.ts',
      test: 'an event that its own instance claims again and finishes before the reply is not handled twice',
    },
  },
  {
    mistake: 'An instance takes back what another one has taken over',
    in: 'renew-lease',
    code: 'pending_at(KEYS[1], ARGV[1], position, ARGV[2])',
    instead: 'pending_at(KEYS[1], ARGV[1], position)',
    killedBy: {
      spec: 'delivery.scripts.spec.ts',
      test: 'renew-lease renews the events that this instance still owns, and claims none back',
    },
  },
  {
    mistake: 'An instance is removed together with what is pending with it',
    in: 'remove-consumer',
    code: "if #pending > 0 then return 'pending' end",
    instead: '',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'instances that ended without leaving their group are removed, unless they have pending events',
    },
  },
  {
    mistake: 'An event that always fails is tried for ever',
    in: 'retry-or-dead-letter',
    code: 'if attempts < tonumber(ARGV[6]) then',
    instead: 'if true then',
    killedBy: {
      spec: 'delivery.scripts.spec.ts',
      test: 'retry-or-dead-letter turns the last attempt into a dead letter with the reason and a copy of the data',
    },
  },
  {
    mistake: 'Events are removed that a group has not read',
    in: 'trim-events',
    code: 'local has_finished = not before(group.read, position)\n      and not (',
    instead: 'local has_finished = not (',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'an event is kept with its data while one group has not read it',
    },
  },
  {
    mistake: 'A reader of what is broadcast is told nothing of what was removed unread',
    in: 'read-events',
    code: "if before(position, trimmed) then return { 'gap', trimmed } end",
    instead: '',
    killedBy: {
      spec: 'broadcast.spec.ts',
      test: 'is notified of the gap once when events were removed, and receives the later events',
    },
  },
];
