import type { AttributeSerializer } from '@nest-session/core';
import type { OptionReader } from '@nest-session/core/internal';
import type { ResolvedSessionOptions } from '@nest-session/core/store';
import { emptyNamespaceProblem, namespaceBesideProblem, namespaceProblem } from '@nest-session/redis-events/internal';
import { SpringJsonSerializer } from '../values/spring-json.serializer.js';

/** How an application uses the sessions that Spring Session keeps. */
export type SpringMode = 'read' | 'shared';

const BESIDE = ':nest';

/** What Spring's namespace has beside it: our own keys, of which Spring knows nothing. */
export function namespaceBeside(ofSpring: string): string {
  return `${ofSpring}${BESIDE}`;
}

/** The namespace of Spring that has this one beside it. */
export function namespaceOfSpring(beside: string): string {
  return beside.slice(0, -BESIDE.length);
}

/** How an application uses the namespace that a command is for, where that may be beside one of Spring. */
export function modeOfNamespace(namespace: string | undefined): SpringMode | undefined {
  return namespace?.endsWith(BESIDE) ? 'shared' : undefined;
}

/** What is wrong with a namespace: the keys of Spring are asked for by name, so it may have every name there. */
export function namespaceProblemWith(mode: SpringMode | undefined): (namespace: string) => string | undefined {
  if (mode === 'read') return emptyNamespaceProblem;
  return mode === 'shared' ? namespaceBesideProblem : namespaceProblem;
}

/** Of a store with a format of its own. */
const OF_OUR_FORMAT = ['partitions', 'grace', 'expirations', 'notifications', 'encryption'] as const;

/** What has no effect beside the option. */
const WITHOUT_EFFECT = {
  read: [...OF_OUR_FORMAT, 'cleanup', 'replicas', 'events', 'serializer'],
  shared: OF_OUR_FORMAT,
} as const satisfies Record<SpringMode, readonly string[]>;

const ON_CLUSTER =
  "Option `spring: 'shared'` needs a single Redis, with replicas or without: on a Cluster the keys of a session of Spring are on " +
  'several nodes, and no script can change them together.';

/** The option `spring`, and the others that must not be set beside it: whether one `isSet`. */
export function readSpring(
  reader: OptionReader,
  isSet: (name: (typeof WITHOUT_EFFECT)[SpringMode][number]) => boolean,
  isOnCluster: boolean,
): SpringMode | undefined {
  const mode = reader.value('spring', isMode, "'read' or 'shared'");
  if (mode === undefined) return undefined;
  if (mode === 'shared' && isOnCluster) reader.problem(ON_CLUSTER);
  for (const name of WITHOUT_EFFECT[mode]) {
    if (!isSet(name)) continue;
    reader.problem(`Option \`${name}\` has no effect with \`spring: '${mode}'\`: leave one of them out.`);
  }
  return mode;
}

function isMode(value: unknown): value is SpringMode {
  return value === 'read' || value === 'shared';
}

const NO_SPRING_JSON =
  "Option `serializer` is a SpringJsonSerializer of @nest-session/redis/spring with `spring: 'shared'`, because Spring must " +
  'be able to read what is written.';

/** The option `serializer`, which Spring has a say in. Undefined: that of the application. */
export function readSerializer(
  reader: OptionReader,
  mode: SpringMode | undefined,
  isSerializer: (value: unknown) => value is AttributeSerializer,
): AttributeSerializer | undefined {
  const given = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  if (mode !== 'shared') return given;
  if (given && !(given instanceof SpringJsonSerializer)) reader.problem(NO_SPRING_JSON);
  return given ?? new SpringJsonSerializer();
}

const HASHED_IDS =
  "Option `spring` needs `sessionIds: 'plain'` in the options of SessionModule, because Spring Session knows a session by " +
  'the id that its cookie holds: write SessionModule.forRoot(springSessions()), with springSessions of ' +
  '@nest-session/redis/spring.';

/** What options of `SessionModule` the sessions of Spring cannot have. */
export function problemsWithSpring(
  mode: SpringMode,
  { ids, timeout, anonymousTimeout, absoluteTimeout, maxSessions, devices }: ResolvedSessionOptions,
): string[] {
  const problems = ids.form === 'plain' ? [] : [HASHED_IDS];
  if (mode === 'read') return problems;
  const without = (name: string) =>
    problems.push(
      `Option \`${name}\` of SessionModule is not possible with \`spring: 'shared'\`: Spring does not know it.`,
    );
  if (absoluteTimeout >= 0) without('absoluteTimeout');
  if (maxSessions) without('maxSessions');
  if (devices) without('devices');
  if (timeout < 0 || anonymousTimeout < 0)
    problems.push(
      "Options `timeout` and `anonymousTimeout` must be set with `spring: 'shared'`: Spring deletes sessions without one.",
    );
  return problems;
}
