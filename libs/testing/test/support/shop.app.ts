import { Body, Controller, Get, type INestApplication, Injectable, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  OnSessionEvent,
  Session,
  SessionExpiredEvent,
  SessionModule,
  type SessionModuleOptions,
  SessionOutagePolicy,
} from '@nest-session/core';
import { TestSessionModule } from '@nest-session/testing';

const ADAPTERS = { express: ExpressAdapter, fastify: FastifyAdapter };

@Controller()
class ShopController {
  @Get('account')
  account(@Session() session: Session) {
    return { user: session.principalName, items: session.getAttributeOrDefault<string[]>('items', []) };
  }

  @Post('items')
  add(@Session() session: Session, @Body('name') name: string) {
    return session.updateAttribute<string[]>('items', (items = []) => [...items, name]);
  }

  @Post('login')
  @SessionOutagePolicy('reject')
  login(@Session() session: Session, @Body('name') name: string) {
    session.changeSessionId();
    session.principalName = name;
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}

/** A slow handler: a test that does not wait for handlers sees no effect of it. */
@Injectable()
export class Reminders {
  readonly sent: unknown[] = [];

  @OnSessionEvent(SessionExpiredEvent)
  async remind({ session }: SessionExpiredEvent): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    this.sent.push(session.getAttribute('items'));
  }
}

@Module({ controllers: [ShopController], providers: [Reminders] })
class ShopModule {}

/** An application that does not listen yet. */
export function createShop(
  session: SessionModuleOptions = {},
  adapter: keyof typeof ADAPTERS = 'express',
): Promise<INestApplication> {
  const imports = [SessionModule.forRoot(session), TestSessionModule.forRoot()];
  const options = { logger: false as const, abortOnError: false };
  return NestFactory.create({ module: ShopModule, imports }, new ADAPTERS[adapter](), options);
}
