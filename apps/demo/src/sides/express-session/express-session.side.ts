import {
  Body,
  Controller,
  Delete,
  Get,
  HttpCode,
  ParseBoolPipe,
  Post,
  Query,
  Redirect,
  Req,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import type { Request } from 'express';
import { SameOriginGuard } from '../../http/same-origin.guard.js';
import { ShortTextPipe } from '../../short-text.pipe.js';
import { askForPrice } from '../price.js';
import { ACCOUNT, type AccountView, ROBBED } from '../side.js';
import { called } from './called.js';
import type { StoredSession } from './stored-session.js';

/** The left side of the comparison: a shop with express-session. The right side has the same routes. */
@UseGuards(SameOriginGuard)
@Controller('compared')
export class ExpressSessionSide {
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

  /** Signs in whose cookie is stolen then. */
  @Post('robbed')
  @HttpCode(204)
  signInRobbed(@Req() { session }: Request): void {
    session.name = ROBBED;
  }

  @Post('logout')
  @HttpCode(204)
  async logout(@Req() { session }: Request): Promise<void> {
    await called((done) => session.destroy(done));
  }

  /** express-session cannot find the sessions of an account, so this reads all that there are. */
  @Delete('sessions')
  async signOutEverywhere(@Req() { session, sessionStore }: Request): Promise<{ readonly ended: number }> {
    if (session.name === undefined) throw new UnauthorizedException('Sign in first');
    const all = (await called<StoredSession[]>((done) => sessionStore.all!(done as never))) ?? [];
    const others = all.filter(({ id, name }) => name === session.name && id !== session.id);
    await Promise.all(others.map(({ id }) => called((done) => sessionStore.destroy(id, done))));
    return { ended: others.length };
  }
}
