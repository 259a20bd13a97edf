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
  UseGuards,
} from '@nestjs/common';
import { Authenticated, Session, Sessions, SkipCsrf } from '@nest-session/core';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import { ShortTextPipe } from '../short-text.pipe.js';
import { askForPrice } from './price.js';
import { ACCOUNT, type AccountView, ROBBED } from './side.js';

/** The right side of the comparison: a shop with nest-session. The left side has the same routes. */
@SkipCsrf()
@UseGuards(SameOriginGuard)
@Controller('compared')
export class NestSessionSide {
  constructor(private readonly sessions: Sessions) {}

  @Get('account')
  account(@Session() session: Session): AccountView {
    const { id, principalName: name = null } = session;
    return { id, name, items: session.getAttributeOrDefault('items', []) };
  }

  @Post('cart')
  async add(
    @Session() session: Session,
    @Body('name', ShortTextPipe) name: string,
    @Query('slowly', new ParseBoolPipe({ optional: true })) isSlow = false,
  ): Promise<string[] | undefined> {
    await askForPrice(isSlow);
    return session.updateAttribute('items', (items = []) => [...items, name]);
  }

  @Post('login')
  @Redirect('/compared/account', 303)
  login(@Session() session: Session): void {
    session.signIn(ACCOUNT);
  }

  /** Signs in whose cookie is stolen then. */
  @Post('robbed')
  @HttpCode(204)
  signInRobbed(@Session() session: Session): void {
    session.signIn(ROBBED);
  }

  @Post('logout')
  @HttpCode(204)
  logout(@Session() session: Session): void {
    session.signOut();
  }

  @Delete('sessions')
  @Authenticated()
  async signOutEverywhere(@Session() session: Session): Promise<{ readonly ended: number }> {
    return { ended: await this.sessions.endAll(session.principalName!, { except: session }) };
  }
}
