import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { ShortTextPipe } from '../short-text.pipe.js';

/** Signs in whoever has a name: a demo has no passwords. */
@Controller()
export class AuthController {
  @Post('login')
  @HttpCode(204)
  login(@Session() session: Session, @Body('name', ShortTextPipe) name: string): void {
    // Whoever knew the id before must not have the session of the one who signs in now.
    session.changeSessionId();
    session.principalName = name;
  }

  @Post('logout')
  @HttpCode(204)
  logout(@Session() session: Session): void {
    session.invalidate();
  }
}
