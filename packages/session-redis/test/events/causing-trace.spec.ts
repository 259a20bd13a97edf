import { Global, Injectable, Module } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, Sessions } from '@nest-session/core';
import { ForeignSessions, SESSION_TELEMETRY, type SessionTelemetry } from '@nest-session/core/internal';
import type { SessionHandlerContext } from '@nest-session/core/telemetry';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { RedisSessionRepository } from '@nest-session/redis';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const told: SessionHandlerContext[] = [];
let active: string | undefined;
const telemetry: SessionTelemetry = {
  runHandler: (run, context) => {
    told.push(context);
    return run();
  },
  traceparent: () => active,
  outage: () => undefined,
  device: () => undefined,
  deadLettered: () => undefined,
};

@Global()
@Module({ providers: [{ provide: SESSION_TELEMETRY, useValue: telemetry }], exports: [SESSION_TELEMETRY] })
class TelemetryModule {}

@Injectable()
class Handlers {
  @OnSessionEvent(SessionEvent)
  onEvent() {}
}

it('an event has the trace that was active when the session changed, and one without a cause has none', async () => {
  const store = await Store.open();
  const redis = { url: store.server.url, notifications: 'off', cleanup: { cron: '0 0 0 29 2 *' } } as const;
  const imports = [TelemetryModule];
  const instance = await EventInstance.start({ redis, imports, providers: [Handlers] });
  try {
    const sessions = instance.module.get(RedisSessionRepository, { strict: false });
    const live = async () => {
      const session = sessions.createSession();
      session.signIn('ann');
      await session.save();
      return session;
    };
    active = TRACE;
    const session = await live();
    session.changeSessionId();
    await session.save();
    await sessions.deleteById(session.id);
    await live();
    await instance.module.get(Sessions, { strict: false }).endAll('ann');
    await store.client.set('sess:old', '{}');
    const foreign = instance.module.get(ForeignSessions, { strict: false });
    const read = () => ({ attributes: new Map([['cart', 1]]), principalName: undefined });
    expect(await foreign.move('sess:old', 'i'.repeat(43), read)).toBe(true);
    const caused = ['created', 'created', 'created', 'deleted', 'deleted', 'id-changed', 'signed-in', 'signed-in'];
    const seen = () => told.map(({ type, traceparent }) => `${type} ${traceparent}`).toSorted();
    await eventually(() => expect(seen()).toEqual(caused.map((type) => `${type} ${TRACE}`)));
    told.length = 0;
    active = undefined;
    const other = await live();
    await store.runOut(other.id);
    await store.scripts.claimExpired(store.keys, [`expires:${other.id}`]);
    const without = ['created', 'expired', 'signed-in'];
    await eventually(() => expect(seen()).toEqual(without.map((type) => `${type} undefined`)));
  } finally {
    await instance.stop();
    await store.close();
  }
});
