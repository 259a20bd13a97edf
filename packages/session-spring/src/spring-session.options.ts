import type { Duration } from '@nest-session/core';
import { OptionReader } from '@nest-session/core/internal';
import type { ResolvedSessionOptions } from '@nest-session/core/store';
import {
  isOfCluster,
  OF_URL,
  readAddress,
  readCommandTimeout,
  readEvents,
  type RedisAddressOptions,
} from '@nest-session/redis-events/internal';
import { readCleanup, readReplicas, type RedisSessionModuleOptions } from '@nest-session/redis/internal';
import { SPRING_GRACE } from './scripts/spring/spring.scripts.js';
import { namespaceBeside, namespaceProblemWith, type SpringMode } from './keys/spring-keys.js';
import { OwnClasses } from './values/own-classes.js';
import { SpringJsonSerializer } from './values/spring-json.serializer.js';

interface SpringSessionOptions extends RedisAddressOptions {
  /**
   * How the sessions of Spring Session in this Redis are used.
   * - `'read'`: they are found, and `SessionRepository.touch()` renews them. What would change one throws a
   *   SessionStateError, and no event reaches your handlers.
   * - `'shared'`: both applications create, change and end them, and hear of all events. Spring must use
   *   `RedisIndexedSessionRepository` and JSON.
   */
  mode: SpringMode;
  /** The namespace of Spring, whatever its characters. @default 'spring:session' */
  namespace?: string;
  /**
   * The field that says who a user is, by the full name of your class of Java: `{ 'com.example.Account': 'email' }`
   * where `getUsername()` returns `email`. The same for your authorities, and for your authentications, in which
   * `authenticated` must be true. Data of other classes than these and those of Spring Security signs nobody in.
   * @default {}
   */
  ownClasses?: Readonly<Record<string, string>>;
  /** How long a request waits for Redis at most, a reconnection included: 10ms to 1d. @default '1s' */
  commandTimeout?: Duration;
  /** Whether the application refuses to start without Redis. @default false: it starts, and logs the outage once */
  requireAtStart?: boolean;
}

/** Options of `SpringSessionModule.forRoot()` for an application that reads and renews the sessions of Spring. */
export interface ReadSpringSessionOptions extends SpringSessionOptions {
  mode: 'read';
}

/** Options of `SpringSessionModule.forRoot()` for an application that shares sessions with one of Spring. */
export interface SharedSpringSessionOptions extends SpringSessionOptions {
  mode: 'shared';
  /**
   * Turns attributes into the JSON that the Spring application keeps, and back.
   * @default sees in Redis which JSON that is
   */
  serializer?: SpringJsonSerializer;
  /** How session events reach the handlers of this process, as with `RedisSessionModule`. */
  events?: RedisSessionModuleOptions['events'];
  /** How the job `session-cleanup` finds sessions that have expired, as with `RedisSessionModule`. */
  cleanup?: RedisSessionModuleOptions['cleanup'];
  /** How many replicas must have each change of a request, as with `RedisSessionModule`. @default 0 */
  replicas?: number;
}

/**
 * Options of `SpringSessionModule.forRoot()`. `SessionModule` needs `springSessions()` as options beside them. See the
 * page "One Redis with Spring Boot" of the documentation.
 */
export type SpringSessionModuleOptions = ReadSpringSessionOptions | SharedSpringSessionOptions;

export const SPRING_SESSION_OPTIONS = Symbol('SPRING_SESSION_OPTIONS');

export const MODULE = 'SpringSessionModule';

const ON_CLUSTER =
  "Option `mode: 'shared'` needs a single Redis, with replicas or without: on a Cluster the keys of a session of Spring are on " +
  'several nodes, and no script can change them together.';

const MODES = "'read' or 'shared'";

const FIELDS_BY_CLASS =
  "an object of fields by the full names of classes, such as `{ 'com.example.Account': 'email' }`";

function isFieldsByClass(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(
    ([name, field]) => name.includes('.') && typeof field === 'string' && field !== '',
  );
}

const NO_SPRING_JSON =
  'a SpringJsonSerializer of @nest-session/spring, because Spring must be able to read what is written';

/** The options with their defaults, and what Spring does not let choose. Times are milliseconds. */
export type ResolvedSpringSessionOptions = ReturnType<typeof resolveSpringSessionOptions>;

export function resolveSpringSessionOptions(options: Partial<SpringSessionModuleOptions> = {}) {
  const reader = new OptionReader(MODULE, options);
  const isMode = (value: unknown): value is SpringMode => value === 'read' || value === 'shared';
  const mode = reader.value('mode', isMode, MODES) ?? 'shared';
  if (options.mode === undefined) reader.problem(`Option \`mode\` must be ${MODES}.`);
  const isRead = mode === 'read';
  const connection = readAddress(reader, options);
  if (!isRead && isOfCluster(connection)) reader.problem(ON_CLUSTER);
  const springNamespace = reader.text('namespace', 'spring:session', namespaceProblemWith(mode));
  const ownClasses = new OwnClasses(reader.value('ownClasses', isFieldsByClass, FIELDS_BY_CLASS), true);
  const serializer = isRead ? undefined : readSerializer(reader);
  if (serializer) serializer.own = ownClasses;
  // Of an application that writes nothing they are no options.
  const ofWriters = isRead ? new OptionReader(MODULE, {}) : reader;
  const resolved = {
    connection,
    mode,
    // Of our own keys, which are beside those of Spring.
    namespace: isRead ? springNamespace : namespaceBeside(springNamespace),
    // The namespace of Spring; with `mode: 'shared'`, our own keys beside it are in `namespace`.
    springNamespace,
    isGuest: isRead,
    grace: SPRING_GRACE,
    ...readCleanup(ofWriters.section('cleanup')),
    commandTimeout: readCommandTimeout(reader),
    replicas: readReplicas(ofWriters),
    events: readEvents(ofWriters.section('events'), SPRING_GRACE),
    // Undefined where Spring alone writes.
    serializer,
    ownClasses,
    requireAtStart: reader.boolean('requireAtStart', false),
  };
  reader.finish({ ...OF_URL, ...OF_OUR_FORM, ...(isRead && OF_WRITERS) });
  return Object.freeze(resolved);
}

function readSerializer(reader: OptionReader): SpringJsonSerializer {
  const isSpringJson = (value: unknown) => value instanceof SpringJsonSerializer;
  return reader.value('serializer', isSpringJson, NO_SPRING_JSON) ?? new SpringJsonSerializer();
}

/** What to do instead of the same option of `RedisSessionModule`. */
const OF_OUR_FORM = insteadOf(
  ['partitions', 'grace', 'expirations', 'notifications', 'encryption'],
  'the sessions have the form of Spring Session, which has no such choice: leave it out',
);
const OF_WRITERS = insteadOf(
  ['cleanup', 'replicas', 'events', 'serializer'],
  "it has no effect with `mode: 'read'`: leave it out",
);

function insteadOf(names: readonly string[], help: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, help]));
}

const HASHED_IDS =
  "Option `sessionIds` of SessionModule must be 'plain', because Spring Session knows a session by the id that its cookie " +
  'holds: write SessionModule.forRoot(springSessions()), with springSessions of @nest-session/spring.';

export function problemsWithSpring(mode: SpringMode, options: ResolvedSessionOptions): string[] {
  const { ids, timeout, anonymousTimeout, absoluteTimeout, maxSessions, devices, deviceBound, rotateEvery } = options;
  const problems = ids.form === 'plain' ? [] : [HASHED_IDS];
  const without = (name: string) =>
    problems.push(
      `Option \`${name}\` of SessionModule is not possible with \`mode: '${mode}'\`: Spring does not know it.`,
    );
  if (deviceBound) without('deviceBound');
  if (rotateEvery !== undefined) without('rotateEvery');
  if (mode === 'read') return problems;
  if (absoluteTimeout >= 0) without('absoluteTimeout');
  if (maxSessions) without('maxSessions');
  if (devices) without('devices');
  if (timeout < 0 || anonymousTimeout < 0)
    problems.push(
      "Options `timeout` and `anonymousTimeout` of SessionModule must be set with `mode: 'shared'`: Spring deletes sessions " +
        'without one.',
    );
  return problems;
}
