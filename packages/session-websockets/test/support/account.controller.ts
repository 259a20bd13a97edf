import { Controller, Param, Post } from '@nestjs/common';
import { Session } from '@nest-session/core';

/** The account pages that belong to the sockets. */
@Controller()
export class AccountController {
  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string) {
    session.changeSessionId();
    session.principalName = name;
  }

  @Post('visits/:count')
  set(@Session() session: Session, @Param('count') count: string) {
    session.setAttribute('visits', Number(count));
  }

  @Post('count')
  async count(@Session() session: Session) {
    await session.updateAttribute<number>('visits', (visits = 0) => visits + 1);
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}
