import type { AttributeSerializer } from '@nest-session/core';
import { ApplicationSerializer } from '@nest-session/core/internal';
import type { ResolvedSessionOptions } from '@nest-session/core/store';
import type { ResolvedRedisSessionOptions } from './redis-session.options.js';

type SessionOptions = Pick<
  ResolvedSessionOptions,
  'security' | 'timeout' | 'anonymousTimeout' | 'absoluteTimeout' | 'serializer'
>;

/** Undefined is not said. */
type Facts = Readonly<Record<string, string | number | boolean | undefined>>;
/** Other modules that keep sessions in Redis have some of them. */
type StoreOptions = Partial<ResolvedRedisSessionOptions>;

/** How sessions are kept, for the log at the start. `own`: what it says of one store alone. */
export function shownFacts(
  { namespace, events, serializer }: StoreOptions,
  { security, ...session }: SessionOptions,
  own: Facts,
): string {
  return listed({
    namespace: JSON.stringify(namespace),
    ...own,
    ...(events && {
      group: JSON.stringify(events.group) + (events.consume ? '' : ' (not handled here)'),
      serializer: nameOf(serializer ?? session.serializer),
    }),
    security,
  });
}

/** The options that an operator may ask for next. Nothing in them is secret. */
export function shownDetails(store: StoreOptions, session: SessionOptions): string {
  const { grace, commandTimeout, encryption, events } = store;
  return listed({
    timeout: seconds(session.timeout),
    anonymousTimeout: seconds(session.anonymousTimeout),
    absoluteTimeout: seconds(session.absoluteTimeout),
    grace: grace && seconds(grace / 1000),
    commandTimeout: commandTimeout && seconds(commandTimeout / 1000),
    replicas: store.replicas,
    requireAtStart: store.requireAtStart,
    encryption: encryption && (encryption.hasKeys ? 'on' : 'off'),
    'cleanup.cron': store.cron && JSON.stringify(store.cron),
    'cleanup.batchSize': store.batchSize,
    ...(events && {
      'events.retention': seconds(events.retention / 1000),
      'events.maxLength': events.maxLength,
      'events.lease': seconds(events.lease / 1000),
      'events.attempts': events.attempts,
      'events.deadLetters.retention': seconds(events.deadLetters.retention / 1000),
      'events.shutdownTimeout': seconds(events.shutdownTimeout / 1000),
      'events.concurrency': events.concurrency,
    }),
  });
}

function nameOf(serializer: AttributeSerializer): string {
  return serializer instanceof ApplicationSerializer ? serializer.shownName : serializer.constructor.name;
}

function listed(facts: Facts): string {
  return Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}

function seconds(count: number): string {
  return count < 0 ? 'none' : `${count} s`;
}
