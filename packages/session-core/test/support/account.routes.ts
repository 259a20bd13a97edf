import { Controller, Get } from '@nestjs/common';
import { Session } from '../../src/index.js';

/** Creates, rotates and ends a session, in requests without a body. */
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

  /** A new token, whether there was a session before or not. */
  @Get('signup')
  signUp(@Session() session: Session) {
    this.start(session);
    this.login(session);
  }

  @Get('signin')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Get('who')
  who(@Session() session: Session) {
    return { who: session.principalName };
  }

  @Get('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}
