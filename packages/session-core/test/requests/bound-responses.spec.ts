import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Post,
  Res,
  UseGuards,
} from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Session, SessionBoundError } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const TOO_LARGE = {
  statusCode: 413,
  message: 'Session data too large',
  error: 'Payload Too Large',
  reason: 'session-too-large',
};

/** Changes an object in place, where no interceptor saves the session. */
@Injectable()
class FillingGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { session } = context.switchToHttp().getRequest<{ session: Session }>();
    session.getRequiredAttribute<string[]>('list').push('x'.repeat(100));
    return false;
  }
}

@Controller()
class BoundsController {
  @Post('set')
  set(@Session() session: Session, @Body() { name, value }: { name: string; value: unknown }) {
    session.setAttribute(name, value);
  }

  @Post('push')
  push(@Session() session: Session, @Body('value') value: string) {
    session.getRequiredAttribute<string[]>('list').push(value);
  }

  @Post('update')
  update(@Session() session: Session, @Body('value') value: string) {
    return session.updateAttribute<string[]>('list', (list = []) => [...list, value]);
  }

  @Post('try')
  try(@Session() session: Session, @Body('value') value: unknown) {
    try {
      session.setAttribute('tried', value);
      return { bound: undefined };
    } catch (error) {
      session.setAttribute('failed', true);
      return { bound: (error as SessionBoundError).bound };
    }
  }

  @Post('guarded')
  @UseGuards(FillingGuard)
  guarded() {}

  @Get('sent')
  sent(@Session() session: Session, @Res() reply: RawReply) {
    session.getRequiredAttribute<string[]>('list').push('x'.repeat(100));
    rawOf(reply).end('sent');
  }

  @Get('names')
  names(@Session() session: Session) {
    return session.attributeNames;
  }
}

describe.each(['express', 'fastify'] as const)('on %s, a bound of a session', (platform) => {
  async function start() {
    const { agent, log, store } = await startApp({
      platform,
      controllers: [BoundsController],
      store: new GatedRepository({ maxAttributes: 3, maxAttributeNameSize: 256, maxAttributeSize: 100 }),
    });
    const client = agent();
    expect((await client.post('/set', { name: 'list', value: [] })).status).toBe(201);
    return { client, log, store };
  }

  it('is a 413 response where a client makes the application exceed it', async () => {
    const { client, log } = await start();
    for (const [path, body] of [
      ['/set', { name: 'a', value: 'x'.repeat(100) }],
      ['/set', { name: 'n'.repeat(300), value: 1 }],
      ['/push', { value: 'x'.repeat(100) }],
      ['/update', { value: 'x'.repeat(100) }],
    ] as const) {
      const response = await client.post(path, body);
      expect([response.status, response.json()]).toEqual([413, TOO_LARGE]);
    }
    expect((await client.get('/names')).json()).toEqual(['list']);
    for (const name of ['a', 'b']) expect((await client.post('/set', { name, value: 1 })).status).toBe(201);
    expect((await client.post('/set', { name: 'c', value: 1 })).status).toBe(413);
    expect((await client.post('/set', { name: 'b', value: 2 })).status).toBe(201);
    expect(log.lines.join()).not.toContain('store failed');
  });

  it('is the same response where no interceptor runs', async () => {
    const { client } = await start();
    for (const response of [await client.post('/guarded'), await client.get('/sent')]) {
      expect([response.status, response.json()]).toEqual([413, TOO_LARGE]);
      expect(response.setCookies).toEqual([]);
    }
  });

  it('can be handled by the application', async () => {
    const { client } = await start();
    const response = await client.post('/try', { value: 'x'.repeat(100) });
    expect([response.status, response.json()]).toEqual([201, { bound: 'maxAttributeSize' }]);
    expect((await client.get('/names')).json<string[]>().toSorted()).toEqual(['failed', 'list']);
  });
});
