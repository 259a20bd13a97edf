import { randomUUID } from 'node:crypto';
import { Controller, Get, Inject, Query, Req, Res, Session as Bag } from '@nestjs/common';
import { Session } from '@nest-session/core';
import { Redis } from 'ioredis';
import { attributesOf, type Size, valueOf } from './http.payloads.js';
import { type SpringSession, SpringSessions } from './spring-sessions.js';

/** The part of `req.session` of express-session and @fastify/session that the handlers use. */
interface SessionBag {
  [name: string]: unknown;
  regenerate(done: (error?: Error) => void): void;
}

@Controller()
export class PlainController {
  @Get('plain')
  plain() {
    return { ok: true };
  }
}

/** The handlers of an application with `SessionModule`. */
@Controller()
export class SessionController {
  @Get('start')
  start(@Session() session: Session, @Query('size') size: Size) {
    for (const [name, value] of attributesOf(size)) session.setAttribute(name, value);
    return { ok: true };
  }

  @Get('read')
  read(@Session() session: Session) {
    return { ok: session.getAttribute('a0') !== undefined };
  }

  @Get('read-all')
  readAll(@Session() session: Session) {
    let found = 0;
    for (const name of session.attributeNames) if (session.getAttribute(name) !== undefined) found++;
    return { found };
  }

  @Get('write')
  write(@Session() session: Session) {
    session.setAttribute('a0', valueOf(100));
    return { ok: true };
  }

  @Get('write-large')
  writeLarge(@Session() session: Session) {
    session.setAttribute('a0', valueOf(5000));
    return { ok: true };
  }

  @Get('login')
  logIn(@Session() session: Session) {
    session.changeSessionId();
    session.setAttribute('user', 'ada');
    return { ok: session.getAttribute('a0') !== undefined };
  }
}

/** The same handlers with `req.session` of another library. */
@Controller()
export class BagController {
  @Get('start')
  start(@Bag() session: SessionBag, @Query('size') size: Size) {
    for (const [name, value] of attributesOf(size)) session[name] = value;
    return { ok: true };
  }

  @Get('read')
  read(@Bag() session: SessionBag) {
    return { ok: session['a0'] !== undefined };
  }

  @Get('read-all')
  readAll(@Bag() session: SessionBag) {
    let found = 0;
    for (const name of Object.keys(session)) if (name !== 'cookie' && session[name] !== undefined) found++;
    return { found };
  }

  @Get('write')
  write(@Bag() session: SessionBag) {
    session['a0'] = valueOf(100);
    return { ok: true };
  }

  @Get('write-large')
  writeLarge(@Bag() session: SessionBag) {
    session['a0'] = valueOf(5000);
    return { ok: true };
  }

  /** A new session takes the place of the old one, so the handler carries over what it wants to keep. */
  @Get('login')
  async logIn(@Req() request: { session: SessionBag }) {
    const { a0 } = request.session;
    await new Promise<void>((resolve, reject) => {
      request.session.regenerate((error) => (error ? reject(error) : resolve()));
    });
    request.session['a0'] = a0;
    request.session['user'] = 'ada';
    return { ok: a0 !== undefined };
  }
}

const COOKIE = /(?:^|; )SESSION=([^;]+)/;
const TTL = 1_800_000;

interface Request {
  readonly headers: { readonly cookie?: string };
}

interface Response {
  header(name: string, value: string): unknown;
}

/** The same handlers with the fewest commands: two that load a hash with its time to live, and two that save a field. */
@Controller()
export class ByHandController {
  constructor(@Inject(Redis) private readonly redis: Redis) {}

  @Get('start')
  async start(@Res({ passthrough: true }) response: Response, @Query('size') size: Size) {
    const key = `by-hand:${randomUUID()}`;
    for (const [name, value] of attributesOf(size)) await this.#save(key, { [name]: JSON.stringify(value) });
    setCookie(response, key);
    return { ok: true };
  }

  @Get('read')
  async read(@Req() request: Request) {
    const { fields } = await this.#load(request);
    return { ok: valueIn(fields, 'a0') !== undefined };
  }

  @Get('read-all')
  async readAll(@Req() request: Request) {
    const { fields } = await this.#load(request);
    let found = 0;
    for (const name of Object.keys(fields)) if (valueIn(fields, name) !== undefined) found++;
    return { found };
  }

  @Get('write')
  async write(@Req() request: Request) {
    const { key } = await this.#load(request);
    await this.#save(key, { a0: JSON.stringify(valueOf(100)) });
    return { ok: true };
  }

  @Get('write-large')
  async writeLarge(@Req() request: Request) {
    const { key } = await this.#load(request);
    await this.#save(key, { a0: JSON.stringify(valueOf(5000)) });
    return { ok: true };
  }

  @Get('login')
  async logIn(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const { key, fields } = await this.#load(request);
    const next = `by-hand:${randomUUID()}`;
    await this.redis.rename(key, next);
    await this.#save(next, { user: JSON.stringify('ada') });
    setCookie(response, next);
    return { ok: valueIn(fields, 'a0') !== undefined };
  }

  async #load(request: Request): Promise<{ key: string; fields: Record<string, string> }> {
    const [, key = ''] = COOKIE.exec(request.headers.cookie ?? '') ?? [];
    const [fields, ttl] = await Promise.all([this.redis.hgetall(key), this.redis.pttl(key)]);
    if (ttl < 0) throw new Error('The session has ended');
    return { key, fields };
  }

  async #save(key: string, fields: Record<string, string>): Promise<void> {
    await Promise.all([this.redis.hset(key, fields), this.redis.pexpire(key, TTL)]);
  }
}

function valueIn(fields: Record<string, string>, name: string): unknown {
  const text = fields[name];
  return text === undefined ? undefined : JSON.parse(text);
}

function setCookie(response: Response, value: string): void {
  response.header('Set-Cookie', `SESSION=${value}; Path=/; HttpOnly; SameSite=Lax`);
}

/** The same handlers, which load and save as Spring Session does around its handlers. */
@Controller()
export class SpringController {
  constructor(@Inject(SpringSessions) private readonly sessions: SpringSessions) {}

  @Get('start')
  async start(@Res({ passthrough: true }) response: Response, @Query('size') size: Size) {
    const session = this.sessions.create();
    for (const [name, value] of attributesOf(size)) this.sessions.setAttribute(session, name, value);
    await this.#save(session, response);
    return { ok: true };
  }

  @Get('read')
  async read(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const session = await this.#load(request);
    await this.#save(session, response);
    return { ok: session.attributes['a0'] !== undefined };
  }

  @Get('read-all')
  async readAll(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const session = await this.#load(request);
    let found = 0;
    for (const name of Object.keys(session.attributes)) if (session.attributes[name] !== undefined) found++;
    await this.#save(session, response);
    return { found };
  }

  @Get('write')
  async write(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const session = await this.#load(request);
    this.sessions.setAttribute(session, 'a0', valueOf(100));
    await this.#save(session, response);
    return { ok: true };
  }

  @Get('write-large')
  async writeLarge(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const session = await this.#load(request);
    this.sessions.setAttribute(session, 'a0', valueOf(5000));
    await this.#save(session, response);
    return { ok: true };
  }

  @Get('login')
  async logIn(@Req() request: Request, @Res({ passthrough: true }) response: Response) {
    const session = await this.#load(request);
    this.sessions.changeSessionId(session);
    this.sessions.setAttribute(session, 'user', 'ada');
    await this.#save(session, response);
    return { ok: session.attributes['a0'] !== undefined };
  }

  async #load(request: Request): Promise<SpringSession> {
    const [, id = ''] = COOKIE.exec(request.headers.cookie ?? '') ?? [];
    return (await this.sessions.load(id)) ?? this.sessions.create();
  }

  async #save(session: SpringSession, response: Response): Promise<void> {
    await this.sessions.save(session);
    if (!session.isNew && session.id === session.originalId) return;
    setCookie(response, session.id);
  }
}
