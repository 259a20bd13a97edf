// Mistakes that no request shows, only the operation of an application: a cadence, the order of a shutdown, what is left
// behind, a recovery that is never noted, a secret in the log, a busy loop.
const inSpec = (spec, test) => ({ killedBy: { spec: `${spec}.spec.ts`, test } });

const LEASE = inSpec('lease', 'a lease is renewed every third of its length, and not after the instance has stopped');
const AT_REST = inSpec('idle', 'an instance at rest sends only its polls, with 1 partitions');
const ORDER = inSpec(
  'shutdown-order',
  'shutdown closes the sources of work first, and the connections of work in flight last',
);
const LEFTOVERS = inSpec('shutdown-order', 'shutdown leaves no timer and no listener, and logs nothing');
const REQUESTS = inSpec(
  'request.connection',
  'commands leave no listener on their connection, and each is sent once per outage',
);
const TIMEOUTS = inSpec(
  'request.connection',
  'commands fail when their own timeout has passed, with one timer for all, which none outlives',
);
const RIGHTS = inSpec('rights', 'a process that only serves requests needs all documented rights and no others');

const EMITTER = inSpec(
  'event-emitter.bridge',
  'finds an EventEmitter of another copy of the package, renamed by a bundler, and no other provider',
);

export const operation = [
  {
    mistake: 'A lease is renewed after it has ended',
    in: 'SessionEventConsumer.constructor',
    code: 'group.rules.lease / 3',
    instead: 'group.rules.lease * 3',
    ...LEASE,
  },
  {
    mistake: 'A lease is renewed without a pause',
    in: 'SessionEventConsumer.constructor',
    code: 'group.rules.lease / 3',
    instead: 'group.rules.lease / 3000',
    ...LEASE,
  },
  {
    mistake: 'Leases are renewed by an instance that has ended',
    in: 'SessionEventConsumer.#end',
    code: 'await this.#renewals.stop();',
    instead: '',
    ...LEASE,
  },
  {
    mistake: 'What is due to be tried again is asked for without a pause',
    in: 'SessionEventConsumer.#pass',
    code: 'performance.now() + this.options.pollInterval',
    instead: 'performance.now()',
    ...AT_REST,
  },
  {
    mistake: 'A read of what is broadcast waits a millisecond for a second',
    in: 'session-event.broadcaster: LONGEST_WAIT',
    code: '1000',
    instead: '1',
    ...AT_REST,
  },
  {
    mistake: 'Events that cannot be read are asked for again at once',
    in: 'SessionEventConsumer.#run',
    code: 'await pause(PAUSE_AFTER_ERROR, undefined, { signal }).catch(() => undefined);',
    instead: '',
    ...inSpec('recovery', 'pauses before it asks again: xreadgroup'),
  },
  {
    mistake: 'Nobody is told that what has failed succeeds again',
    in: 'FailureLog.succeeded',
    code: 'if (this.#isFailing) logger.log(this.recovered);',
    instead: '',
    ...inSpec('recovery', 'logs the failure once and the recovery once'),
  },
  {
    mistake: 'Each request after an outage says that the store replies again',
    in: 'StoreFailureLog.succeeded',
    code: 'this.#failures = 0;',
    instead: '',
    ...inSpec('recovery', 'a failing store is logged once, and its recovery once, in each outage'),
  },
  {
    mistake: 'A connection that was closed during an outage keeps the recovery from being said',
    in: 'OutageLog.watch',
    code: "client.on('end', () => void this.#mend(client));",
    instead: '',
    ...inSpec(
      'redis.connections',
      'the end of an outage is logged although one connection was closed for good during it',
    ),
  },
  {
    mistake: 'A connection that notices an outage late reports it once more',
    in: 'OutageLog.watch',
    code: "client.on('close', () => this.#broken.add(client));",
    instead: '',
    ...inSpec('redis.connections', 'an outage that one connection notices late is logged once'),
  },
  {
    mistake: 'Each outage leaves a listener',
    in: 'RequestConnection.#nextReady',
    code: "client.off('end', onEnd);",
    instead: '',
    ...REQUESTS,
  },
  {
    mistake: 'A command leaves after its call has timed out',
    in: 'RequestConnection.#giveUp',
    code: 'this.#writes.flush();',
    instead: '',
    ...inSpec(
      'request.connection',
      'a command that times out in the turn in which it is sent has left before it fails',
    ),
  },
  {
    mistake: 'A call that waited for a connection and timed out is sent when there is one',
    in: 'RequestConnection.#send',
    code: 'if (!this.#calls.has(call)) return;',
    instead: '',
    ...inSpec(
      'request.connection',
      'a command without a connection fails within the command timeout and is not sent later',
    ),
  },
  {
    mistake: 'A call that has timed out goes on to its next command',
    in: 'RequestConnection.#proceed',
    code: "if (!this.#calls.has(call)) throw new SessionStoreError('The call has failed');",
    instead: '',
    ...inSpec('request.connection', 'a call that has failed sends no further command'),
  },
  {
    mistake: 'Each command leaves in a write of its own',
    in: 'WriteBatch.#open',
    code: 'stream.cork();',
    instead: '',
    ...inSpec('request.connection', 'commands of one turn of the event loop leave in one write'),
  },
  {
    mistake: 'A call times out before arrived replies are read',
    in: 'CallDeadlines.#start',
    code: 'setImmediate(() => this.#expireUntil(now));',
    instead: 'this.#expireUntil(now);',
    ...inSpec(
      'request.connection',
      'a reply that arrived while the event loop was blocked is used, although the timeout has passed',
    ),
  },
  {
    mistake: 'The time of a call runs before its command leaves',
    in: 'CallDeadlines.#begin',
    code: 'const turn = { deadline: Infinity }; setImmediate(() => { turn.deadline = performance.now() + this.timeout;',
    instead: 'const turn = { deadline: performance.now() + this.timeout }; setImmediate(() => {',
    ...inSpec(
      'request.connection',
      'a command gets its reply although a handler blocks the event loop before the command leaves',
    ),
  },
  {
    mistake: 'Calls time out together with the oldest',
    in: 'CallDeadlines.#expireUntil',
    code: 'if (deadline > now) break;',
    instead: '',
    ...TIMEOUTS,
  },
  {
    mistake: 'The timer of calls outlives them',
    in: 'CallDeadlines.delete',
    code: 'if (this.#turns.size === 0) this.#stop();',
    instead: '',
    ...TIMEOUTS,
  },
  {
    mistake: 'An instance that ends goes on to be given events',
    in: 'UnreadEventReader.close',
    code: 'closeConnection(this.client)',
    instead: 'Promise.resolve()',
    ...ORDER,
  },
  {
    mistake: 'A read that Redis executes late makes an instance that has ended a member again',
    in: 'SessionEventConsumer.#end',
    code: 'await silent;',
    instead: '',
    ...inSpec('shutdown', 'shutdown leaves the group for good when Redis executes a read after the instance has left'),
  },
  {
    mistake: 'The connections are closed before the events are settled',
    in: 'RedisSessionLifecycle.onApplicationShutdown',
    code: "if (background.status === 'ready') await this.#finish(this.consumer.drain());",
    instead: '',
    ...ORDER,
  },
  {
    mistake: 'What is broadcast is read on when an instance has ended',
    in: 'RedisSessionLifecycle.beforeApplicationShutdown',
    code: 'this.broadcaster.stop();',
    instead: '',
    ...LEFTOVERS,
  },
  {
    mistake: 'The cleanup goes on when an instance has ended',
    in: 'RedisSessionLifecycle.beforeApplicationShutdown',
    code: 'this.#job.stop(), this.listener.stop()',
    instead: 'this.listener.stop()',
    ...LEFTOVERS,
  },
  {
    mistake: 'The heartbeat goes on when a listener has stopped',
    in: 'KeyspaceNotificationListener.stop',
    code: 'clearInterval(this.#heartbeat);',
    instead: '',
    ...LEFTOVERS,
  },
  {
    mistake: 'What expires of everybody is heard for ever',
    in: 'ExpiredSessionListener.#report',
    code: 'void this.#substitute?.close();',
    instead: '',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions receives the expirations of all keys only until its own arrive',
    ),
  },
  {
    mistake: 'Claims in flight are cut off when an instance ends',
    in: 'ExpiredSessionListener.stop',
    code: 'Promise.all([this.notifications.stop(), this.#claiming, this.#sweeping])',
    instead: 'this.notifications.stop()',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions stops only after the replies to its claims',
    ),
  },
  {
    mistake: 'What expired while others had switched notifications off is looked for by nobody',
    in: 'ListenerSubscription.#conclude',
    code: "(before === 'silent' && heard)",
    instead: 'false',
    ...inSpec('keyspace-notification.listener', 'a gap is reported when others have switched notifications on'),
  },
  {
    mistake: 'Notifications are proved at every heartbeat',
    in: 'ListenerSubscription.check',
    code: 'this.#nextCheck = performance.now() + this.interval',
    instead: 'this.#nextCheck = 0',
    ...inSpec(
      'keyspace-notification.listener',
      'sends one ping per heartbeat, and a proof no more often than configured',
    ),
  },
  {
    mistake: 'The log shows the token of a session whose access was not recorded',
    in: 'SessionTouch',
    code: 'session.shownId',
    instead: 'session.id',
    ...inSpec('secrets-in-logs', 'when foreign keys are in place of all keys'),
  },
  {
    mistake: 'The log shows the token of a session whose event a handler failed',
    in: 'SessionEventDispatcher.#callAll',
    code: 'this.#shown(event)',
    instead: 'event.id',
    ...inSpec('secrets-in-logs', 'when handlers fail'),
  },
  {
    mistake: 'A trim needs a right that is not documented',
    in: 'trim-events',
    code: "redis.call('UNLINK', unpack(data))",
    instead: "redis.call('EXPIRE', data[1], 0)",
    ...RIGHTS,
  },
  {
    mistake: 'Background work makes many calls at once',
    in: 'BackgroundLimiter.run',
    code: 'this.#last.then(() => this.#take(call))',
    instead: 'this.#take(call)',
    ...inSpec('background.limiter', 'the limiter of background work runs one call at a time, in their order'),
  },
  {
    mistake: 'Background work leaves no pause between its calls',
    in: 'BackgroundLimiter.#take',
    code: 'if (left > 0) await pause(left);',
    instead: '',
    ...inSpec(
      'background.limiter',
      'the limiter of background work leaves at least a millisecond between the end of a call and the next one',
    ),
  },
  {
    mistake: 'A sweep claims beside other background work',
    in: 'SessionExpirationSweeper.#sweep',
    code: 'this.limiter.run(() => this.scripts.claimExpired(bucket.partition, batch, bucket.minute))',
    instead: 'this.scripts.claimExpired(bucket.partition, batch, bucket.minute)',
    ...inSpec('background.limiter', 'an instance sweeps, claims and trims in one call at a time'),
  },
  {
    mistake: 'Trimming runs beside other background work',
    in: 'SessionEventTrimmer.#trim',
    code: 'this.limiter.run(() => this.scripts.trim(partition, limits, BATCH_SIZE))',
    instead: 'this.scripts.trim(partition, limits, BATCH_SIZE)',
    ...inSpec('background.limiter', 'an instance sweeps, claims and trims in one call at a time'),
  },
  {
    mistake: 'A scan that begins in the middle of a bucket leaves out the beginning',
    in: 'pagesFromAnywhere',
    code: 'yield* pages(read, second);',
    instead: '',
    ...inSpec(
      'session-expiration.sweeper',
      'begins each scan of a large bucket at another place, and still claims every session',
    ),
  },
  {
    mistake: 'All instances scan a bucket in the same order',
    in: 'pagesFromAnywhere',
    code: 'yield* pages(read, `${randomInt(HIGHEST_CURSOR)}`);',
    instead: '',
    ...inSpec(
      'session-expiration.sweeper',
      'begins each scan of a large bucket at another place, and still claims every session',
    ),
  },
  {
    mistake: 'A listener collects any number of sessions',
    in: 'ExpiredSessionListener.#collect',
    code: 'this.#due.size >= MOST_COLLECTED',
    instead: 'this.#due.size < 0',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions collects 10,000 at most, and finds the others with a sweep',
    ),
  },
  {
    mistake: 'A listener forgets what it has not collected',
    in: 'ExpiredSessionListener.#collect',
    code: 'this.#hasMissed = true;',
    instead: '',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions collects 10,000 at most, and finds the others with a sweep',
    ),
  },
  {
    mistake: 'A listener that stops claims all that it has collected',
    in: 'ExpiredSessionListener.#claim',
    code: '&& !this.#stopping.signal.aborted',
    instead: '',
    ...inSpec('expired-session.listener', 'the listener of expired sessions begins no claim after it has stopped'),
  },
  {
    mistake: 'A listener that stops leaves the timer of its next claim',
    in: 'ExpiredSessionListener.stop',
    code: 'clearTimeout(this.#timer);',
    instead: '',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions leaves no timer when it stops while it collects',
    ),
  },
  {
    mistake: 'The log does not tell of ends that were unheard',
    in: 'ExpiredSessionListener.#catchUp',
    code: 'if (claimed > 0 || since !== undefined)',
    instead: 'if (claimed < 0)',
    ...inSpec(
      'expired-session.listener',
      'the listener of expired sessions logs the ends that it catches up with, after a reconnection also none',
    ),
  },
  {
    mistake: 'A sweep that is aborted begins each further bucket',
    in: 'SessionExpirationSweeper.runOnce',
    code: 'if (options.signal?.aborted) break;',
    instead: '',
    ...inSpec('session-expiration.sweeper', 'stops before its next batch and its next bucket when it is aborted'),
  },
  {
    mistake: 'A canary lives for a second',
    in: 'NotificationProbe.#hearsCanary',
    code: "'PX', 1",
    instead: "'EX', 1",
    ...inSpec('keyspace-notification.listener', 'a canary lives for a millisecond, so that a proof takes no longer'),
  },
  {
    mistake: 'Each start writes the format of the data',
    in: 'checkStore',
    code: 'if ((await recorded()).includes(null))',
    instead: '',
    ...inSpec(
      'redis-session.module',
      'starts on a Redis that is out of memory when another instance has started before',
    ),
  },
  {
    mistake: 'Data of a Redis that comes after the application are not checked',
    in: 'RedisSessionLifecycle.#open',
    code: "else background.once('ready', () => void this.#checkLate());",
    instead: '',
    ...inSpec(
      'unanswered-start',
      'an application that starts before Redis logs an unknown data format once Redis is there',
    ),
  },
  {
    mistake: 'The log does not tell of ends that earlier sweeps should have found',
    in: 'RedisSessionLifecycle.#cleanUp',
    code: 'if (late > 0)',
    instead: 'if (late < 0)',
    ...inSpec(
      'cleanup',
      'the cleanup logs the sessions that earlier passes should have found, and nothing when there are none',
    ),
  },
  {
    mistake: 'A trim goes on when an instance has ended',
    in: 'RedisSessionLifecycle.#cleanUp',
    code: 'this.trimmer.runOnce({ signal })',
    instead: 'this.trimmer.runOnce()',
    ...inSpec('cleanup', 'shutdown ends a cleanup before the next batch of events'),
  },
  {
    mistake: 'The pause between two attempts to connect grows by the same time',
    in: 'retryAfter',
    code: '50 * 2 ** attempt',
    instead: '50 * attempt',
    ...inSpec(
      'redis.connections',
      'background commands survive an outage that ioredis alone gives up on, with two log lines',
    ),
  },
  {
    mistake: 'The pause of requests between two attempts to connect is longer than they wait',
    in: 'createConnections',
    code: 'options.commandTimeout / 4',
    instead: 'options.commandTimeout * 4',
    ...inSpec(
      'redis.connections',
      'the connection of requests pauses between two attempts for a quarter of the command timeout at most',
    ),
  },
  {
    mistake: 'The EventEmitter is found by the name of its class, which a bundler changes',
    in: 'EventEmitterBridge.#find',
    code: "typeof token === 'function' && !isAlias",
    instead: "typeof token === 'function' && token.name === 'EventEmitter2' && !isAlias",
    ...EMITTER,
  },
  {
    mistake: 'A provider with one method of an EventEmitter is taken for one',
    in: 'EventEmitterBridge.#find',
    code: 'methods.every(',
    instead: 'methods.some(',
    ...EMITTER,
  },
  {
    mistake: 'Where SELECT is denied, sessions are stored in database 0',
    in: 'isRefusedSelect',
    code: "=== 'select'",
    instead: "=== 'SELECT'",
    ...inSpec('rights', 'to SELECT, nothing is stored in another database than the one of the url'),
  },
  {
    mistake: 'A url that begins with REDISS:// is an address without TLS',
    in: 'connectionTo',
    code: "protocolOf(url) === 'rediss:'",
    instead: "url.startsWith('rediss:')",
    ...inSpec('tls', 'a REDISS:// url sends no password to a Redis that speaks no TLS'),
  },
  {
    mistake: 'The options of TLS are used for no connection',
    in: 'createConnections',
    code: '{ ...all, tls: connection.tls }',
    instead: 'all',
    ...inSpec('tls', 'rejectUnauthorized: false accepts every certificate'),
  },
  {
    mistake: 'A connection that is closed during a failing TLS handshake ends the process',
    in: 'closeConnection',
    code: "stream?.on('error', () => undefined)",
    instead: 'void stream',
    ...inSpec('tls', 'a connection that is closed during a failing handshake ends no process'),
  },
];
