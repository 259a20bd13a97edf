import { Body, Controller, Get, Post, UnauthorizedException } from '@nestjs/common';
import { Session } from '@nest-session/core';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
  }
}

@Controller()
export class ShopController {
  @Post('login')
  login(@Session() session: Session, @Body('name') name: string): void {
    session.signIn(name);
  }

  @Post('logout')
  logout(@Session() session: Session): void {
    session.signOut();
  }

  @Post('cart')
  add(@Session() session: Session, @Body('item') item: string): Promise<string[] | undefined> {
    return session.updateAttribute('items', (items = []) => [...items, item]);
  }

  @Get('orders')
  orders(@Session() session: Session): { readonly user: string } {
    if (session.principalName === undefined) throw new UnauthorizedException();
    return { user: session.principalName };
  }
}
