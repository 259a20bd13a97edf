import { BadRequestException, Body, Controller, Get, HttpCode, Put } from '@nestjs/common';
import { Session } from '@nest-session/core';

/** The session as the page shows it. */
export interface SessionView {
  /** Nothing is stored yet, and no cookie sent. */
  readonly isNew: boolean;
  /** Opens nothing: the cookie holds a token, and this is its hash. */
  readonly id: string;
  readonly principalName: string | undefined;
  readonly items: readonly string[];
  /** Seconds. */
  readonly maxInactiveInterval: number;
}

const LONGEST = 24 * 60 * 60;

@Controller('session')
export class LifetimeController {
  @Get()
  show(@Session() session: Session): SessionView {
    const { isNew, id, principalName, maxInactiveInterval } = session;
    return { isNew, id, principalName, items: session.getAttributeOrDefault('items', []), maxInactiveInterval };
  }

  /** Has the session end this many seconds after its last request; starts it when there is none. */
  @Put()
  @HttpCode(204)
  change(@Session() session: Session, @Body('maxInactiveInterval') seconds: unknown): void {
    if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1 || seconds > LONGEST) {
      throw new BadRequestException(`maxInactiveInterval takes whole seconds from 1 to ${LONGEST}`);
    }
    session.maxInactiveInterval = seconds;
    // A session without attributes is not worth storing, so a new one gets an empty cart.
    if (session.isNew) session.setAttribute('items', []);
  }
}
