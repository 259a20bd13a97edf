import { Controller, Get, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Authenticated, Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

let written = 0;

@Controller()
class DeviceController {
  @Get('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ada');
    session.setAttribute('value', '');
    return { ok: true };
  }

  @Authenticated()
  @Get('read')
  read(@Session() session: Session) {
    return { value: session.getAttribute('value') ?? null };
  }

  @Authenticated()
  @Get('write')
  write(@Session() session: Session) {
    session.setAttribute('value', String(written++).padEnd(98, 'x'));
    return { ok: true };
  }
}

@Module({})
class BenchModule {}

/** `without` and `again` are the same: the difference between them is noise. */
export const BINDINGS = [
  'without',
  'again',
  'report, not bound',
  'report, bound',
  'enforce, not bound',
  'enforce, bound',
] as const;

/** Called by server.main.ts. */
export function createApplication(contender: (typeof BINDINGS)[number], url: string): Promise<INestApplication> {
  const mode = (['report', 'enforce'] as const).find((each) => contender.startsWith(each));
  const imports = [
    // Longer than a run.
    SessionModule.forRoot({ timeout: '12h', deviceBound: mode ? { mode, lifetime: '1h' } : false }),
    RedisSessionModule.forRoot({ url, namespace: contender.replaceAll(/\W+/g, '-') }),
  ];
  const module = { module: BenchModule, imports, controllers: [DeviceController] };
  return NestFactory.create(module, new FastifyAdapter({ trustProxy: 'loopback' }), { logger: ['error', 'warn'] });
}
