import type { AttributeSerializer } from '@nest-session/core';
import { ApplicationSerializer } from '@nest-session/core/internal';
import type { ResolvedSessionOptions } from '@nest-session/core/store';
import type { ResolvedRedisSessionOptions } from './redis-session.options.js';

type SessionOptions = Pick<
  ResolvedSessionOptions,
  'security' | 'timeout' | 'anonymousTimeout' | 'absoluteTimeout' | 'serializer'
>;

/** What the log says at the start of how sessions are kept. */
export function startFacts(
  { namespace, springNamespace, partitions, expirations, events, spring, ...redis }: ResolvedRedisSessionOptions,
  { security, ...session }: SessionOptions,
  notifications: string,
): string {
  if (spring === 'read') return listed({ namespace: JSON.stringify(namespace), spring, security });
  const group = JSON.stringify(events.group) + (events.consume ? '' : ' (not handled here)');
  const serializer = nameOf(redis.serializer ?? session.serializer);
  if (spring) return listed({ namespace: JSON.stringify(springNamespace), spring, group, serializer, security });
  return listed({
    namespace: JSON.stringify(namespace),
    partitions,
    expirations: expirations.store + (expirations.timer ? ' with a timer' : ''),
    notifications,
    group,
    serializer,
    security,
  });
}

/** The options that an operator may ask for next. Nothing in them is secret. */
export function startDetails(redis: ResolvedRedisSessionOptions, session: SessionOptions): string {
  const { events } = redis;
  return listed({
    timeout: seconds(session.timeout),
    anonymousTimeout: seconds(session.anonymousTimeout),
    absoluteTimeout: seconds(session.absoluteTimeout),
    grace: seconds(redis.grace / 1000),
    commandTimeout: seconds(redis.commandTimeout / 1000),
    replicas: redis.replicas,
    requireAtStart: redis.requireAtStart,
    encryption: redis.encryption.hasKeys ? 'on' : 'off',
    'cleanup.cron': JSON.stringify(redis.cron),
    'cleanup.batchSize': redis.batchSize,
    'events.retention': seconds(events.retention / 1000),
    'events.maxLength': events.maxLength,
    'events.lease': seconds(events.lease / 1000),
    'events.attempts': events.attempts,
    'events.deadLetters.retention': seconds(events.deadLetters.retention / 1000),
    'events.shutdownTimeout': seconds(events.shutdownTimeout / 1000),
    'events.concurrency': events.concurrency,
  });
}

function nameOf(serializer: AttributeSerializer): string {
  return serializer instanceof ApplicationSerializer ? serializer.shownName : serializer.constructor.name;
}

function listed(facts: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}

function seconds(count: number): string {
  return count < 0 ? 'none' : `${count} s`;
}
