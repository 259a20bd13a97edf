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
    mistake: 'A handler takes every attempt for the first',
    in: 'SessionEventConsumer.#attempt',
    code: 'this.loader.load(entry, failures + 1)',
    instead: 'this.loader.load(entry)',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'a handler is told which attempt it is, and log lines and dead letters name the event as it does',
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
    mistake: 'An instance that joins overrules what living instances with other handlers want',
    in: 'register-handlers',
    code: "if not differs or ARGV[5] == '1' then redis.call('HSET', KEYS[3], ARGV[1], ARGV[5]) end",
    instead: "redis.call('HSET', KEYS[3], ARGV[1], ARGV[5])",
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is recorded while an instance of the group wants it, whichever joins last',
    },
  },
  {
    mistake: 'A group that is created for later does not tell that it wants all events',
    in: 'create-group',
    code: "redis.call('HSET', KEYS[3], ARGV[1], 1)",
    instead: '',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is recorded for a group that was created for later, until it is removed',
    },
  },
  {
    mistake: 'An application creates sessions before its group has told what it wants',
    in: 'SessionEventConsumer.start',
    code: 'this.dispatcher.wantsCreated() ?',
    instead: 'false ?',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is handled by a handler of the event as soon as the application has started',
    },
  },
  {
    mistake: 'Broadcast handlers do not hear that creations were not recorded for them',
    in: 'SessionEventBroadcaster.#renewWish',
    code: "word === 'begun' &&",
    instead: 'false &&',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is reported as a gap to broadcast handlers when it was not recorded for them',
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
    code: 'local has_finished = not comes_before(group.read, position)\n      and not (',
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
  {
    mistake: 'Retries take every place',
    in: 'ConcurrencyLimiter.freeForRetries',
    code: 'this.size / 4',
    instead: 'this.size',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'retries take a quarter of the places of an instance, and new events the others',
    },
  },
  {
    mistake: 'The retries that run take no place',
    in: 'ConcurrencyLimiter.freeForRetries',
    code: 'share - retries',
    instead: 'share',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'retries take a quarter of the places of an instance, and new events the others',
    },
  },
  {
    mistake: 'The reason in a dead letter has any length',
    in: 'reasonOf',
    code: 'reason.slice(0, LONGEST_REASON)',
    instead: 'reason',
    killedBy: { spec: 'retries.spec.ts', test: 'the reason in a dead letter has at most 1,000 characters' },
  },
  {
    mistake: 'An event that has failed often counts as one that ends instances',
    in: 'toPendingEvent',
    code: 'deliveries - failures',
    instead: 'deliveries',
    killedBy: {
      spec: 'retries.spec.ts',
      test: 'an event that fails more often than instances may end over it is still retried',
    },
  },
  {
    mistake: 'Each partition keeps as many dead letters as the namespace may',
    in: 'eventRules',
    code: 'partitions.shareOf(DEAD_LETTERS)',
    instead: 'DEAD_LETTERS',
    killedBy: {
      spec: 'event-rules.spec.ts',
      test: 'with 8 partitions a failed event waits from 1 s to 5 min, and a partition keeps 1250 dead letters',
    },
  },
  {
    mistake: 'An instance with a short lease is taken for dead at once',
    in: 'livenessOf',
    code: 'Math.max(lease, 10_000)',
    instead: 'lease',
    killedBy: {
      spec: 'partitioned-delivery.spec.ts',
      test: 'takes an instance for dead after ten seconds without a sign of life, however short its lease is',
    },
  },
  {
    mistake: 'An instance with a long lease is removed before the lease has ended',
    in: 'SessionEventTrimmer.#checkGroup',
    code: 'Math.max(HOUR, 2 * lease)',
    instead: 'HOUR',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'instances that ended are removed only after two leases, however long these are',
    },
  },
  {
    mistake: 'A group that was removed is never named again when nobody reads it',
    in: 'SessionEventTrimmer.runOnce',
    code: 'this.#unread.delete(name)',
    instead: 'void name',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'the log names an unread group again that was removed and created anew',
    },
  },
  {
    mistake: 'An aborted pass of the trimmer looks at the groups',
    in: 'SessionEventTrimmer.runOnce',
    code: 'if (!signal?.aborted) await',
    instead: 'await',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'the log has nothing of an aborted pass, which removes nothing',
    },
  },
  {
    mistake: 'An event whose data cannot be read is never broadcast',
    in: 'SessionEventBroadcaster.#deliver',
    code: 'if (this.#stopping.signal.aborted) return;',
    instead: 'if (this.#stopping.signal.aborted) return; this.#positions.set(entry.partition, entry.position);',
    killedBy: { spec: 'broadcast.spec.ts', test: 'an instance broadcasts an event later whose data it could not read' },
  },
  {
    mistake: 'A gap begins with the latest of its partitions',
    in: 'SessionEventBroadcaster.#skip',
    code: 'Math.min',
    instead: 'Math.max',
    killedBy: {
      spec: 'partitioned-delivery.spec.ts',
      test: 'a broadcast reports a gap in several partitions once, before any later event',
    },
  },
  {
    mistake: 'The oldest unread event is that of the latest partition',
    in: 'oldestUnread',
    code: 'Math.min(...times)',
    instead: 'Math.max(...times)',
    killedBy: {
      spec: 'partitioned-delivery.spec.ts',
      test: 'SessionEventGroups sums up the state of a group over all partitions',
    },
  },
  {
    mistake: 'An instance claims up to its limit from each other one',
    in: 'claim-events',
    code: 'limit - #claimed',
    instead: 'limit',
    killedBy: {
      spec: 'delivery.scripts.spec.ts',
      test: 'claim-events returns no more events than requested when several instances have abandoned some',
    },
  },
  {
    mistake: 'A failure shortens the life of the data',
    in: 'retry-or-dead-letter: schedule_retry',
    code: "ARGV[9], 'GT'",
    instead: 'ARGV[9]',
    killedBy: {
      spec: 'delivery.scripts.spec.ts',
      test: 'retry-or-dead-letter keeps the data of an ended session for the retention after each attempt, not that of a live one',
    },
  },
];
