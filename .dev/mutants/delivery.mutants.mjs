// Mistakes in how events reach their handlers.
const onCluster = (test) => ({ killedBy: { spec: 'cluster-delivery.chaos.ts', test } });

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
    code: "for known in string.gmatch(differs and redis.call('HGET', KEYS[3], ARGV[1]) or '', '%S+') do",
    instead: "for known in string.gmatch('', '%S+') do",
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is recorded while an instance of the group wants it, whichever joins last',
    },
  },
  {
    mistake: 'A group that is created for later does not tell that it wants all events',
    in: 'create-group',
    code: "redis.call('HSET', KEYS[3], ARGV[1], 'created deleted expired id-changed')",
    instead: '',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is recorded for a group that was created for later, until it is removed',
    },
  },
  {
    mistake: 'An application creates sessions before its group has told what it wants',
    in: 'SessionEventConsumer.start',
    code: 'types.length > 0 ?',
    instead: 'false ?',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is handled by a handler of the event as soon as the application has started',
    },
  },
  {
    mistake: 'Broadcast handlers do not hear that creations were not recorded for them',
    in: 'SessionEventBroadcaster.#renewWish',
    code: "words[types.indexOf('created')] === 'begun' &&",
    instead: 'false &&',
    killedBy: {
      spec: 'wanted-events.spec.ts',
      test: 'is reported as a gap to broadcast handlers when it was not recorded for them',
    },
  },
  {
    mistake: 'The data of an ended session stays although nobody wants it',
    in: 'includes/end',
    code: "else redis.call('UNLINK', key) end",
    instead: "else redis.call('PEXPIRE', key, kept) end",
    killedBy: {
      spec: 'unwanted-ends.spec.ts',
      test: 'the data of a session goes at once when nobody wants its end: a deletion',
    },
  },
  {
    mistake: 'The data of a session goes although broadcast handlers want its end',
    in: 'includes/end-wanted',
    code: "is_wanted = is_wanted or redis.call('EXISTS', events .. ':wanted:broadcast:' .. how) == 1",
    instead: '',
    killedBy: {
      spec: 'unwanted-ends.spec.ts',
      test: 'the data of a session stays when somebody wants its end: a sweep, and only broadcast handlers do',
    },
  },
  {
    mistake: 'The data of a session goes before any group has told what it wants',
    in: 'includes/end-wanted',
    code: 'is_wanted = not wishes[1]',
    instead: 'is_wanted = false',
    killedBy: {
      spec: 'unwanted-ends.spec.ts',
      test: 'the data of a session stays when somebody wants its end: a deletion, and nobody has told what it wants',
    },
  },
  {
    mistake: 'A save that ends a session brings back a part of its data',
    in: 'save-session',
    code: 'if not is_wanted then return { reply, signs_in and now or nil } end',
    instead: '',
    killedBy: {
      spec: 'unwanted-ends.spec.ts',
      test: 'the data of a session goes at once when nobody wants its end: an interval of 0',
    },
  },
  {
    mistake: 'A claim that fails half-way has forgotten which ends it has recorded',
    in: 'includes/claim: claim',
    code: 'if not is_wanted then unwanted[#unwanted + 1] = key end',
    instead: "if not is_wanted then redis.call('DEL', key) unwanted[1] = key end",
    killedBy: {
      spec: 'unwanted-ends.spec.ts',
      test: 'and an end whose script fails before the data has gone is recorded once',
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
    mistake: 'A flood of creations pushes out the ends of sessions',
    in: 'trim-events',
    code: 'local found, scanned, last = find_room()',
    instead: 'local found, scanned, last',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'go before ends when there are too many events, the oldest first, wherever they stand',
    },
  },
  {
    mistake: 'A flood of changes of id pushes out the ends of sessions',
    in: 'trim-events',
    code: "local makes_room = { created = true, ['id-changed'] = true }",
    instead: 'local makes_room = { created = true }',
    killedBy: {
      spec: 'flood-of-events.spec.ts',
      test: 'a flood of changes of id, faster than its handler, does not push out the end of a session',
    },
  },
  {
    mistake: 'A group that creations make slow loses ends with them',
    in: 'trim-events',
    code: 'local late = math.max(grace, retention - grace)',
    instead: 'local late = retention',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'that a slow group has not read go a grace period early, so that it reads the ends in time',
    },
  },
  {
    mistake: 'An absent group loses creations before the retention',
    in: 'trim-events',
    code: 'if is_slower and has_active_instance(name) then',
    instead: 'if is_slower then',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'are kept for the retention for groups that only wait',
    },
  },
  {
    mistake: 'Broadcast handlers do not hear that creations have made room for ends',
    in: 'read-events',
    code: "if gone ~= known then return { 'thinned', gone } end",
    instead: '',
    killedBy: {
      spec: 'broadcast.spec.ts',
      test: 'is notified of creations that have made room for ends, and receives all ends',
    },
  },
  {
    mistake: 'Broadcast handlers hear of a gap for events that they do not want',
    in: 'SessionEventBroadcaster.#look',
    code: 'BATCH_SIZE, types, known)',
    instead: "BATCH_SIZE, ['created', 'id-changed'], known)",
    killedBy: {
      spec: 'broadcast.spec.ts',
      test: 'is notified of changes of id that have made room for ends, if it wants them',
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
    mistake: 'The dead letters of each partition take as much as those of the namespace may',
    in: 'eventRules',
    code: 'partitions.shareOf(events.deadLetters.maxSize)',
    instead: 'events.deadLetters.maxSize',
    killedBy: {
      spec: 'event-rules.spec.ts',
      test: 'with 8 partitions a failed event waits from 1 s to 5 min, and dead letters take 8388608 bytes of one, each 262144',
    },
  },
  {
    mistake: 'A handler that fails always pushes out the dead letters of others',
    in: 'includes/dead-letters: make_room',
    code: 'if not kind or bytes > sizes[kind] then',
    instead: 'if not kind or bytes < sizes[kind] then',
    killedBy: {
      spec: 'dead-letter-limits.spec.ts',
      test: 'poisonous sessions fill no more than the dead letters may take, and push out none of another handler',
    },
  },
  {
    mistake: 'Dead letters are removed unseen',
    in: 'includes/dead-letters: count_lost',
    code: "redis.call('HINCRBY', unreported_letters, group, 1)",
    instead: '',
    killedBy: {
      spec: 'dead-letter-limits.spec.ts',
      test: 'poisonous sessions fill no more than the dead letters may take, and push out none of another handler',
    },
  },
  {
    mistake: 'A discarded dead letter still takes room',
    in: 'includes/dead-letters: remove_letter',
    code: 'forget(kind_of(entry[2]), entry[1], bytes_of(entry[2]))',
    instead: '',
    killedBy: {
      spec: 'dead-letter-limits.spec.ts',
      test: 'what was replayed or discarded takes no room any more, and is not lost',
    },
  },
  {
    mistake: 'The data in a dead letter has any size',
    in: 'retry-or-dead-letter: bury',
    code: 'if size <= tonumber(ARGV[11]) then',
    instead: 'if true then',
    killedBy: {
      spec: 'dead-letter-limits.spec.ts',
      test: 'data that is too large is left out of the dead letter, which tells its size',
    },
  },
  {
    mistake: 'A dead letter stays for ever',
    in: 'trim-dead-letters',
    code: 'integer(now_in_ms() - ARGV[1])',
    instead: "'0'",
    killedBy: {
      spec: 'dead-letter-limits.spec.ts',
      test: 'a dead letter is removed after the retention, which is logged and counted',
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
    in: 'SessionEventTrimmer.checkGroups',
    code: 'this.#unread.delete(name)',
    instead: 'void name',
    killedBy: {
      spec: 'session-event.trimmer.spec.ts',
      test: 'the log names an unread group again that was removed and created anew, beside one that stays',
    },
  },
  {
    mistake: 'An aborted pass of the trimmer looks at the groups',
    in: 'SessionEventTrimmer.checkGroups',
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
    code: 'const event = await load;',
    instead: 'this.#positions.set(entry.partition, entry.position); const event = await load;',
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
  {
    mistake: 'With several partitions, an event is recorded without a signal',
    in: 'includes/signal',
    code: "redis.pcall('SPUBLISH', events, 'events')",
    instead: '',
    ...onCluster('an event reaches its handlers by a signal, in any partition and in the order of its session'),
  },
  {
    mistake: 'With several partitions, nobody is told of released events',
    in: 'release-events',
    code: "redis.pcall('SPUBLISH', KEYS[1], 'retries')",
    instead: '',
    ...onCluster('an event that an instance releases is taken over at once, in any partition'),
  },
  {
    mistake: 'A reader waits for the reply of a node that is down',
    in: 'PartitionReplies.round',
    code: 'await settledWithin(patience, Promise.all(asking));',
    instead: 'await Promise.all(asking);',
    ...onCluster(
      'events of other partitions are handled while a primary is down, and those of its own when it is back',
    ),
  },
  {
    mistake: 'While a node is down, every round waits for it as long as for a slow one',
    in: 'PartitionReplies.round',
    code: 'this.#asked.size > 0 ? PATIENCE_IN_OUTAGE : PATIENCE',
    instead: 'PATIENCE',
    killedBy: {
      spec: 'partition-replies.spec.ts',
      test: 'waits a shorter time for more partitions while one has not replied',
    },
  },
  {
    mistake: 'An event whose node is down keeps its place',
    in: 'SessionEventConsumer.constructor',
    code: ', { hasOtherNodes: group.hasSeveralPartitions }',
    instead: '',
    ...onCluster('events that wait for a primary that is down take no places from those of the others'),
  },
  {
    mistake: 'With one partition, events are read that cannot be acknowledged',
    in: 'ConcurrencyLimiter.constructor',
    code: 'hasOtherNodes ? PATIENCE : Infinity',
    instead: 'PATIENCE',
    killedBy: {
      spec: 'concurrency.limiter.spec.ts',
      test: 'keeps the place of an event for which no data come where no event is on another node',
    },
  },
  {
    mistake: 'A place becomes free while handlers run for long',
    in: 'ConcurrencyLimiter.run',
    code: 'handling.asksSince = Infinity;',
    instead: '',
    killedBy: {
      spec: 'concurrency.limiter.spec.ts',
      test: 'keeps the place of an event while its handlers run, however long',
    },
  },
  {
    mistake: 'After an outage of a node, more handlers run than there are places',
    in: 'ConcurrencyLimiter.run',
    code: 'if (this.#placed < this.size)',
    instead: 'if (this.#placed >= 0)',
    killedBy: {
      spec: 'concurrency.limiter.spec.ts',
      test: 'runs the handlers of two events at a time, in the order in which their data come',
    },
  },
  {
    mistake: 'Every instance cleans up every partition',
    in: 'take-cleanup',
    code: "if type(holder) == 'string' and holder ~= ARGV[1] then return 'taken' end",
    instead: '',
    ...onCluster('each partition is cleaned up by one of the instances in a period, and by any of them in the next'),
  },
  {
    mistake: 'A heartbeat confirms a subscription that was lost',
    in: 'PartitionSignals.#confirm',
    code: 'if (!heard.every((partition) => isSubscribed(client, partition.events))) return this.#lose(client);',
    instead: '',
    killedBy: {
      spec: 'partition-signals.spec.ts',
      test: 'a lost subscription is noticed with the next heartbeat, and nothing is confirmed until it is made again',
    },
  },
  {
    mistake: 'An instance takes no notice of the signal that every session has ended',
    in: 'SessionEpochsListener.constructor',
    code: "if (signal !== 'missed' && signal !== 'epoch') return;",
    instead: "if (signal !== 'missed') return;",
    ...onCluster('the end of every session is known to another instance by a signal, without a question at rest'),
  },
  {
    mistake: 'An instance asks for all epochs every second, with signals as well',
    in: 'SessionEpochsListener.#isDue',
    code: 'if (askedAt === undefined ||',
    instead: 'if (askedAt !== undefined ||',
    ...onCluster('the end of every session is known to another instance by a signal, without a question at rest'),
  },
  {
    mistake: 'An event waits for the next one after its partition could not be read',
    in: 'SignalledEventReader.#ask',
    code: 'entries === undefined || entries.length === share',
    instead: 'entries?.length === share',
    killedBy: {
      spec: 'unread-event.reader.spec.ts',
      test: 'a reader of 4 partitions reads what is in a partition after each failure there, without a signal',
    },
  },
  {
    mistake: 'Nothing is broadcast while one partition cannot be read',
    in: 'SessionEventBroadcaster.#look',
    code: 'const asks = !this.#reads.hasNews;',
    instead: 'const asks = true;',
    killedBy: {
      spec: 'partitioned-delivery.spec.ts',
      test: 'a broadcast delivers each event of the other partitions once while one cannot be read, and says so once',
    },
  },
  {
    mistake: 'A group is never told which handlers it has when that has failed once',
    in: 'SessionEventConsumer.#join',
    code: 'await this.#register().catch(() => undefined);',
    instead: '',
    killedBy: {
      spec: 'group-members.spec.ts',
      test: 'tells its group later which handlers it has when that has failed at first',
    },
  },
];
