import { randomBytes } from 'node:crypto';
import { Controller, Get, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

/** Five attributes of 100 bytes and one of 5 KB. */
const NAMES = ['one', 'two', 'three', 'four', 'five', 'large'];
const sizeOf = (name: string) => (name === 'large' ? 5000 : 100) - 2;

let written = 0;

/** Never the same text twice in a row. */
function set(session: Session, name: string): void {
  session.setAttribute(name, String(written++).padEnd(sizeOf(name), 'x'));
}

@Controller()
class EncryptionController {
  @Get('plain')
  plain() {
    return { ok: true };
  }

  @Get('write-all')
  writeAll(@Session() session: Session) {
    for (const name of NAMES) set(session, name);
    return { ok: true };
  }

  @Get('write-one')
  writeOne(@Session() session: Session) {
    set(session, 'one');
    return { ok: true };
  }

  @Get('read-none')
  readNone(@Session() session: Session) {
    return { ok: session.attributeNames.length > 0 };
  }

  @Get('read-one')
  readOne(@Session() session: Session) {
    return { ok: session.getAttribute('one') !== undefined };
  }

  @Get('read-all')
  readAll(@Session() session: Session) {
    return { ok: NAMES.every((name) => session.getAttribute(name) !== undefined) };
  }
}

@Module({})
class BenchModule {}

const KEY = { id: 'bench', key: randomBytes(32).toString('base64') };

/** Called by server.main.ts. */
export function createApplication(contender: 'plain' | 'encrypted', url: string): Promise<INestApplication> {
  const encryption = contender === 'encrypted' ? { encryption: { keys: [KEY] } } : {};
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url, namespace: contender, ...encryption })];
  const module = { module: BenchModule, imports, controllers: [EncryptionController] };
  return NestFactory.create(module, new FastifyAdapter(), { logger: ['error', 'warn'] });
}
