import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Get, Header, HttpCode, Inject, Post } from '@nestjs/common';
import { Authenticated, Session, Sessions } from '@nest-session/core';
import { SteppableRedisServer, TcpProxy } from '@nest-session/test-infrastructure';
import { launchBindingChromium, selfSignedCertificate } from '@nest-session/test-infrastructure/browser';
import { eventually } from '@nest-session/testing';
import type { BrowserContext, Page } from 'playwright-core';
import { DeviceRoutes, heard, Hears, MINUTE } from '../../../session-core/test/device/device.app.js';
import { DeviceBrowser } from '../../../session-core/test/device/device.browser.js';
import { toldOf } from '../../../session-core/test/device/device.shop.js';
import { randomOf } from '../../../session-core/test/device/random.js';
import { App } from '../support/app.fixture.js';
import { TlsGateway } from '../support/tls.gateway.js';

@Controller()
class HourRoutes {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Get('callback')
  @Header('Content-Type', 'text/html')
  callback(@Session() session: Session) {
    session.signIn('ann');
    return 'signed in';
  }

  @Authenticated()
  @Post('order')
  @HttpCode(200)
  order() {
    return 'ordered';
  }

  @Authenticated()
  @Post('turn')
  @HttpCode(200)
  turn(@Session() session: Session) {
    session.changeSessionId();
  }

  @Authenticated()
  @Post('end-others')
  @HttpCode(200)
  async endOthers(@Session() session: Session) {
    await this.sessions.endAll('ann', { except: session });
  }
}

/** What its user does meanwhile. */
const ACTIVITIES = ['page', 'two tabs', 'ten requests', 'link', 'order', 'other device', 'turn', 'sign-in'] as const;
type Activity = (typeof ACTIVITIES)[number];

const FAULTS = [
  'nothing',
  'Redis is killed',
  'Redis is frozen',
  'a reply of Redis is lost',
  'the proofs are answered 503',
  'answers to proofs are lost',
  'the application is started again',
] as const;
type Fault = (typeof FAULTS)[number];

/** They write another token: whose answer is lost signs in again, with or without a key. */
const WRITES_TOKEN: readonly Activity[] = ['turn', 'sign-in'];
const OF_PROOFS: readonly Fault[] = ['nothing', 'the proofs are answered 503', 'answers to proofs are lost'];

/** How often Chromium sends the same registration. */
const REGISTRATIONS = 3;

const DEVICE = '/session/device';
const REGISTER = `${DEVICE}/register`;

/**
 * Hours of a user whose Chromium binds its session, with one wall clock for it and for Redis, which a test steps: the
 * cookies end by it, and the proofs. What happens in which order follows from the seed.
 */
export class ChromiumHour {
  /** What has happened, for whoever must find out why. */
  readonly #story: string[] = [];
  #told: readonly string[] = [];
  #minutes = 0;
  #app: App | undefined;
  #page!: Page;
  #signIns = 0;

  private constructor(
    private readonly random: () => number,
    private readonly redis: SteppableRedisServer,
    private readonly proxy: TcpProxy,
    private readonly gateway: TlsGateway,
    private readonly browser: BrowserContext,
  ) {}

  static async #start(random: () => number): Promise<ChromiumHour> {
    const redis = await SteppableRedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const proxy = await TcpProxy.start(redis);
    const certificate = await selfSignedCertificate(['shop.test', 'idp.example']);
    const gateway = await TlsGateway.start(certificate);
    const browser = await launchBindingChromium(certificate.cert, await redis.clock.environment());
    const hour = new ChromiumHour(random, redis, proxy, gateway, browser);
    hour.#page = await browser.newPage();
    hour.#told = await toldOf(hour.#page);
    await hour.#startApplication();
    heard.length = 0;
    await hour.#do('sign-in');
    await hour.#isIn();
    return hour;
  }

  async #stop(): Promise<void> {
    await this.browser.close();
    await this.gateway.stop();
    await this.#app?.stop();
    await this.proxy.stop();
    await this.redis.stop();
  }

  /**
   * Resolves to how often the browser has renewed its proof.
   * @throws Error when the user was signed out, or the browser has lost its binding
   */
  static async live(seed: number, minutes: number): Promise<number> {
    const hour = await ChromiumHour.#start(randomOf(seed));
    try {
      while (hour.#minutes < minutes) await hour.#step();
      return hour.#told.filter((each) => each === 'Refreshed').length;
    } catch (error) {
      throw new Error([(error as Error).message, `Seed ${seed}`, ...hour.#story].join('\n'), { cause: error });
    } finally {
      await hour.#stop();
    }
  }

  async #step(): Promise<void> {
    const activity = this.#draw(ACTIVITIES);
    const fault = this.#draw(WRITES_TOKEN.includes(activity) ? OF_PROOFS : FAULTS);
    await this.#stepClock(this.#drawPause(fault === 'nothing' ? 0.7 : 0.3));
    this.#story.push(`after ${this.#minutes.toFixed(1)} min, ${activity}, while ${fault}`);
    this.gateway.lost.length = 0;
    const heal = await this.#break(fault, activity === 'sign-in' ? REGISTER : DEVICE);
    const doing = this.#do(activity);
    await pause(300 + this.random() * 2000);
    await heal();
    await doing;
    await this.#isIn();
  }

  async #do(activity: Activity): Promise<void> {
    if (activity === 'page') await this.#open('/inside');
    else if (activity === 'two tabs') {
      const second = await this.browser.newPage();
      await Promise.all([this.#open('/inside'), this.#open('/money', second)]);
      await second.close();
    } else if (activity === 'link') {
      const to = `https://shop.test:${this.gateway.port}/inside?a=1`;
      await this.#page.goto(`https://idp.example:${this.gateway.port}/?to=${encodeURIComponent(to)}`);
      await this.#page.click('a');
      await this.#page.waitForURL(to).catch(() => undefined);
    } else if (activity === 'other device') {
      const other = new DeviceBrowser(this.#app?.url ?? '');
      await other.post('/sign-in').catch(() => undefined);
      await this.#fetch('/end-others');
    } else if (activity === 'sign-in') {
      this.#signIns++;
      await this.#open('/callback');
    } else if (activity === 'ten requests') {
      await Promise.all(Array.from({ length: 10 }, () => this.#fetch('/order')));
    } else await this.#fetch(activity === 'turn' ? '/turn' : '/order');
  }

  async #open(path: string, page = this.#page): Promise<number> {
    const response = await page.goto(`https://shop.test:${this.gateway.port}${path}`).catch(() => undefined);
    return response?.status() ?? 0;
  }

  async #fetch(path: string): Promise<void> {
    const send = async (to: string) => {
      await fetch(to, { method: 'POST' }).catch(() => undefined);
    };
    await this.#page.evaluate(send, path).catch(() => undefined);
  }

  /** Sooner or later: while the browser waits for its next attempt to prove, the answer is 503. */
  async #isIn(): Promise<void> {
    await this.#until(() => this.#enters());
    await this.#until(async () => {
      const status = await this.#open('/money');
      // It could not register: with the first page after a minute it may again.
      if (status === 403) await this.#stepClock(MINUTE + 1000);
      if (status === 403) await this.#enters();
      return status === 200;
    });
  }

  async #enters(): Promise<boolean> {
    const status = await this.#open('/inside');
    if (status === 401 && this.#isUnheard) await this.#signInAgain();
    return status === 200;
  }

  /** Whether no answer to a registration has reached the browser: its key counts, and it has no proof. */
  get #isUnheard(): boolean {
    return this.gateway.lost.filter((each) => each.endsWith('/register 200')).length >= REGISTRATIONS;
  }

  async #signInAgain(): Promise<void> {
    const { seen, lost } = this.gateway;
    await this.#forgetMissingProof();
    await this.#do('sign-in');
    await this.#forgetMissingProof();
    lost.length = 0;
    seen.splice(0, seen.length, ...seen.filter((each) => each !== 'GET /inside 401'));
  }

  /** Of the events of a second, the last one comes late. */
  async #forgetMissingProof(): Promise<void> {
    await eventually(() => heard.some((each) => /^missing-proof (forged|missing)$/.test(each)));
    heard.splice(0, heard.length, ...heard.filter((each) => !each.startsWith('missing-proof ')));
  }

  async #until(isServed: () => Promise<boolean>): Promise<void> {
    let [isDone, problems] = [false, this.#findProblems()];
    await eventually(async () => {
      isDone ||= await isServed();
      problems = this.#findProblems();
      return isDone || problems.length > 0;
    }, WAIT);
    if (problems.length > 0) throw new Error(problems.join(', '));
  }

  /** What was refused though it could be served, and the ends of bindings that no sign-in has replaced. */
  #findProblems(): string[] {
    const refused = this.gateway.seen.filter((each) => / 4\d\d$/.test(each) && !ALLOWED.test(each));
    const unproven = heard.filter((each) => !EXPLAINED.test(each));
    const ends = this.#told.filter((each) => each.startsWith('ended'));
    const isReplaced = ends.every((each) => each === 'ended ServerRequested') && ends.length < this.#signIns;
    return [...refused, ...unproven, ...(isReplaced ? [] : ends)];
  }

  /** Resolves to what heals it. */
  async #break(fault: Fault, path: string): Promise<() => unknown> {
    const { redis, proxy, gateway } = this;
    const times = 1 + Math.floor(this.random() * 5);
    switch (fault) {
      case 'nothing':
        return () => undefined;
      case 'Redis is killed':
        await redis.kill();
        return () => redis.restart();
      case 'Redis is frozen':
        redis.freeze();
        return () => redis.thaw();
      case 'a reply of Redis is lost': {
        let isOver = false;
        void proxy.dropNextReply((burst) => !isOver && burst.includes('EVAL'));
        return () => (isOver = true);
      }
      case 'the proofs are answered 503':
        gateway.break('refuse', path, times);
        return () => gateway.heal();
      case 'answers to proofs are lost':
        gateway.break('lose', path, times);
        return () => gateway.heal();
      case 'the application is started again':
        await this.#stopApplication();
        return () => this.#startApplication();
    }
  }

  async #startApplication(): Promise<void> {
    this.#app = await App.start({
      redis: { url: this.proxy.url, commandTimeout: '500ms' },
      session: { timeout: '12h', deviceBound: { mode: 'enforce' } },
      controllers: [DeviceRoutes, HourRoutes],
      providers: [Hears],
      handlers: false,
      configure: (nest: { set(name: string, value: string): void }) => nest.set('trust proxy', 'loopback'),
    });
    this.gateway.target = this.#app.url;
  }

  async #stopApplication(): Promise<void> {
    this.gateway.target = undefined;
    await this.#app?.stop();
    this.#app = undefined;
  }

  async #stepClock(ms: number): Promise<void> {
    await this.redis.stepClock(Math.round(ms));
    this.#minutes += ms / MINUTE;
  }

  #draw<T>(all: readonly T[]): T {
    return all[Math.floor(this.random() * all.length)]!;
  }

  /** Seconds, minutes, or so long that the proof is about to end, or has. */
  #drawPause(shareOfShort: number): number {
    const [kind, share] = [this.random(), this.random()];
    if (kind > shareOfShort) return (8 + share * 5) * MINUTE;
    return kind < shareOfShort / 2 ? (5 + share * 55) * 1000 : (1 + share * 3) * MINUTE;
  }
}

/** A browser that could not register is not bound, and one whose challenge is too old is asked once more. */
const ALLOWED = /favicon|GET \/money 403|refresh 403/;
/** A link from another site, and what the browser itself says of an outage. */
const EXPLAINED = / (cross-site|server_error|unreachable|device-not-bound)$/;
// Milliseconds. After an outage, a browser waits for about half of it again.
const WAIT = { timeout: 120_000, interval: 200 };
