// An instance that makes the calls which the recorder sends it, one reply for each, and reports the ends of sessions
// that its handler hears of.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  SessionDestroyedEvent,
  SessionGoneError,
  SessionModule,
  Sessions,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

class Handlers {
  ended({ id, sessionId, at, session }) {
    process.send({ event: { id, sessionId, at, ...shown(session) } });
  }
}
OnSessionEvent(SessionDestroyedEvent)(
  Handlers.prototype,
  'ended',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'ended'),
);

class Instance {}
Module({
  imports: [SessionModule.forRoot(), RedisSessionModule.forRoot(JSON.parse(process.env.REDIS_OPTIONS))],
  providers: [Handlers],
})(Instance);
const app = await NestFactory.createApplicationContext(Instance, { logger: false });
const repository = app.get(IndexedSessionRepository);
const sessions = app.get(Sessions);

/** Loaded or created sessions, each by the number that the recorder has given it. A call uses one, however old it is. */
const copies = new Map();

const calls = {
  async create({ copy, timeout }) {
    const session = repository.createSession();
    session.setAttribute('a', 'first');
    if (timeout) session.maxInactiveInterval = timeout;
    copies.set(copy, session);
    return { outcome: await session.save(), id: session.id };
  },
  async load({ copy, id }) {
    const session = await repository.findById(id);
    if (!session) return { found: false };
    copies.set(copy, session);
    return { found: true, ...shown(session) };
  },
  async set({ copy, value }) {
    const session = copies.get(copy);
    session.setAttribute('a', value);
    return { outcome: await session.save() };
  },
  async add({ copy }) {
    const n = await copies.get(copy).updateAttribute('n', (current = 0) => current + 1);
    return { outcome: n === undefined ? 'gone' : 'saved', n };
  },
  async rotate({ copy }) {
    const session = copies.get(copy);
    session.changeSessionId();
    return { outcome: await session.save(), id: session.id };
  },
  async signIn({ copy, name }) {
    const session = copies.get(copy);
    const { creationTime } = session;
    session.signIn(name);
    await session.save();
    // A visitor whose session another call has rotated gets one of their own.
    if (session.creationTime !== creationTime) return { outcome: 'anew' };
    return { outcome: 'saved', id: session.id };
  },
  async end({ copy }) {
    const session = copies.get(copy);
    session.invalidate();
    return { outcome: await session.save() };
  },
  async endAll({ name }) {
    await sessions.endAll(name);
    return {};
  },
  async list({ name }) {
    const found = await repository.findByPrincipalName(name);
    return { ids: found.map(({ id }) => id) };
  },
};

process.on('message', ({ number, call, input }) => {
  calls[call](input).then(
    (output) => process.send({ number, output }),
    (error) =>
      process.send({
        number,
        output:
          error instanceof SessionGoneError ? { outcome: 'gone' } : { isUnknown: true, id: copies.get(input.copy)?.id },
      }),
  );
});
process.on('disconnect', () => process.exit());
process.send({ isReady: true });

function shown(session) {
  return {
    a: session.getAttribute('a') ?? '',
    n: session.getAttribute('n') ?? 0,
    principal: session.principalName ?? '',
  };
}
