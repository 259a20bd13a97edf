import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { ScheduleModule } from '@nestjs/schedule';
import { CsrfGuard, type Duration, MapSessionModule, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { AuthModule } from './auth/auth.module.js';
import { CartModule } from './cart/cart.module.js';
import { EventsModule } from './events/events.module.js';
import { LifetimeModule } from './lifetime/lifetime.module.js';

// The files of the page.
const WITHOUT_SESSION = /^\/(page\.(css|js)|favicon\.svg)?(\?|$)/;

@Module({
  // Other pages cannot make a browser sign in, sign out or change its session.
  providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
  imports: [
    EventEmitterModule.forRoot(),
    ScheduleModule.forRoot(),
    SessionModule.forRoot({
      // Every request counts as an access, so that the countdown of the page starts where the session's does.
      touchInterval: 0,
      exclude: ({ url = '' }) => WITHOUT_SESSION.test(url),
    }),
    process.env.SESSION_STORE === 'memory'
      ? MapSessionModule.forRoot()
      : RedisSessionModule.forRoot({
          url: process.env.REDIS_URL,
          // Such as '5s', for a Redis that is far away or on a busy machine.
          commandTimeout: process.env.COMMAND_TIMEOUT as Duration | undefined,
        }),
    AuthModule,
    CartModule,
    EventsModule,
    LifetimeModule,
  ],
})
export class AppModule {}
