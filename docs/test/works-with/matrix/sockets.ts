// What a gateway does with sessions, on both platforms of sockets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Controller, type INestApplication, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { MapSessionModule, Session, SessionContext, SessionModule } from '@nest-session/core';
import { signIn } from '@nest-session/testing';
import { SessionWebSocketModule } from '@nest-session/websockets';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';

@WebSocketGateway({ path: '/sockets' })
class VisitsGateway {
  constructor(private readonly context: SessionContext) {}

  @SubscribeMessage('visit')
  async visit(@Session() session: Session) {
    assert.equal(this.context.session, session);
    await session.updateAttribute('visits', (visits = 0) => visits + 1);
    return { event: 'visits', data: session.getAttribute('visits') };
  }
}

@Controller()
class LogoutController {
  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}

@Module({
  imports: [SessionModule.forRoot(), MapSessionModule.forRoot(), SessionWebSocketModule.forRoot()],
  controllers: [LogoutController],
  providers: [VisitsGateway],
})
class VisitsModule {}

async function open(configure: (app: INestApplication) => void = () => undefined) {
  const adapter = process.env['ADAPTER'] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app = await NestFactory.create(VisitsModule, adapter, { logger: false });
  configure(app);
  await app.listen(0, '127.0.0.1');
  const agent = await signIn(app, { principalName: 'ada' });
  return { app, agent, cookie: String(agent.headersFor('/')['cookie']) };
}

test('a gateway of socket.io has the session, and its sockets are closed when it ends', async () => {
  const { app, agent, cookie } = await open();
  const options = { path: '/sockets', transports: ['websocket'], reconnection: false };
  const client = io(agent.origin, { ...options, extraHeaders: { cookie } });
  const visits = new Promise((resolve) => client.once('visits', resolve));
  client.emit('visit');
  assert.equal(await visits, 1);
  const closed = new Promise((resolve) => client.once('disconnect', resolve));
  await agent.post('/logout');
  assert.equal(await closed, 'io server disconnect');
  const stranger = io(agent.origin, { ...options, forceNew: true, extraHeaders: { origin: 'https://evil.example' } });
  await new Promise((resolve) => stranger.once('connect_error', resolve));
  stranger.disconnect();
  await app.close();
});

test('a gateway of ws has the session, and its sockets are closed when it ends', async () => {
  const { app, agent, cookie } = await open((each) => each.useWebSocketAdapter(new WsAdapter(each)));
  const url = `${agent.origin.replace('http', 'ws')}/sockets`;
  const client = new WebSocket(url, { headers: { cookie } });
  await once(client, 'open');
  client.send(JSON.stringify({ event: 'visit' }));
  const [answer] = (await once(client, 'message')) as [Buffer];
  assert.deepEqual(JSON.parse(answer.toString()), { event: 'visits', data: 1 });
  const closed = once(client, 'close');
  await agent.post('/logout');
  assert.equal((await closed)[0], 4401);
  const stranger = new WebSocket(url, { headers: { origin: 'https://evil.example' } });
  const [error] = (await once(stranger, 'error')) as [Error];
  assert.match(error.message, /403/);
  await app.close();
});
