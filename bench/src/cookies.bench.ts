import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { type CookieOptions, CookieSessionIdResolver } from '@nest-session/core';
import { SessionIds } from '@nest-session/core/internal';
import { table } from './table.js';

// What a request costs before the store is asked, when its cookie header has the 16 KB that Node.js accepts.
const SIZE = 16 * 1024;
const ROUNDS = process.env.BENCH_QUICK ? 200 : 2000;
const NAME = 's';

const KEYS = ['KVkVd5MTJ2K8r0HPu9cYBqAn3zwXfGe7LmSiOjDhQt4=', 'p1RgU6vEwN0yZoCbI5xKsWaT8lMdF2hJq9XnBeVcGuY='];

const filled = (valueOf: (i: number) => string) => {
  let header = '';
  for (let i = 0; header.length < SIZE; i++) header += `${valueOf(i)};`;
  return header.slice(0, SIZE);
};
const token = (i: number, length = 22) => String(i).padStart(length, 'a');

const HEADERS: Readonly<Record<string, string>> = {
  'one session cookie': `${NAME}=${token(1, 43)}`,
  'short tokens': filled((i) => `${NAME}=${token(i)}`),
  'tokens of 128 characters': filled((i) => `${NAME}=${token(i, 128)}`),
  'empty values': filled(() => `${NAME}=`),
  'names without values': filled(() => NAME),
  'other cookies': filled((i) => `x${i}=${token(i)}`),
  blanks: `${NAME}=${' '.repeat(SIZE - 4)};${NAME}`,
  semicolons: ';'.repeat(SIZE),
  'one long value': `${NAME}=${'.'.repeat(SIZE - 2)}`,
  'signatures that are too short': filled((i) => `${NAME}=${token(i)}.x`),
  'signatures of the right length': filled((i) => `${NAME}=${token(i)}.${token(i, 43)}`),
  'the same, of long tokens': filled((i) => `${NAME}=${token(i, 128)}.${token(i, 43)}`),
};

const OPTIONS: Readonly<Record<string, CookieOptions>> = {
  unsigned: {},
  'one key': { signingKeys: KEYS.slice(0, 1) },
  'two keys': { signingKeys: KEYS },
};

const ids = new SessionIds();

/** Milliseconds: the median and the 99th percentile. */
function costOf(resolver: CookieSessionIdResolver, cookie: string): { median: number; p99: number } {
  const request = Object.assign(new IncomingMessage(new Socket()), { headers: { cookie } });
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    for (const each of resolver.resolve(request)) ids.find(each);
    return performance.now() - start;
  }).sort((a, b) => a - b);
  return { median: times[ROUNDS / 2]!, p99: times[Math.floor(ROUNDS * 0.99)]! };
}

Logger.overrideLogger(false);
console.log(
  `ms to find the session ids in a cookie header of 16 KB: median (99th percentile); Node.js ${process.version}`,
);
const resolvers = Object.entries(OPTIONS).map(([name, options]) => {
  return [name, new CookieSessionIdResolver({ name: NAME, ...options })] as const;
});
const rows = Object.entries(HEADERS).map(([what, header]) => [
  what,
  ...resolvers.map(([, resolver]) => {
    const { median, p99 } = costOf(resolver, header);
    return `${median.toFixed(3)} (${p99.toFixed(3)})`;
  }),
]);
console.log(table(['16 KB of', ...resolvers.map(([name]) => name)], rows));
