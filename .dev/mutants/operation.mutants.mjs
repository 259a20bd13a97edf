// Mistakes that no request shows, only the operation of an application: a cadence, the order of a shutdown, what is left
// behind, a recovery that is never noted, a secret in the log, a busy loop.
const inSpec = (spec, test) => ({ killedBy: { spec: `${spec}.spec.ts`, test } });

const LEASE = inSpec(
  'lease',
  'the lease of what is handled is renewed three times while it lasts, and no more once the instance has ended',
);
const AT_REST = inSpec('idle', 'an instance at rest polls and asks nothing else, with 1 partitions');
const ORDER = inSpec('shutdown', 'closes what brings work first, and what work in flight needs at the end');
const LEFTOVERS = inSpec('shutdown', 'leaves no timer and no listener, and says nothing');
const REQUESTS = inSpec(
  'request.connection',
  'leaves nothing on its connection, and asks a command once in every outage',
);
const RIGHTS = inSpec('rights', 'an instance has exactly the rights that are documented, and needs each');

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
    ...inSpec('recovery', 'asks again after a pause, not at once: xreadgroup'),
  },
  {
    mistake: 'Nobody is told that what has failed succeeds again',
    in: 'FailureLog.succeeded',
    code: 'if (this.#isFailing) logger.log(this.recovered);',
    instead: '',
    ...inSpec('recovery', 'says once what fails, and once that it succeeds again'),
  },
  {
    mistake: 'Each request after an outage says that the store replies again',
    in: 'StoreFailureLog.succeeded',
    code: 'this.#failures = 0;',
    instead: '',
    ...inSpec('recovery', 'says once that the store fails requests, and once that it replies again, in each outage'),
  },
  {
    mistake: 'A connection that was closed during an outage keeps the recovery from being said',
    in: 'OutageLog.watch',
    code: "client.on('end', () => this.#broken.delete(client));",
    instead: '',
    ...inSpec(
      'redis.connections',
      'says that Redis can be reached again, although a connection was closed for good meanwhile',
    ),
  },
  {
    mistake: 'Each outage leaves a listener',
    in: 'RequestConnection.#nextReady',
    code: "client.off('end', onEnd);",
    instead: '',
    ...REQUESTS,
  },
  {
    mistake: 'In its second outage, a command is tried again and again without a pause',
    in: 'RequestConnection.#untilReady',
    code: '.finally(() => (this.#reconnected = undefined))',
    instead: '',
    ...REQUESTS,
  },
  {
    mistake: 'An instance that ends goes on to be given events',
    in: 'RedisSessionLifecycle.beforeApplicationShutdown',
    code: 'closeConnection(reader);',
    instead: '',
    ...ORDER,
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
    ...inSpec('expired-session.listener', 'hears what expires of everybody only until its own sessions are announced'),
  },
  {
    mistake: 'Claims in flight are cut off when an instance ends',
    in: 'ExpiredSessionListener.stop',
    code: 'Promise.all([this.notifications.stop(), this.#claiming])',
    instead: 'this.notifications.stop()',
    ...inSpec('expired-session.listener', 'ends only when the claims that it has sent are answered'),
  },
  {
    mistake: 'What expired while others had switched notifications off is looked for by nobody',
    in: 'ListenerSubscription.#conclude',
    code: "(before === 'silent' && heard)",
    instead: 'false',
    ...inSpec(
      'keyspace-notification.listener',
      'a gap is told of when notifications arrive that others have switched on',
    ),
  },
  {
    mistake: 'Notifications are proved at every heartbeat',
    in: 'ListenerSubscription.check',
    code: 'this.#nextCheck = performance.now() + this.interval',
    instead: 'this.#nextCheck = 0',
    ...inSpec(
      'keyspace-notification.listener',
      'asks for a sign of life with each heartbeat, and for a proof no more often than it is to',
    ),
  },
  {
    mistake: 'The log shows the token of a session whose access was not recorded',
    in: 'RequestSessionLoader.#touch',
    code: 'this.options.ids.shown(session.id)',
    instead: 'session.id',
    ...inSpec('secrets-in-logs', 'where something foreign is in the way of everything'),
  },
  {
    mistake: 'The log shows the token of a session whose event a handler failed',
    in: 'SessionEventDispatcher.#callAll',
    code: 'this.#shown(event)',
    instead: 'event.id',
    ...inSpec('secrets-in-logs', 'where handlers fail'),
  },
  {
    mistake: 'A trim needs a right that is not documented',
    in: 'trim-events: remove_data',
    code: "redis.call('UNLINK', key)",
    instead: "redis.call('EXPIRE', key, 0)",
    ...RIGHTS,
  },
];
