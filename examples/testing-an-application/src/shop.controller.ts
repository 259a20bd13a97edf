import { Body, Controller, Get, Post } from '@nestjs/common';
import { Authenticated, Session } from '@nest-session/core';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
  }
}

@Controller()
export class ShopController {
  @Post('login')
  login(@Session() session: Session, @Body('name') name: string): void {
    // Check the password here.
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
  @Authenticated()
  orders(@Session() { principalName }: Session): { readonly user: string | undefined } {
    return { user: principalName };
  }
}
