import { Controller, Get } from '@nestjs/common';
import { Session } from '../../src/index.js';

/** The life of a session, in requests without a body. */
@Controller()
export class AccountController {
  @Get('name')
  name(@Session() session: Session) {
    return { name: session.getAttribute('name') };
  }

  @Get('start')
  start(@Session() session: Session) {
    session.setAttribute('name', 'ann');
  }

  @Get('login')
  login(@Session() session: Session) {
    session.changeSessionId();
  }

  @Get('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}
