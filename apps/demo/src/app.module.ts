import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { EventEmitterModule } from '@nestjs/event-emitter';
import { ScheduleModule } from '@nestjs/schedule';
import { CsrfGuard, type Duration, MapSessionModule, SessionModule } from '@nest-session/core';
import { DeadlineModule, MapDeadlineModule } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { SessionWebSocketModule } from '@nest-session/websockets';
import './session-attributes.js';
import { ComparisonModule } from './comparison/comparison.module.js';
import { EngineRoomModule } from './engine-room/engine-room.module.js';
import { environment } from './environment.js';
import { ATTEMPTS } from './engine-room/faults.js';
import { ShopModule } from './shop/shop.module.js';

// Set it to '5s', for example, for a Redis that is far away or on a busy machine.
const commandTimeout = process.env.COMMAND_TIMEOUT as Duration | undefined;
// Short, so that visitors do not wait long for the takeover on the page.
const events = { lease: '5s', attempts: ATTEMPTS } as const;

// The files of the page, and what works without Redis.
const WITHOUT_SESSION = /^GET \/([\w-]+\.(css|js|svg)|faults|events)?(\?|$)|^(GET|POST) \/comparison(\/|$)/;

@Module({
  // Other pages cannot make a browser sign in, sign out or change its session.
  providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
  imports: [
    EventEmitterModule.forRoot(),
    ScheduleModule.forRoot(),
    SessionModule.forRoot({
      // Every request counts as an access, so that the countdown of the page starts where the session's does.
      touchInterval: 0,
      devices: true,
      // A cookie that is copied out of a browser that can bind sessions opens nothing.
      deviceBound: { mode: 'enforce' },
      // A user who signs in does not want attributes that someone else may have set before.
      visitorAttributes: ['fault'],
      exclude: ({ method, url }) => WITHOUT_SESSION.test(`${method} ${url}`),
    }),
    SessionWebSocketModule.forRoot(),
    DeadlineModule.forRoot(),
    ...(environment.redisUrl === undefined
      ? [MapSessionModule.forRoot(), MapDeadlineModule.forRoot()]
      : [
          RedisSessionModule.forRoot({ url: environment.redisUrl, events, commandTimeout }),
          // Without an address: it uses the connections of the sessions.
          RedisDeadlineModule.forRoot({ events, commandTimeout }),
        ]),
    ShopModule,
    EngineRoomModule,
    ComparisonModule,
  ],
})
export class AppModule {}
