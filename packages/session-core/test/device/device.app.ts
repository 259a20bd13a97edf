import { Controller, type DynamicModule, Get, Post, Sse } from '@nestjs/common';
import { interval, map } from 'rxjs';
import { ManualClock } from '@nest-session/testing';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import {
  Authenticated,
  BrowserSessions,
  DeviceBound,
  MapSessionRepository,
  OnSecurityEvent,
  OnSessionEvent,
  type SecurityEvent,
  Session,
  SessionBoundEvent,
  type SessionModuleOptions,
} from '../../src/index.js';
import { type SessionAppOptions, startApp, TestStoreModule } from '../support/session.app.js';
import { DeviceBrowser } from './device.browser.js';

/** Routes that ask for the session, for a user, for a proof, and for none. */
@Controller()
export class DeviceRoutes {
  constructor(private readonly browserSessions: BrowserSessions) {}

  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('kiosk')
  kiosk(@Session() session: Session) {
    session.signIn('ann', { deviceBound: false });
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('lose')
  lose(@Session() session: Session) {
    session.removeAttribute('nest-session.visitor.device');
  }

  @Get('who')
  who(@Session() session: Session) {
    return { name: session.principalName ?? null, device: session.device ?? null };
  }

  @Get('assets')
  asset(@Session() session: Session) {
    return session.principalName;
  }

  @Get('list')
  async list() {
    return [...(await this.browserSessions.list()).values()].map(({ principalName }) => principalName).join();
  }

  @Get('list-devices')
  async devices() {
    return [...(await this.browserSessions.list()).values()].map(({ device }) => device ?? null);
  }

  @Post('become-ann')
  becomeAnn(@Session() session: Session) {
    session.principalName = 'ann';
  }

  @Post('become-bob')
  becomeBob(@Session() session: Session) {
    session.principalName = 'bob';
  }

  @Authenticated()
  @Get('inside')
  inside() {
    return 'in';
  }

  @Authenticated()
  @Sse('stream')
  stream() {
    return interval(100).pipe(map((data) => ({ data })));
  }

  @DeviceBound()
  @Get('money')
  money() {
    return 'money';
  }

  @DeviceBound(false)
  @Get('landing')
  landing(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }
}

/** What `@OnSecurityEvent()` has heard since the application was started: the kind and the reason of each. */
export const heard: string[] = [];

/** What `SessionBoundEvent` has told since then: the name, the user and the attributes. */
export const bound: string[] = [];

export class Hears {
  @OnSessionEvent(SessionBoundEvent)
  bound({ eventName, principalName, session }: SessionBoundEvent) {
    bound.push(`${eventName} ${principalName} ${session.attributeNames.join()}`);
  }

  @OnSecurityEvent('missing-proof', 'refused-proof')
  hear({ kind, reason }: SecurityEvent) {
    heard.push(`${kind} ${reason}`);
  }
}

export const MINUTE = 60_000;

/** Sessions of one application or several, and the clock by which they end. */
export interface DeviceStore {
  /** Has the repository. */
  readonly module: DynamicModule;
  readonly clock: { advance(ms: number): Promise<void> };
}

type StartOptions = Partial<SessionAppOptions> & {
  /** Another application with the same sessions. */
  readonly beside?: { readonly sessions: DeviceStore };
};

export type Devices = ReturnType<typeof devicesOn>;

/** Applications whose sessions are bound. `newStore`: makes a store without a session. */
export function devicesOn(newStore: (options: SessionModuleOptions) => DeviceStore) {
  /** Starts an application behind a proxy that ends TLS, whose store has a clock of its own, and a browser. */
  async function startDevices(
    deviceBound: SessionModuleOptions['deviceBound'] = { mode: 'enforce' },
    { beside, ...options }: StartOptions = {},
  ) {
    const session: SessionModuleOptions = { deviceBound: deviceBound!, timeout: '12h', ...options.session };
    const sessions = beside?.sessions ?? newStore(session);
    const shared = { trustProxy: 'loopback', controllers: [DeviceRoutes], providers: [Hears] };
    heard.length = bound.length = 0;
    const app = await startApp({ ...shared, ...options, session, storeModule: sessions.module });
    return { ...app, sessions, clock: sessions.clock, browser: new DeviceBrowser(app.origin) };
  }

  /** Signs in and registers, and waits until no request can be under way that left before. */
  async function signedIn(deviceBound?: SessionModuleOptions['deviceBound'], options?: StartOptions) {
    const started = await startDevices(deviceBound, options);
    await started.browser.post('/sign-in');
    await started.browser.get('/who');
    await started.clock.advance(MINUTE);
    heard.length = 0;
    return started;
  }

  return { startDevices, signedIn };
}

export const IN_MEMORY = devicesOn((options) => {
  const clock = new ManualClock(Date.now());
  const store = new MapSessionRepository({ ...resolveSessionOptions(options), clock });
  return { module: TestStoreModule.of(store), clock: { advance: async (ms) => clock.advance(ms) } };
});
