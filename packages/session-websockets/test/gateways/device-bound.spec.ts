import type { IncomingHttpHeaders } from 'node:http';
import { createSign, generateKeyPairSync } from 'node:crypto';
import { jest } from '@jest/globals';
import { Controller, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  DeviceBound,
  OnSecurityEvent,
  type SecurityEvent,
  Session,
  SessionModule,
  type SessionModuleOptions,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, TestClock, TestSessionModule } from '@nest-session/testing';
import { SessionWebSocketModule } from '../../src/index.js';
import { type Platform, PLATFORMS } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

@Controller()
class SignInController {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('look')
  look(@Session() session: Session) {
    return { user: session.principalName };
  }
}

const told: (string | undefined)[] = [];

class Hears {
  @OnSecurityEvent('missing-proof')
  hear({ reason }: SecurityEvent) {
    told.push(reason);
  }
}

/** Starts an application behind a proxy that ends TLS. */
async function start(platform: Platform, mode: 'report' | 'enforce') {
  const said = (event: string, data: unknown) => (platform === 'ws' ? { event, data } : { said: data });
  @WebSocketGateway({ path: '/sockets' })
  class MoneyGateway {
    @SubscribeMessage('who')
    who(@Session() session: Session) {
      return said('who', session.principalName ?? null);
    }

    @SubscribeMessage('money')
    @DeviceBound()
    money() {
      return said('money', 'money');
    }
  }
  const options: SessionModuleOptions = { timeout: '12h', deviceBound: { mode } };
  const imports = [SessionModule.forRoot(options), TestSessionModule.forRoot(), SessionWebSocketModule.forRoot()];
  const module = { module: class {}, imports, controllers: [SignInController], providers: [MoneyGateway, Hears] };
  const adapter = new ExpressAdapter();
  adapter.set('trust proxy', 'loopback');
  const app = await NestFactory.create(module, adapter, { logger: false, abortOnError: false });
  if (platform === 'ws') app.useWebSocketAdapter(new WsAdapter(app));
  await app.listen(0, '127.0.0.1');
  told.length = 0;
  const headers = { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'https' };
  const origin = await app.getUrl();
  return { app, origin, clock: app.get(TestClock), agent: new HttpAgent(origin, { secure: true, headers }) };
}

/** Signs in, and registers as a browser does. */
async function bind(agent: HttpAgent): Promise<void> {
  await register(agent, (await agent.post('/sign-in')).headers);
}

async function register(agent: HttpAgent, headers: IncomingHttpHeaders): Promise<void> {
  const offer = String(headers['secure-session-registration']);
  const [, path = '', challenge] = /path="([^"]+)";challenge="([^"]+)"/.exec(offer) ?? [];
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const head = { alg: 'ES256', typ: 'dbsc+jwt', jwk: publicKey.export({ format: 'jwk' }) };
  const signed = `${encode(head)}.${encode({ jti: challenge })}`;
  const signature = createSign('sha256').update(signed).sign({ key: privateKey, dsaEncoding: 'ieee-p1363' });
  const proof = `${signed}.${signature.toString('base64url')}`;
  expect((await agent.post(path, undefined, { headers: { 'secure-session-response': proof } })).status).toBe(200);
  expect((await agent.post('/look')).status).toBe(201);
}

describe.each(PLATFORMS)('a socket over %s', (platform) => {
  it.each(['report', 'enforce'] as const)(
    'is as proven as its handshake, for as long as it lasts (%s)',
    async (mode) => {
      const { app, origin, clock, agent } = await start(platform, mode);
      try {
        await bind(agent);
        const client = await connect(platform, agent, { origin });
        expect(await client.ask('money')).toBe('money');
        // By then, the bound cookie of the handshake has run out.
        await clock.advance('20m');
        expect(await client.ask('money')).toBe('money');
        expect(await client.ask('who')).toBe('ann');
        expect(told).toEqual([]);
      } finally {
        closeClients();
        await app.close();
      }
    },
  );

  it('that was opened before the registration closes at its first message a minute later', async () => {
    const { app, origin, clock, agent } = await start(platform, 'enforce');
    try {
      const { headers } = await agent.post('/sign-in');
      const client = await connect(platform, agent, { origin });
      expect(await client.ask('who')).toBe('ann');
      await register(agent, headers);
      expect(await client.ask('who')).toBe('ann');
      await clock.advance('2m');
      client.tell('who');
      await client.closed;
      expect(told).toEqual(['missing']);
      const again = await connect(platform, agent, { origin });
      expect(await again.ask('money')).toBe('money');
    } finally {
      closeClients();
      await app.close();
    }
  });

  it('that was opened before the registration closes within two minutes, and the one that comes after it stays', async () => {
    const { app, origin, clock, agent } = await start(platform, 'enforce');
    try {
      const { headers } = await agent.post('/sign-in');
      const client = await connect(platform, agent, { origin });
      expect(await client.ask('who')).toBe('ann');
      await register(agent, headers);
      const own = await connect(platform, agent, { origin });
      expect(await own.ask('money')).toBe('money');
      await clock.advance('20m');
      const now = performance.now.bind(performance);
      jest.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
      await client.closed;
      expect(await own.ask('money')).toBe('money');
      expect(told).toEqual(['missing']);
    } finally {
      jest.restoreAllMocks();
      closeClients();
      await app.close();
    }
  });

  it('has no session without a proof at its handshake, which is only told of in the mode `report`', async () => {
    for (const mode of ['report', 'enforce'] as const) {
      const { app, origin, clock, agent } = await start(platform, mode);
      try {
        await bind(agent);
        await clock.advance('20m');
        const client = await connect(platform, agent, { origin });
        if (mode === 'report') {
          expect(await client.ask('money')).toBe('money');
          expect(await client.ask('who')).toBe('ann');
        } else {
          await expect(client.ask('money')).rejects.toThrow();
          expect(await client.ask('who')).toBeNull();
        }
        expect(told).toEqual(['missing']);
      } finally {
        closeClients();
        await app.close();
      }
    }
  });
});
