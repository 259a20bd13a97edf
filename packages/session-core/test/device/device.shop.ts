import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  Controller,
  Get,
  Header,
  HttpCode,
  type INestApplication,
  Post,
  type Provider,
  Redirect,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { eventually, ManualClock } from '@nest-session/testing';
import { launchBindingChromium, selfSignedCertificate } from '@nest-session/test-infrastructure/browser';
import type { BrowserContext, Page } from 'playwright-core';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { Session, SessionModule, SessionRepository, type SessionModuleOptions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { DeviceRoutes, heard, Hears, MINUTE } from './device.app.js';

/** A request that a server has answered. */
interface Seen {
  /** Such as `POST /session/device/refresh`, with `register` for each handle. */
  readonly what: string;
  readonly status: number;
  readonly site: string | undefined;
  /** The names of the cookies. */
  readonly cookies: readonly string[];
  readonly skipped: string | undefined;
  /** The session that is asked for, at a refresh. */
  readonly id: string | undefined;
}

/** What a browser opens besides the routes of the other tests. */
@Controller()
class ShopRoutes {
  @Get('callback')
  @Header('Content-Type', 'text/html')
  callback(@Session() session: Session) {
    session.signIn('ann');
    return 'signed in';
  }

  @Post('callback')
  posted(@Session() session: Session) {
    return this.callback(session);
  }

  @Get('callback-home')
  @Redirect('/landing')
  callbackHome(@Session() session: Session) {
    session.signIn('ann');
  }

  @Get('sign-out')
  @Redirect('/landing', 303)
  signOut(@Session() session: Session) {
    session.signOut();
  }

  @Get('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
    return 'rotated';
  }

  @Get('forget')
  @Header('Clear-Site-Data', '"cookies"')
  forget() {
    return 'forgotten';
  }

  @Post('order')
  @HttpCode(200)
  order(@Session() session: Session) {
    return session.principalName ?? 'nobody';
  }

  @Get('assets/logo')
  logo() {
    return 'logo';
  }

  @Get('worker')
  @Header('Content-Type', 'text/javascript')
  @Header('Service-Worker-Allowed', '/')
  worker() {
    return 'addEventListener("fetch", (event) => event.respondWith(fetch(event.request)))';
  }
}

/**
 * An application over https whose sessions are bound, another site, and a Chromium that binds. The store has a clock of
 * its own; to the browser, a proof has run out once its cookie is removed.
 */
export class DeviceShop {
  /** In the order in which they were answered. */
  readonly seen: Seen[] = [];

  private constructor(
    readonly app: INestApplication,
    readonly idp: Server,
    readonly store: GatedRepository,
    readonly clock: ManualClock,
    readonly browser: BrowserContext,
    readonly page: Page,
    /** The names of what the browser tells of its bound sessions. */
    readonly told: string[],
  ) {
    app.getHttpServer().prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      // Routers change the URL later.
      const { method, url } = request;
      response.once('finish', () => this.seen.push(seenOf({ method, url }, request, response)));
    });
  }

  static async start(
    options: SessionModuleOptions = {},
    prefix = '',
    providers: Provider[] = [Hears],
  ): Promise<DeviceShop> {
    const session = { timeout: '12h', deviceBound: { mode: 'enforce' as const }, ...options };
    const clock = new ManualClock(Date.now());
    const store = new GatedRepository({ ...resolveSessionOptions(session), clock });
    const provider = { provide: SessionRepository, useValue: store };
    const certificate = await selfSignedCertificate(['shop.test', 'app.shop.test', 'idp.example']);
    const root = {
      module: class {},
      imports: [
        SessionModule.forRoot(session),
        { module: class {}, global: true, providers: [provider], exports: [SessionRepository] },
      ],
      controllers: [ShopRoutes, DeviceRoutes],
      providers,
    };
    const app = await NestFactory.create(root, new ExpressAdapter(), { httpsOptions: certificate, logger: false });
    app.setGlobalPrefix(prefix);
    await app.listen(0, '127.0.0.1');
    const idp = createServer(certificate, (request, response) => {
      const to = new URL(request.url!, 'https://idp.example').searchParams.get('to')!;
      // A page of its own in between: a chain that only begins at the shop would send its cookies.
      const page = `<a href="${to}">go</a><form method="post" action="${to}"><button>post</button></form>`;
      response.setHeader('Content-Type', 'text/html').end(page);
    }).listen(0, '127.0.0.1');
    await once(idp, 'listening');
    const browser = await launchBindingChromium(certificate.cert);
    const page = await browser.newPage();
    heard.length = 0;
    return new DeviceShop(app, idp, store, clock, browser, page, await toldOf(page));
  }

  async stop(): Promise<void> {
    await this.browser.close();
    this.idp.close();
    this.idp.closeAllConnections();
    await this.app.close();
  }

  url(path: string): string {
    const { port } = this.app.getHttpServer().address() as AddressInfo;
    return `https://shop.test:${port}${path}`;
  }

  /** Opens a page of the shop as by its address, and resolves to its status and text. */
  async open(path: string, page = this.page): Promise<[status: number, text: string]> {
    const response = await page.goto(this.url(path));
    return [response!.status(), await page.innerText('body')];
  }

  /** Opens a page of another origin, which asks the shop for something. */
  async fetchFrom(host: string, path: string): Promise<void> {
    const { port } = this.idp.address() as AddressInfo;
    await this.page.goto(`https://${host}:${port}/?to=x`);
    const send = async (to: string) => void (await fetch(to, { mode: 'no-cors', credentials: 'include' }));
    await this.page.evaluate(send, this.url(path));
  }

  /** Opens a page of another site, and clicks there on what leads to the shop. */
  async clickAtOtherSite(path: string, what: 'a' | 'button' = 'a', page = this.page): Promise<void> {
    const { port } = this.idp.address() as AddressInfo;
    await page.goto(`https://idp.example:${port}/?to=${encodeURIComponent(this.url(path))}`);
    await page.click(what);
  }

  /** Waits until the browser has told of it, `times` times in all. */
  async until(name: string, times = 1): Promise<void> {
    await eventually(() => {
      expect(this.told.filter((each) => each === name).length).toBeGreaterThanOrEqual(times);
    });
  }

  /** Waits until the server has answered a request like that. */
  untilSeen(what: string, facts: Partial<Seen> = {}): Promise<void> {
    return eventually(() => {
      expect(this.seen).toContainEqual(expect.objectContaining({ what, ...facts }));
    });
  }

  /** Signs in, and waits until a page has been served that proves it, and no request can be under way from before. */
  async signIn(): Promise<void> {
    await this.open('/callback');
    await this.until('registered');
    expect(await this.open('/money')).toEqual([200, 'money']);
    this.clock.advance(MINUTE);
    this.seen.length = 0;
    this.told.length = 0;
    heard.length = 0;
  }

  /** To the browser, its proof has run out. */
  async runOut(name = 'SESSION-device'): Promise<void> {
    expect(await this.cookieNames()).toContain(name);
    await this.browser.clearCookies({ name });
  }

  async cookieNames(): Promise<string[]> {
    return (await this.browser.cookies()).map(({ name }) => name).toSorted();
  }

  /** What was requested, in the order of the answers, without what browsers ask for by themselves. */
  get requests(): string[] {
    return this.seen.map(({ what, status }) => `${what} ${status}`).filter((each) => !each.includes('favicon'));
  }

  /** The same, of the endpoints alone. */
  get own(): string[] {
    return this.requests
      .filter((each) => each.includes('/session/device/'))
      .map((each) => each.replace(/.*device./, ''));
  }
}

function seenOf(
  { method, url = '' }: { method?: string | undefined; url?: string | undefined },
  { headers }: IncomingMessage,
  { statusCode }: ServerResponse,
): Seen {
  const path = url.replace(/\/register\/.*/, '/register').replace(/\?.*/, '');
  return {
    what: `${method} ${path}`,
    status: statusCode,
    site: headers['sec-fetch-site'] as string | undefined,
    cookies: (headers.cookie ?? '')
      .split('; ')
      .flatMap((each) => each.split('=', 1).filter(Boolean))
      .toSorted(),
    skipped: headers['secure-session-skipped'] as string | undefined,
    id: headers['sec-secure-session-id'] as string | undefined,
  };
}

/** A list to which the browser of a page adds what it tells of its bound sessions from now on. */
export async function toldOf(page: Page): Promise<string[]> {
  const told: string[] = [];
  const cdp = await page.context().newCDPSession(page);
  cdp.on('Network.deviceBoundSessionEventOccurred' as never, (event: never) => told.push(...namesIn(event)));
  await cdp.send('Network.enable');
  await cdp.send('Network.enableDeviceBoundSessions' as never, { enable: true } as never);
  return told;
}

/** Names for what the browser tells: `registered`, `refreshed`, and otherwise the names that it has for it. */
function namesIn(event: {
  readonly creationEventDetails?: { readonly fetchResult: string };
  readonly refreshEventDetails?: { readonly refreshResult: string; readonly fetchResult?: string };
  readonly terminationEventDetails?: { readonly deletionReason: string };
}): string[] {
  const { creationEventDetails: created, refreshEventDetails: refreshed, terminationEventDetails: ended } = event;
  return [
    ...(created ? [created.fetchResult === 'Success' ? 'registered' : `registration ${created.fetchResult}`] : []),
    ...(refreshed ? [refreshed.refreshResult] : []),
    ...(ended ? [`ended ${ended.deletionReason}`] : []),
  ];
}
