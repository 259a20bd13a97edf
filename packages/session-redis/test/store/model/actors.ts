import type { MaxSessionsOptions } from '@nest-session/core/internal';
import fc from 'fast-check';
import { MINUTE } from '../../support/store.fixture.js';
import { OF_VISITOR } from './request.edits.js';

export const PRINCIPALS = ['ann', 'bob', 'eve'] as const;

/** The values of the index `team`. */
export const TEAMS = ['red', 'blue'] as const;

type Principal = (typeof PRINCIPALS)[number];

/** The actions of a request on its session, many of them in memory until the save. */
export type Act =
  | { readonly does: 'set'; readonly name: 'color' | 'size' | typeof OF_VISITOR; readonly to: number | null }
  | { readonly does: 'set team'; readonly to: (typeof TEAMS)[number] | null }
  | { readonly does: 'set principal'; readonly to: Principal | null }
  | { readonly does: 'sign in'; readonly to: Principal; readonly keep: readonly string[] | undefined }
  | { readonly does: 'set interval' | 'set absoluteTimeout'; readonly to: number }
  | { readonly does: 'rotate' | 'keep idle' | 'touch' | 'load again' | 'delete by id' | 'invalidate' }
  | { readonly does: 'save' | 'increment'; readonly losesReply: boolean }
  | { readonly does: 'take over a session of' | 'delete all of'; readonly principal: Principal }
  | { readonly does: 'end one of'; readonly principal: Principal; readonly of: Principal }
  | { readonly does: 'end all of'; readonly principal: Principal; readonly exceptOwn: boolean }
  | { readonly does: 'end every session' };

/**
 * A request of a browser: loads or creates its session, acts, and saves in the end. After its own cookie it may have
 * that of another browser, as the second cookie of the same name.
 */
export interface RequestPlan {
  readonly is: 'request';
  readonly browsers: readonly number[];
  readonly node: number;
  readonly acts: readonly Act[];
}

/** Steps to a coming time at which something changes, or just before or after; or by so many milliseconds. */
export type Wait = { readonly to: number; readonly plus: number } | { readonly ms: number };

export interface ClockPlan {
  readonly is: 'clock';
  readonly waits: readonly Wait[];
}

/** Reports expired sessions: by a sweep, by a sweep ahead, or by key events. Or ends those from before an epoch. */
export interface CleanupPlan {
  readonly is: 'cleanup';
  readonly node: number;
  readonly finds: 'over' | 'ahead' | 'heard of' | 'older';
}

export type Plan = RequestPlan | ClockPlan | CleanupPlan;

/** What happens in one sequence. */
export interface SequencePlan {
  /** How many sessions each principal may have; undefined: any number. */
  readonly limit: Required<MaxSessionsOptions> | undefined;
  /** The history of a session whose cookie two browsers have. */
  readonly opening: readonly Act[];
  /** All of them act at the same time after that. */
  readonly actors: readonly Plan[];
}

const principal = fc.constantFrom(...PRINCIPALS);
const losesReply = fc.nat({ max: 7 }).map((n) => n === 7);

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('set'),
      name: fc.constantFrom('color', 'size', OF_VISITOR),
      to: fc.option(fc.nat({ max: 9 }), { freq: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('set principal'),
      to: fc.option(principal, { freq: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('sign in'),
      to: principal,
      keep: fc.constantFrom<readonly string[] | undefined>(undefined, undefined, ['color'], ['team'], []),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('set team'), to: fc.option(fc.constantFrom(...TEAMS), { freq: 4 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('set interval'), to: fc.constantFrom(60, 90, 1, 1800, -1, 0) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('set absoluteTimeout'), to: fc.constantFrom(100, 60, 3600, -1) }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      does: fc.constantFrom('rotate', 'rotate', 'rotate', 'touch', 'touch', 'keep idle', 'load again'),
    }),
  },
  { weight: 8, arbitrary: fc.record({ does: fc.constantFrom('save', 'increment'), losesReply }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('take over a session of'), principal }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('delete by id', 'invalidate') }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('delete all of'), principal }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('end one of'), principal, of: principal }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('end all of'), principal, exceptOwn: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('end every session') }) },
);

const node = fc.nat({ max: 2 });

const request: fc.Arbitrary<RequestPlan> = fc.record({
  is: fc.constant('request'),
  browsers: fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.nat({ max: 1 })) },
    { weight: 1, arbitrary: fc.shuffledSubarray([0, 1, 2], { minLength: 2, maxLength: 2 }) },
  ),
  node,
  acts: fc.array(act, { maxLength: 6 }),
});

const wait: fc.Arbitrary<Wait> = fc.oneof(
  fc.record({ to: fc.nat({ max: 7 }), plus: fc.constantFrom(0, 1, -1) }),
  fc.record({ ms: fc.constantFrom(1, 1000, 30_000, MINUTE - 1, 10 * MINUTE) }),
);

const clock: fc.Arbitrary<ClockPlan> = fc.record({
  is: fc.constant('clock'),
  waits: fc.array(wait, { minLength: 1, maxLength: 3 }),
});

const cleanup: fc.Arbitrary<CleanupPlan> = fc.record({
  is: fc.constant('cleanup'),
  node,
  finds: fc.constantFrom('over', 'ahead', 'heard of', 'older'),
});

const limit = fc.option(
  fc.record({
    perPrincipal: fc.integer({ min: 1, max: 2 }),
    whenReached: fc.constantFrom('end-oldest' as const, 'refuse' as const),
  }),
  { nil: undefined, freq: 2 },
);

/** One sequence. */
export const sequence: fc.Arbitrary<SequencePlan> = fc.record({
  limit,
  opening: fc.array(act, { maxLength: 4 }),
  actors: fc.array(
    fc.oneof({ weight: 5, arbitrary: request }, { weight: 1, arbitrary: clock }, { weight: 1, arbitrary: cleanup }),
    { maxLength: 8, size: 'max' },
  ),
});
