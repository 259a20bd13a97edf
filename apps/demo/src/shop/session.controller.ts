import { BadRequestException, Body, Controller, Get, HttpCode, ParseEnumPipe, Put } from '@nestjs/common';
import { Session } from '@nest-session/core';

const LONGEST = 24 * 60 * 60;
const knownTheme = new ParseEnumPipe({ light: 'light', dark: 'dark' });

@Controller('session')
export class SessionController {
  /** The session as the page shows it. */
  @Get()
  show(@Session() session: Session) {
    const { isNew, id, principalName, maxInactiveInterval } = session;
    const flash = session.getAttribute('flash');
    if (flash) session.removeAttribute('flash');
    const items = session.getAttributeOrDefault('items', []);
    const [theme, order] = [session.getAttribute('theme'), session.getAttribute('order')];
    return { isNew, id, principalName, items, order, theme, flash, maxInactiveInterval };
  }

  /** Lets the session end this many seconds after its last request. Starts a session if there is none. */
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

  @Put('theme')
  @HttpCode(204)
  setTheme(@Session() session: Session, @Body('theme', knownTheme) theme: 'light' | 'dark'): void {
    session.setAttribute('theme', theme);
  }
}

/** The response to `GET /session`. */
export type SessionView = ReturnType<SessionController['show']>;
