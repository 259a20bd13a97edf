import { type Size } from './http.payloads.js';

export interface Scenario {
  readonly title: string;
  readonly path: string;
  readonly connections: number;
  /** What the session of each connection holds; none: the requests have no cookie. */
  readonly size?: Size;
}

const CONNECTIONS = 50;

export const SCENARIOS: readonly Scenario[] = [
  { title: 'read 1 x 100 B', path: '/read', connections: CONNECTIONS, size: '1 x 100 B' },
  { title: 'write 1 x 100 B', path: '/write', connections: CONNECTIONS, size: '1 x 100 B' },
  { title: 'read one of 50 x 100 B', path: '/read', connections: CONNECTIONS, size: '50 x 100 B' },
  { title: 'read all of 50 x 100 B', path: '/read-all', connections: CONNECTIONS, size: '50 x 100 B' },
  { title: 'read 1 x 5 KB', path: '/read', connections: CONNECTIONS, size: '1 x 5 KB' },
  { title: 'write 1 x 5 KB', path: '/write-large', connections: CONNECTIONS, size: '1 x 5 KB' },
  { title: 'login (rotation)', path: '/login', connections: CONNECTIONS, size: '1 x 100 B' },
  { title: 'route without session, no cookie', path: '/plain', connections: CONNECTIONS },
  { title: 'route without session, cookie', path: '/plain', connections: CONNECTIONS, size: '1 x 100 B' },
  { title: 'read 1 x 100 B, 1 connection', path: '/read', connections: 1, size: '1 x 100 B' },
  { title: 'read 1 x 100 B, 500 connections', path: '/read', connections: 500, size: '1 x 100 B' },
];

export const BARE = { express: 'Nest on Express', fastify: 'Nest on Fastify' } as const;
/** What a session costs that is loaded and saved by hand, without a guarantee: the least that is possible. */
export const BY_HAND = { express: 'Redis by hand on Express', fastify: 'Redis by hand on Fastify' } as const;
export const OURS = { express: 'nest-session on Express', fastify: 'nest-session on Fastify' } as const;
export const EXPRESS_SESSION = [
  'express-session + connect-redis 10 (node-redis)',
  'express-session + connect-redis 8 (ioredis)',
] as const;
export const SPRING = "Spring Session's commands";
export const FASTIFY_SESSION = '@fastify/session + connect-redis 8';
export const FASTIFY_SESSION_STILL = '@fastify/session + connect-redis 8, not rolling';

export const ON_EXPRESS = [BARE.express, BY_HAND.express, OURS.express, ...EXPRESS_SESSION, SPRING] as const;
export const ON_FASTIFY = [
  BARE.fastify,
  BY_HAND.fastify,
  OURS.fastify,
  FASTIFY_SESSION,
  FASTIFY_SESSION_STILL,
] as const;

export type ContenderName = (typeof ON_EXPRESS)[number] | (typeof ON_FASTIFY)[number];

/** The oldest Node of a contender that does not run on all of ours. */
export const NODE_NEEDED: Partial<Record<ContenderName, number>> = { [EXPRESS_SESSION[0]]: 22 };
