import type { PlayedOperation } from './deadline-player.mjs';

/** A deadline that a handler has heard of. */
export interface HeardDeadline {
  readonly id: string;
  readonly key: string;
  readonly data: string;
  readonly dueAt: number;
  readonly at: number;
}

/** What has happened to one key: what each client did, one thing after the other, and what fired. */
export interface KeyHistory {
  readonly clients: readonly (readonly PlayedOperation[])[];
  readonly heard: readonly HeardDeadline[];
}

/** What waits under a key. Its time is known as exactly as the client knew the time of Redis. */
interface Waiting {
  readonly token: string;
  readonly earliest: number;
  readonly latest: number;
}

type Place = Waiting | 'fired' | 'none';

/** A point of an order: how much of each client, and of what fired, has taken place, and what that has led to. */
interface Point {
  readonly taken: readonly number[];
  readonly fired: number;
  readonly place: Place;
}

/**
 * Looks for an order of all that has happened to a key in which each answer is right, and in which nothing that ended
 * before something else began comes after it. A deadline fires in such an order when it waits, and never again. Throws
 * where there is none.
 */
export function assertOrder({ clients, heard }: KeyHistory): void {
  const fired = heard.toSorted((one, other) => one.at - other.at);
  const steps = clients.reduce((sum, { length }) => sum + length, fired.length);
  let points: Point[] = [{ taken: clients.map(() => 0), fired: 0, place: 'none' }];
  for (let step = 0; step < steps; step += 1) {
    const next = new Map<string, Point>();
    for (const point of points) for (const each of pointsAfter(point, clients, fired)) next.set(nameOf(each), each);
    if (next.size === 0) throw new Error(shown(points, clients, fired));
    points = [...next.values()];
  }
}

function nameOf({ taken, fired, place }: Point): string {
  return JSON.stringify([taken, fired, place]);
}

function* pointsAfter(point: Point, clients: KeyHistory['clients'], fired: readonly HeardDeadline[]): Generator<Point> {
  const { taken, place } = point;
  const nexts = clients.map((operations, i) => operations[taken[i]!]);
  const nextFiring = fired[point.fired]?.at ?? Infinity;
  const before = Math.min(nextFiring, ...nexts.map((operation) => operation?.to ?? Infinity));
  for (const [i, operation] of nexts.entries()) {
    if (!operation || operation.from > before) continue;
    for (const after of placesAfter(place, operation))
      yield { ...point, taken: taken.with(i, taken[i]! + 1), place: after };
  }
  const firing = typeof place === 'string' ? undefined : fired.find(({ data }) => data === place.token);
  // Of several in one millisecond, any may be the first.
  if (firing && firing.at <= before && isWithin(firing.dueAt, place as Waiting))
    yield { ...point, fired: point.fired + 1, place: 'fired' };
}

/** What may stand under the key after an operation; empty when its answer is wrong there. */
function placesAfter(place: Place, operation: PlayedOperation): Place[] {
  const { answer, token } = operation;
  const waits = typeof place !== 'string';
  switch (operation.call) {
    case 'cancel':
      return answer === (waits ? 'cancelled' : place) ? [waits ? 'none' : place] : [];
    case 'reschedule':
      if (!waits) return answer === place ? [place] : [];
      return answer === 'moved' ? [{ token: place.token, ...timeOf(operation) }] : [];
    case 'get':
      if (typeof answer === 'string') return waits ? [] : [place];
      if (!waits || answer.data !== place.token || !isWithin(answer.dueAt, place)) return [];
      return [{ token: place.token, earliest: answer.dueAt, latest: answer.dueAt }];
    case 'schedule':
      if (answer === 'kept') return waits && mayStay(place, operation) ? [place] : [];
      if (answer !== (waits ? 'replaced' : 'scheduled') || (waits && !mayGo(place, operation))) return [];
      return [{ token, ...timeOf(operation) }];
  }
}

function timeOf({ wait, isInstant, from, to }: PlayedOperation) {
  return { earliest: from + wait, latest: (isInstant ? from : to) + wait };
}

function isWithin(time: number, { earliest, latest }: Waiting): boolean {
  return time >= earliest && time <= latest;
}

function mayStay({ earliest, latest }: Waiting, operation: PlayedOperation): boolean {
  const other = timeOf(operation);
  const { ifExists } = operation;
  if (ifExists === 'earlier') return earliest <= other.latest;
  if (ifExists === 'later') return latest >= other.earliest;
  return ifExists === 'keep';
}

function mayGo({ earliest, latest }: Waiting, operation: PlayedOperation): boolean {
  const other = timeOf(operation);
  const { ifExists } = operation;
  if (ifExists === 'earlier') return latest > other.earliest;
  if (ifExists === 'later') return earliest < other.latest;
  return ifExists === 'replace';
}

/** What stands next to the end of every order that was found. */
function shown(points: readonly Point[], clients: KeyHistory['clients'], fired: readonly HeardDeadline[]): string {
  const around = points.slice(0, 3).map((point) => ({
    place: point.place,
    next: clients.map((operations, i) => operations[point.taken[i]!]),
    fires: fired.slice(Math.max(0, point.fired - 1), point.fired + 2),
  }));
  return `No order explains what happened to a key:\n${JSON.stringify(around, undefined, 1)}`;
}
