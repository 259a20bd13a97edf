import { Redis } from 'ioredis';
import { environment } from '../../environment.js';

/** The connection of the store, and of the shop beside it. */
export const CONNECTION = Symbol('the connection to Redis');

/** Of the keys of express-session. */
export const PREFIX = 'demo:express-session:session:';

/** What the shop itself keeps of a session. */
export function keyOf(what: 'cart' | 'claimed' | 'killed' | 'end', sessionId: string): string {
  return `demo:express-session:${what}:${sessionId}`;
}

export function connect(): Redis {
  const connection = new Redis(environment.redisUrl!);
  connection.on('error', () => undefined); // it connects again
  return connection;
}
