import { Pace } from '@nest-session/redis-events/internal';
import { lookAtSpring, SpringKeys, type SpringOverview } from '@nest-session/spring/internal';
import type { CommandCall, ExitCode } from './command.js';
import { counted } from './shown.js';
import { type ReachedRedis, withRedis } from './store-access.js';
import { UsageError, wholeNumber } from './usage.error.js';

const NAMESPACE = 'spring:session';

export function run(call: CommandCall): Promise<ExitCode> {
  const { sample: size = '100', rate = '20000' } = call.values;
  const sample = wholeNumber('sample', size, { atLeast: 1, atMost: 10_000 });
  const pace = new Pace(wholeNumber('rate', rate, { atLeast: 1 }), call.signal);
  const address = { ...call.address, namespace: call.address.namespace ?? NAMESPACE };
  return withRedis({ ...call, address }, (redis) => look(redis, call, sample, pace), 'read');
}

async function look(
  { connections: { background: client }, options: { namespace } }: ReachedRedis,
  { output }: CommandCall,
  sample: number,
  pace: Pace,
): Promise<ExitCode> {
  const holds = await client.hget(`${namespace}:meta`, 'holds');
  if (holds !== null) {
    const others = holds === 'shared-sessions' ? 'doctor and stats' : 'verify and stats';
    throw new UsageError(`Namespace ${JSON.stringify(namespace)} is one of nest-session. Use ${others} for it.`);
  }
  const onProgress = (looked: number) => output.progress(`${looked} keys`);
  const overview = await lookAtSpring(client, new SpringKeys(namespace), { sample, pace, onProgress });
  if (overview.sessions.found === 0) {
    output.note(`There is no session of Spring in namespace ${JSON.stringify(namespace)}.`);
    return 1;
  }
  const problems = [...problemsIn(overview)];
  const advice = isReadyToShare(overview) ? [] : [TO_SHARE];
  const lines = [...factsOf(overview), ...problems, ...advice];
  return output.report({ ...overview, problems }, lines, problems.length > 0 ? 2 : 0);
}

const LARGEST_DIFFERENCE = 2000;

function* problemsIn({ clockAhead = 0, serializer }: SpringOverview): Iterable<string> {
  if (Math.abs(clockAhead) > LARGEST_DIFFERENCE) yield 'The clocks differ by more than two seconds: let NTP set both.';
  if (serializer === 'mixed') yield 'Some application fails at some sessions: let all have the same serializer.';
}

const TO_SHARE =
  'To share them, Spring needs the indexed repository and JSON: see the page "One Redis with Spring Boot" of the documentation.';

/** Plain JSON comes back without the classes of Spring Security, and nobody could sign in. */
function isReadyToShare({ repository, serializer, hasSpringSecurity }: SpringOverview): boolean {
  return repository === 'indexed' && serializer === (hasSpringSecurity ? 'security-json' : 'plain-json');
}

const SERIALIZERS: Readonly<Record<NonNullable<SpringOverview['serializer']>, string>> = {
  java: 'JDK serialization, the default of Spring Session',
  'plain-json': 'plain JSON, without classes',
  'typed-json': 'JSON with the class of each object and list',
  'security-json': 'JSON with the class of each object and list, by the modules of Spring Security',
  json: 'JSON. No value that was read is an object or a list, so it may be with or without classes',
  mixed: 'JDK serialization and JSON, both',
};

function factsOf({ repository, expirations, serializer, hasUuids, ...rest }: SpringOverview): string[] {
  const { sessions, principals, clockAhead, unreadableAttributes } = rest;
  const unreadable = unreadableAttributes.map((name) => JSON.stringify(name)).join(', ');
  const facts = {
    repository:
      repository === 'simple'
        ? 'simple: RedisSessionRepository, without events and indexes'
        : `indexed: RedisIndexedSessionRepository, expirations in ${expirations === 'buckets' ? 'buckets' : 'a sorted set'}`,
    serializer: serializer === undefined ? 'unknown: no session was whole' : SERIALIZERS[serializer],
    sessions: `${sessions.found} found, ${sessions.sampled} read: ${sessions.alive} alive, ${sessions.signedIn} signed in by Spring Security`,
    cookie: `the session id ${hasUuids ? '' : '(no UUID) '}is the token. Spring Boot puts it into the cookie in base64, and Redis does not tell whether yours does`,
    index:
      principals === 0
        ? 'no user can be found by name'
        : `sessions of ${counted(principals, 'user')} can be found by name`,
    clock: clockOf(clockAhead),
    attributes: unreadable === '' ? 'all can be read' : `some cannot be read: ${unreadable}`,
    'nest-session':
      repository === 'indexed' && serializer?.endsWith('-json')
        ? "can read these sessions, and share them: mode: 'read', or 'shared'"
        : "can read these sessions: mode: 'read'",
  };
  return Object.entries(facts).map(([name, text]) => `${name.padEnd(14)}${text}`);
}

function clockOf(ahead: number | undefined): string {
  if (ahead === undefined) return 'nothing tells that of the applications';
  const seconds = Math.abs(ahead) / 1000;
  return `that of an application is ${seconds.toFixed(1)} s ${ahead < 0 ? 'behind' : 'ahead of'} that of Redis`;
}
