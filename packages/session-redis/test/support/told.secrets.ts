import { Body, Controller, Injectable, type ModuleMetadata, Post } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSecurityEvent,
  OnSessionEvent,
  type SecurityEvent,
  Session,
  SessionDeletedEvent,
  SessionEvent,
  Sessions,
} from '@nest-session/core';
import {
  deadline,
  type DeadlineEvent,
  DeadlineEvents,
  DeadlineModule,
  Deadlines,
  OnDeadline,
} from '@nest-session/deadlines';
import { ForeignSessions } from '@nest-session/core/internal';
import { SessionEventGroups, type RedisSessionModuleOptions } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { eventually, type HttpAgent } from '@nest-session/testing';
import { App } from './app.fixture.js';

/** What an application tells the library that nobody else is to know. */
export const SECRETS = {
  value: 'secret-value-4111-1111',
  attribute: 'secretAttribute',
  principal: 'secret-user@example.org',
  team: 'secret-team',
  device: 'secret-browser/7.1',
  oldId: 'secret-connect-sid',
  key: 'secret-order-77',
  data: 'secret-card-4222',
} as const;

const NAME: string = SECRETS.attribute;

const order = deadline<string>('order');

@Injectable()
export class SecretHandlers {
  readonly heard: string[] = [];
  readonly deadlines: string[] = [];
  readonly securityEvents: SecurityEvent[] = [];
  fails = true;

  @OnSessionEvent(SessionDeletedEvent)
  handle({ session }: SessionDeletedEvent) {
    if (this.fails) throw new Error('on purpose');
    this.heard.push(session.id);
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear() {
    // It has only to be read.
  }

  @OnDeadline(order)
  handleDeadline({ key, data }: DeadlineEvent<typeof order>) {
    if (this.fails) throw new Error('on purpose');
    this.deadlines.push(`${key} ${data}`);
  }

  @OnDeadline(order, { broadcast: true })
  hearDeadline() {
    // It has only to be read.
  }

  @OnSecurityEvent()
  watch(event: SecurityEvent) {
    this.securityEvents.push(event);
  }
}

@Controller('secrets')
class SecretsController {
  @Post('set')
  set(@Session() session: Session, @Body() { value }: { value: string }) {
    session.setAttribute(NAME, [value]);
    session.setAttribute('team', SECRETS.team);
  }

  @Post('push')
  async push(@Session() session: Session, @Body() { value }: { value: string }) {
    await session.updateAttribute<string[]>(NAME, (values = []) => [...values, value]);
    session.getAttribute<string[]>(NAME)!.push(`${value} in place`);
  }

  @Post('remove')
  remove(@Session() session: Session) {
    session.removeAttribute(NAME);
  }

  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn(SECRETS.principal, { remember: true });
  }

  @Post('shorten')
  shorten(@Session() session: Session) {
    session.maxInactiveInterval = 60;
    session.changeSessionId();
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }
}

/** An application that has secrets in every operation of the library. */
export class SecretsApplication {
  /** Each token that a client has got. */
  readonly tokens = new Set<string>();

  private constructor(
    private readonly app: App,
    readonly handlers: SecretHandlers,
  ) {}

  static async start(
    sessionIds: 'hashed' | 'plain',
    redis: RedisSessionModuleOptions,
    imports: ModuleMetadata['imports'] = [],
  ): Promise<SecretsApplication> {
    const app = await App.start({
      session: {
        sessionIds,
        touchInterval: 0,
        devices: true,
        maxSessions: { perPrincipal: 2 },
        indexes: { team: (session) => session.getAttribute<string>('team') },
      },
      redis: { ...redis, cleanup: { cron: '0 0 0 29 2 *' }, events: { attempts: 1 } },
      imports: [
        DeadlineModule,
        RedisDeadlineModule.forRoot({ ...redis, namespace: `${redis.namespace}-due`, events: { attempts: 1 } }),
        ...imports,
      ],
      controllers: [SecretsController],
      providers: [SecretHandlers],
    });
    return new SecretsApplication(app, app.nest.get(SecretHandlers));
  }

  /** `store`: the entry of another library under a key. */
  async useAll(store: (key: string, text: string) => Promise<unknown>): Promise<void> {
    const sessions = this.app.nest.get(Sessions, { strict: false });
    const repository = this.app.nest.get(IndexedSessionRepository, { strict: false });
    const visitors = [await this.#visit(), await this.#visit(), await this.#visit()];
    for await (const { id } of sessions.ofPrincipal(SECRETS.principal)) await sessions.end(id);
    const [found] = await repository.findByIndex('team', SECRETS.team);
    if (found) await repository.deleteById(found.id);
    await sessions.count(SECRETS.principal);
    await repository.findByPrincipalName(SECRETS.principal);
    await visitors[0]!.post('/secrets/sign-out');

    const key = `sess:${SECRETS.oldId}`;
    await store(key, SECRETS.value);
    const attributes = (text: string) => ({ attributes: new Map([[SECRETS.attribute, text]]) });
    const read = (text: string) => ({ ...attributes(text), principalName: SECRETS.principal });
    await this.app.nest.get(ForeignSessions, { strict: false }).move(key, 'i'.repeat(43), read);
    await sessions.endAll(SECRETS.principal);
    await this.#visit();
    await sessions.endEverySession();
    await this.app.sweeper.runOnce({ ahead: 3_600_000 });
    await this.#useDeadlines();
    await this.#replay();
    await this.app.agent().get('/read', { headers: { cookie: `SESSION=${'x'.repeat(43)}` } });
  }

  /** Writes that fail. Returns what their clients got. */
  async fail(spoil: () => Promise<unknown>): Promise<string[]> {
    const agent = await this.#visit();
    await spoil();
    const responses = [
      await agent.post('/secrets/push', { value: SECRETS.value }),
      await agent.post('/secrets/sign-in'),
    ];
    return responses.map(({ status, text }) => `${status} ${text}`);
  }

  stop(): Promise<void> {
    return this.app.stop();
  }

  async #visit(): Promise<HttpAgent> {
    const agent = this.app.agent();
    const post = async (path: string, body?: object) => {
      await agent.post(`/secrets/${path}`, body, { headers: { 'user-agent': SECRETS.device } });
      this.tokens.add(agent.cookie('SESSION')!);
    };
    const { value } = SECRETS;
    await post('set', { value });
    await post('sign-in');
    await post('push', { value });
    await post('remove');
    await post('push', { value });
    await post('shorten');
    return agent;
  }

  async #useDeadlines(): Promise<void> {
    const deadlines = this.app.nest.get(Deadlines, { strict: false });
    const { key, data } = SECRETS;
    for (const other of [key, `${key}-b`]) await deadlines.schedule(order, other, { in: '1h', data });
    await deadlines.schedule(order, key, { in: '2h', data });
    await deadlines.get(order, key);
    await deadlines.list(order);
    await deadlines.cancel(order, `${key}-b`);
    await deadlines.reschedule(order, key, { in: 0 });
    const events = this.app.nest.get(DeadlineEvents, { strict: false });
    await eventually(async () => {
      if ((await events.deadLetters()).length === 0) throw new Error('The deadline is no dead letter yet');
    });
  }

  async #replay(): Promise<void> {
    const groups = this.app.nest.get(SessionEventGroups, { strict: false });
    await eventually(async () => {
      if ((await groups.deadLetters()).length < 2) throw new Error('Not every event is a dead letter yet');
    });
    this.handlers.fails = false;
    await groups.replayAll();
    await eventually(() => {
      if (this.handlers.heard.length < 2) throw new Error('Not every dead letter was handled again');
    });
    await groups.discardAll();
    await this.app.nest.get(DeadlineEvents, { strict: false }).replayAll();
    await eventually(() => {
      if (this.handlers.deadlines.length === 0) throw new Error('The deadline was not handled again');
    });
  }
}
