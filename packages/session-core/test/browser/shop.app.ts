import { Controller, Get, Header, type INestApplication, Module, Param, Post, Query, UseGuards } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { LogRecorder } from '@nest-session/test-infrastructure';
import {
  CsrfGuard,
  CsrfToken,
  MapSessionModule,
  RememberMe,
  Session,
  SessionModule,
  type SessionModuleOptions,
} from '../../src/index.js';
import { selfSignedCertificate } from '@nest-session/test-infrastructure/browser';

/** The pages that a browser opens. */
@Controller()
class ShopController {
  constructor(private readonly rememberMe: RememberMe) {}

  /** Counts the visits of a session, and creates it at the first one. */
  @Get('visit')
  visit(@Session() session: Session) {
    const visits = session.getAttributeOrDefault<number>('visits', 0) + 1;
    session.setAttribute('visits', visits);
    return `visit ${visits}`;
  }

  @Get('visits')
  visits(@Session() session: Session) {
    return `visits ${session.getAttributeOrDefault<number>('visits', 0)}`;
  }

  @Post('visits')
  postedVisits(@Session() session: Session) {
    return this.visits(session);
  }

  @Get('login')
  login(@Session() session: Session) {
    session.principalName = 'ann';
    session.changeSessionId();
    return 'signed in';
  }

  @Get('login/remember')
  loginAndRemember(@Session() session: Session) {
    session.principalName = 'ann';
    this.rememberMe.remember(session);
    return 'signed in';
  }

  @Get('logout')
  logout(@Session() session: Session) {
    session.invalidate();
    return 'signed out';
  }

  /** A page that shows another in a frame. */
  @Get('frame')
  @Header('Content-Type', 'text/html')
  frame(@Query('of') of: string) {
    return `<iframe src="${new URL(of).href}"></iframe>`;
  }

  /** A page with a form that leads to another page, and with the CSRF token that it has found somewhere. */
  @Get('door/:method')
  @Header('Content-Type', 'text/html')
  door(@Param('method') method: string, @Query('to') to: string, @Query('token') token = '') {
    const url = new URL(to).href;
    const field = `<input type="hidden" name="_csrf" value="${encodeURIComponent(token)}">`;
    return `<form method="${method === 'post' ? 'post' : 'get'}" action="${url}">${field}</form>`;
  }

  /**
   * A page with a form that changes something, and with a policy that makes browsers hide the origin of its requests.
   */
  @Get('transfer')
  @Header('Content-Type', 'text/html')
  @Header('Referrer-Policy', 'no-referrer')
  transferForm(@CsrfToken() token: string) {
    return `<form method="post"><input type="hidden" name="_csrf" value="${token}"></form>`;
  }

  @Post('transfer')
  @UseGuards(CsrfGuard)
  transfer(@Session() session: Session) {
    return this.visit(session);
  }

  /** A page of a host that sets a cookie of its choice. */
  @Get('blank')
  blank() {
    return 'blank';
  }
}

/** The same application behind http and https, under every name. */
export class Shop {
  readonly log = new LogRecorder();
  readonly #apps: INestApplication[] = [];
  #httpPort = 0;
  #httpsPort = 0;

  static async start(session: SessionModuleOptions): Promise<Shop> {
    const shop = new Shop();
    shop.#httpPort = await shop.#listen(session);
    shop.#httpsPort = await shop.#listen(session, await selfSignedCertificate());
    return shop;
  }

  http(host: string, path: string): string {
    return `http://${host}:${this.#httpPort}${path}`;
  }

  https(host: string, path: string): string {
    return `https://${host}:${this.#httpsPort}${path}`;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#apps.map((app) => app.close()));
  }

  async #listen(session: SessionModuleOptions, httpsOptions?: { key: string; cert: string }): Promise<number> {
    const imports = [SessionModule.forRoot(session), MapSessionModule.forRoot()];
    @Module({ imports, controllers: [ShopController] })
    class ShopModule {}
    const options = { logger: this.log, abortOnError: false, ...(httpsOptions && { httpsOptions }) };
    // A browser keeps its connections open.
    const app = await NestFactory.create(ShopModule, new ExpressAdapter(), { ...options, forceCloseConnections: true });
    this.#apps.push(app);
    await app.listen(0, '127.0.0.1');
    return Number(new URL(await app.getUrl()).port);
  }
}
