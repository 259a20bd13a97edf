import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Controller, Post, Res } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { closeApps, startApp } from '../support/session.app.js';

interface Reply {
  readonly raw: ServerResponse;
  hijack(): void;
}

interface Injecting {
  inject(request: { method: string; url: string }): Promise<{ body: string }>;
}

/** More than a response takes before it asks its source to wait. */
const CHUNK = 'first'.repeat(20_000);

@Controller()
class StreamController {
  @Post('stream')
  async stream(@Session() session: Session, @Res() reply: Reply) {
    session.setAttribute('streamed', true);
    reply.hijack();
    if (!reply.raw.write(CHUNK)) await once(reply.raw, 'drain');
    reply.raw.end('second');
  }
}

afterEach(closeApps);

it('a source that waits for `drain` continues under inject() of Fastify, whose responses never drain', async () => {
  const { app } = await startApp({ platform: 'fastify', controllers: [StreamController] });
  const fastify = app.getHttpAdapter().getInstance() as Injecting;
  const { body } = await fastify.inject({ method: 'POST', url: '/stream' });
  expect(body).toBe(`${CHUNK}second`);
});
