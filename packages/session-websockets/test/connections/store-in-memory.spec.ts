import { jest } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { MapSessionModule, Session, SessionModule, SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { sessionOf, signIn } from '@nest-session/testing';
import { SessionWebSocketModule } from '../../src/index.js';
import { type Platform, PLATFORMS } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

async function start(platform: Platform) {
  @WebSocketGateway({ path: '/sockets' })
  class LeavingGateway {
    @SubscribeMessage('sign-out')
    signOut(@Session() session: Session) {
      session.signOut();
      return platform === 'ws' ? { event: 'sign-out', data: 'bye' } : { said: 'bye' };
    }
  }
  class AppModule {}
  const imports = [SessionModule.forRoot(), MapSessionModule.forRoot(), SessionWebSocketModule.forRoot()];
  const module = { module: AppModule, imports, providers: [LeavingGateway] };
  const app = await NestFactory.create(module, { logger: false, abortOnError: false });
  if (platform === 'ws') app.useWebSocketAdapter(new WsAdapter(app));
  return app;
}

it.each(PLATFORMS)(
  'a message over %s that ends its session is answered, and then its socket closes',
  async (platform) => {
    const app = await start(platform);
    try {
      const client = await connect(platform, await signIn(app, { principalName: 'ada' }));
      const said = await Promise.race([client.ask('sign-out'), client.closed]);
      expect(said).toBe('bye');
      expect(await client.closed).toBe(platform === 'ws' ? '4401 session ended' : 'io server disconnect');
    } finally {
      closeClients();
      await app.close();
    }
  },
);

it.each(PLATFORMS)(
  'a socket over %s closes within a minute when its session is not that of its user any more',
  async (platform) => {
    const app = await start(platform);
    const now = performance.now.bind(performance);
    const letMinutesPass = (minutes: number) =>
      jest.spyOn(performance, 'now').mockImplementation(() => now() + minutes * 60_000);
    try {
      const [ada, bob] = [await signIn(app, { principalName: 'ada' }), await signIn(app, { principalName: 'bob' })];
      const [client, other] = [await connect(platform, ada), await connect(platform, bob)];
      letMinutesPass(1);
      const { id } = (await sessionOf(app, ada))!;
      const session = (await app.get(SessionRepository).findById(id))!;
      session.principalName = undefined;
      await session.save();
      expect(session.id).toBe(id);
      letMinutesPass(2);
      expect(await client.closed).toBe(platform === 'ws' ? '4401 session ended' : 'io server disconnect');
      expect(other.isOpen).toBe(true);
    } finally {
      jest.restoreAllMocks();
      closeClients();
      await app.close();
    }
  },
);
