// Signs in, many at once, in a process of its own. It runs the built packages. A line of its input is a JSON object:
// the principal, the kinds of requests to make at once, and the seed of their order. When all of them are answered, it
// prints how many sign-ins were made and how many refused.
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, SessionGoneError, SessionModule, TooManySessionsError } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

class SigningInModule {}
Module({
  imports: [
    SessionModule.forRoot({
      maxSessions: { perPrincipal: Number(process.env.MOST), whenReached: process.env.WHEN_REACHED },
    }),
    RedisSessionModule.forRoot({
      url: process.env.REDIS_URL,
      partitions: Number(process.env.PARTITIONS),
      commandTimeout: process.env.COMMAND_TIMEOUT,
      events: { consume: false },
    }),
  ],
})(SigningInModule);

const app = await NestFactory.createApplicationContext(SigningInModule, { logger: ['error'] });
const repository = app.get(IndexedSessionRepository, { strict: false });

const REQUESTS = {
  'sign in': (principal) => signIn(repository.createSession(), principal),
  'sign in for a second': (principal) => {
    const session = repository.createSession();
    return signIn(session, principal, () => (session.maxInactiveInterval = 1));
  },
  'sign in to an anonymous session': async (principal) => {
    const session = repository.createSession();
    session.setAttribute('cart', ['apple']);
    await session.save();
    return signIn(session, principal);
  },
  'double click': async (principal) => {
    const session = repository.createSession();
    session.setAttribute('cart', ['apple']);
    await session.save();
    const other = await repository.findById(session.id);
    const outcomes = await Promise.all([signIn(session, principal), signIn(other, principal)]);
    const inOrder = outcomes.toSorted((a, b) => a.localeCompare(b));
    return `double click: ${inOrder.join(', ')}`;
  },
  'sign in again': async (principal, nth) => {
    const session = await one(principal, nth);
    return session ? signIn(session, principal) : 'none';
  },
  rotate: async (principal, nth) => {
    const session = await one(principal, nth);
    session?.changeSessionId();
    return session ? `rotation: ${await session.save()}` : 'none';
  },
  'sign out': async (principal, nth) => {
    const session = await one(principal, nth);
    session?.signOut();
    return session ? `sign-out: ${await session.save()}` : 'none';
  },
};

async function signIn(session, principal, set) {
  session.signIn(principal);
  set?.();
  try {
    return await session.save();
  } catch (error) {
    if (error instanceof TooManySessionsError) return 'refused';
    if (error instanceof SessionGoneError) return 'gone';
    throw error;
  }
}

async function one(principal, nth) {
  const sessions = await repository.findByPrincipalName(principal);
  return sessions[nth % Math.max(sessions.length, 1)];
}

async function answer(line) {
  const { round, principal, requests } = JSON.parse(line);
  const answers = await Promise.allSettled(requests.map((kind, nth) => REQUESTS[kind](principal, nth)));
  const counts = {};
  for (const { value, reason } of answers) {
    const word = value ?? String(reason);
    counts[word] = (counts[word] ?? 0) + 1;
  }
  process.stdout.write(`answered ${round} ${JSON.stringify(counts)}\n`);
}
createInterface({ input: process.stdin }).on('line', (line) => void answer(line));
process.stdout.write('ready\n');
