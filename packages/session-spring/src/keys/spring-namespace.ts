import { emptyNamespaceProblem, namespaceBesideProblem, namespaceProblem } from '@nest-session/redis-events/internal';

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
