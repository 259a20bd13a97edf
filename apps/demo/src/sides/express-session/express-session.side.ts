import { Body, Controller, Get, HttpCode, ParseBoolPipe, Post, Put, Query, Redirect, Req } from '@nestjs/common';
import type { Request } from 'express';
import { ShortTextPipe } from '../../short-text.pipe.js';
import { askForPrice } from '../price.js';
import { ACCOUNT, type AccountView, SECONDS_LEFT } from '../side.js';
import { AbandonedCarts } from './abandoned-carts.js';

declare module 'express-session' {
  interface SessionData {
    name: string;
    items: string[];
  }
}

/** The left side of the comparison: a shop with express-session. The right side has the same routes. */
@Controller('compared')
export class ExpressSessionSide {
  constructor(private readonly carts: AbandonedCarts) {}

  @Get('account')
  account(@Req() { session }: Request): AccountView {
    const { id, name = null, items = [] } = session;
    return { id, name, items };
  }

  @Post('cart')
  async add(
    @Req() { session }: Request,
    @Body('name', ShortTextPipe) name: string,
    @Query('slowly', new ParseBoolPipe({ optional: true })) isSlow = false,
  ): Promise<string[]> {
    await askForPrice(isSlow);
    session.items = [...(session.items ?? []), name];
    return session.items;
  }

  /** As many applications have it: without `session.save()` before the redirect. */
  @Post('login')
  @Redirect('/compared/account', 303)
  login(@Req() { session }: Request): void {
    session.name = ACCOUNT;
  }

  @Post('logout')
  @HttpCode(204)
  async logout(@Req() { session }: Request): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      session.destroy((error?: Error) => (error ? reject(error) : resolve()));
    });
  }

  /** Lets the session end soon, and its handler be killed before the mail. See `AbandonedCarts`. */
  @Put('end')
  @HttpCode(204)
  async end(@Req() { session }: Request): Promise<void> {
    session.cookie.maxAge = SECONDS_LEFT * 1000;
    await this.carts.keep(session.id, session.items ?? []);
  }
}
