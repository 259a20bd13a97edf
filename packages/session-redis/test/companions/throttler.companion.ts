import { Controller, Get, Injectable } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { Session } from '@nest-session/core';
import type { Companion } from './main.js';

/** Counts by session instead of by address. */
@Injectable()
class SessionThrottlerGuard extends ThrottlerGuard {
  protected override getTracker({ session }: Record<string, any>): Promise<string> {
    return Promise.resolve((session as Session).id);
  }
}

@Controller()
class VisitController {
  @Get('visit')
  visit(@Session() session: Session) {
    return session.updateAttribute<number>('visits', (visits = 0) => visits + 1);
  }
}

export const companion: Companion = {
  imports: [ThrottlerModule.forRoot([{ ttl: 3_600_000, limit: 2 }])],
  controllers: [VisitController],
  providers: [{ provide: APP_GUARD, useClass: SessionThrottlerGuard }],
};
