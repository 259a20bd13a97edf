import { Body, ConflictException, Controller, Get, HttpCode, ParseEnumPipe, Post } from '@nestjs/common';
import { CsrfToken, Session } from '@nest-session/core';

/** The accounts of the shop. The demo has no passwords. */
const knownAccount = new ParseEnumPipe({ ann: 'ann', bob: 'bob' });

@Controller()
export class AuthController {
  /** The token for requests that change something. Each sign-in makes earlier tokens invalid. */
  @Get('csrf')
  csrf(@CsrfToken() token: string): { readonly token: string } {
    return { token };
  }

  @Post('login')
  @HttpCode(204)
  login(@Session() session: Session, @Body('name', knownAccount) name: string): void {
    // A sign-in keeps the cart, which must not go from one user to another.
    if (![undefined, name].includes(session.principalName)) {
      throw new ConflictException('Someone else is signed in: sign out first');
    }
    // The sign-in changes the id, so that someone who knew the old one cannot use the session.
    session.signIn(name);
    session.setAttribute('flash', `Welcome, ${name}. Your session has a new id and still has your cart.`);
  }

  @Post('logout')
  @HttpCode(204)
  logout(@Session() session: Session): void {
    session.signOut();
  }
}
