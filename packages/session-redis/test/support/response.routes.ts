import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { setImmediate } from 'node:timers/promises';
import {
  type ArgumentsHost,
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Head,
  Header,
  HttpCode,
  HttpException,
  Inject,
  Injectable,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  Post,
  Redirect,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
  Version,
} from '@nestjs/common';
import { EMPTY, interval, map, of, take, tap } from 'rxjs';
import { Session, SessionContext } from '@nest-session/core';

/** The common methods of both platforms' replies. Express has the response of Node.js itself, Fastify as `raw`. */
export interface Reply {
  readonly raw?: ServerResponse;
  hijack?(): void;
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body?: unknown): unknown;
  redirect(url: string): unknown;
}

interface RequestSession {
  readonly url: string;
  readonly session: Session;
}

export const ATTRIBUTE = 'response-marks';
export const FILE_SIZE = 5 * 1024 * 1024;

/** Adds a mark to those that earlier responses left in the session. */
export function mark(session: Session, by: string): void {
  session.setAttribute(ATTRIBUTE, [...session.getAttributeOrDefault<string[]>(ATTRIBUTE, []), by]);
}

function fiveMegabytes(): Readable {
  return Readable.from(Array<Buffer>(80).fill(Buffer.alloc(FILE_SIZE / 80, 'x')));
}

function sessionOf(context: ExecutionContext | ArgumentsHost): Session {
  return context.switchToHttp().getRequest<RequestSession>().session;
}

function rawOf(reply: Reply): ServerResponse {
  return reply.raw ?? (reply as unknown as ServerResponse);
}

@Injectable()
class MarksAndDenies implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    mark(sessionOf(context), 'guard');
    return false;
  }
}

@Injectable()
class MarksAndAllows implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    mark(sessionOf(context), 'pipe');
    return true;
  }
}

@Catch(BadRequestException)
class RemembersTheError implements ExceptionFilter {
  catch(error: BadRequestException, host: ArgumentsHost): void {
    const session = sessionOf(host as ExecutionContext);
    const before = session.getAttribute(ATTRIBUTE) as string[];
    mark(session, 'filter');
    host.switchToHttp().getResponse<Reply>().status(400).send({ before, message: error.message });
  }
}

/** Marks the session after the handler. */
@Injectable()
class MarksAfterwards implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap(() => mark(sessionOf(context), 'interceptor-of-route')));
  }
}

@Injectable()
class RespondsInstead implements NestInterceptor {
  intercept(context: ExecutionContext) {
    mark(sessionOf(context), 'interceptor-responds');
    return of({ ok: true });
  }
}

/** Marks the session after the handler of one route. */
class MarksRoute implements NestInterceptor {
  constructor(private readonly route: string) {}

  intercept(context: ExecutionContext, next: CallHandler) {
    const { url } = context.switchToHttp().getRequest<RequestSession>();
    if (!url.endsWith(this.route)) return next.handle();
    return next.handle().pipe(tap(() => mark(sessionOf(context), this.route)));
  }
}

/** For `app.useGlobalInterceptors()`. */
export const globalInterceptor = new MarksRoute('global-interceptor');

/** For `APP_INTERCEPTOR` of the root module, which Nest scans before `SessionModule`. */
export const outerInterceptor = new MarksRoute('outer-interceptor');

@Injectable({ scope: Scope.REQUEST })
class PerRequest {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  mark(by: string): void {
    mark(this.context.session, by);
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class PerTenant {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  mark(by: string): void {
    mark(this.context.session, by);
  }
}

@Controller()
export class ResponseController {
  @Get('plain')
  plain() {
    return { ok: true };
  }

  @Get('read')
  read(@Session() session: Session) {
    return session.getAttributeOrDefault<string[]>(ATTRIBUTE, []);
  }

  @Get('value')
  value(@Session() session: Session) {
    mark(session, 'value');
    return { ok: true };
  }

  @Get('promise')
  async promise(@Session() session: Session) {
    await setImmediate();
    mark(session, 'promise');
    return { ok: true };
  }

  @Get('observable')
  observable(@Session() session: Session) {
    return of({ ok: true }).pipe(tap(() => mark(session, 'observable')));
  }

  @Get('observable-of-many')
  observableOfMany(@Session() session: Session) {
    const last = (n: number) => {
      if (n === 2) mark(session, 'observable-of-many');
      return { n };
    };
    return interval(1).pipe(take(3), map(last));
  }

  @Get('observable-of-none')
  observableOfNone(@Session() session: Session) {
    mark(session, 'observable-of-none');
    return EMPTY;
  }

  @Get('generator')
  async *generator(@Session() session: Session) {
    mark(session, 'generator');
    yield 'a';
    await setImmediate();
    yield 'b';
  }

  @Get('web-response')
  webResponse(@Session() session: Session) {
    mark(session, 'web-response');
    return new Response('web', { status: 202, headers: { 'X-App': '1' } });
  }

  @Get('res')
  res(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'res');
    reply.send({ ok: true });
  }

  @Get('res-later')
  async resLater(@Session() session: Session, @Res() reply: Reply) {
    await setImmediate();
    mark(session, 'res-later');
    reply.status(201).send({ ok: true });
  }

  @Get('passthrough')
  passthrough(@Session() session: Session, @Res({ passthrough: true }) reply: Reply) {
    mark(session, 'passthrough');
    reply.status(202).header('Set-Cookie', 'app=1');
    return { ok: true };
  }

  @Get('redirect')
  @Redirect('/elsewhere')
  redirect(@Session() session: Session) {
    mark(session, 'redirect');
  }

  @Get('res-redirect')
  resRedirect(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'res-redirect');
    reply.status(302).redirect('/elsewhere');
  }

  @Get('html')
  @Header('Content-Type', 'text/html; charset=utf-8')
  html(@Session() session: Session) {
    mark(session, 'html');
    return '<p>hello</p>';
  }

  @Head('head')
  head(@Session() session: Session) {
    mark(session, 'head');
  }

  @Get('empty')
  @HttpCode(204)
  empty(@Session() session: Session) {
    mark(session, 'empty');
  }

  @Get('not-modified')
  @HttpCode(304)
  notModified(@Session() session: Session) {
    mark(session, 'not-modified');
  }

  @Get('guard')
  @UseGuards(MarksAndDenies)
  guard() {
    return 'never';
  }

  @Get('pipe/:number')
  @UseGuards(MarksAndAllows)
  pipe(@Param('number', ParseIntPipe) _number: number) {
    return 'never';
  }

  @Get('throw')
  throws(@Session() session: Session) {
    mark(session, 'throw');
    throw new HttpException('no', 418);
  }

  @Get('bug')
  bug(@Session() session: Session) {
    mark(session, 'bug');
    throw new TypeError('a bug');
  }

  @Get('filter')
  @UseFilters(RemembersTheError)
  filter(@Session() session: Session) {
    mark(session, 'handler');
    throw new BadRequestException('bad');
  }

  @Get('interceptor-of-route')
  @UseInterceptors(MarksAfterwards)
  interceptorOfRoute() {
    return { ok: true };
  }

  @Get('interceptor-responds')
  @UseInterceptors(RespondsInstead)
  interceptorResponds() {
    return 'never';
  }

  @Get('global-interceptor')
  globalInterceptor() {
    return { ok: true };
  }

  @Get('outer-interceptor')
  outerInterceptor() {
    return { ok: true };
  }

  @Post('malformed')
  malformed() {
    return 'never';
  }

  @Get('file')
  file(@Session() session: Session) {
    mark(session, 'file');
    return new StreamableFile(fiveMegabytes());
  }

  @Get('pipeline')
  pipeline(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'pipeline');
    pipeline(fiveMegabytes(), rawOf(reply), () => {});
  }

  @Get('awaited-pipeline')
  async awaitedPipeline(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'awaited-pipeline');
    await promisify(pipeline)(fiveMegabytes(), rawOf(reply));
  }

  @Get('write-and-end')
  writeAndEnd(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'write-and-end');
    const response = rawOf(reply);
    response.statusCode = 203;
    response.write('one ');
    response.write(Buffer.from('two '));
    response.end('three');
  }

  @Get('write-head')
  writeHead(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'write-head');
    rawOf(reply)
      .writeHead(201, { 'Content-Type': 'text/plain', 'Set-Cookie': ['app=1', 'other=2'], 'X-App': '1' })
      .end('raw');
  }

  @Get('trailers')
  trailers(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'trailers');
    const response = rawOf(reply);
    response.writeHead(200, { 'Content-Type': 'text/plain', Trailer: 'X-Sum' });
    response.write('body');
    response.addTrailers({ 'X-Sum': '1' });
    response.end();
  }

  @Get('early-hints')
  earlyHints(@Session() session: Session, @Res() reply: Reply) {
    rawOf(reply).writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
    mark(session, 'early-hints');
    reply.send({ ok: true });
  }

  @Sse('sse')
  sse(@Session() session: Session) {
    mark(session, 'sse');
    return interval(1).pipe(
      take(2),
      map((n) => ({ data: { n } })),
    );
  }

  @Get('hijack')
  hijack(@Session() session: Session, @Res() reply: Reply) {
    mark(session, 'hijack');
    reply.hijack?.();
    rawOf(reply).end('hijacked');
  }

  @Get('versioned')
  @Version('2')
  versioned(@Session() session: Session) {
    mark(session, 'versioned');
    return { ok: true };
  }
}

@Controller()
export class ScopedController {
  constructor(
    @Inject(PerRequest) private readonly perRequest: PerRequest,
    @Inject(PerTenant) private readonly perTenant: PerTenant,
  ) {}

  @Get('request-scoped')
  requestScoped() {
    this.perRequest.mark('request-scoped');
    return { ok: true };
  }

  @Get('durable')
  durable() {
    this.perTenant.mark('durable');
    return { ok: true };
  }
}

/** Outside of the global prefix. */
@Controller('outside')
export class OutsideController {
  @Get()
  outside(@Session() session: Session) {
    mark(session, 'outside');
    return { ok: true };
  }
}

export const SCOPED_PROVIDERS = [PerRequest, PerTenant];
