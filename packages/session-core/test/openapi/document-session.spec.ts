import { Body, Controller, Get, type INestApplication, Module, Post, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ApiConflictResponse, DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import {
  Authenticated,
  AuthenticatedGuard,
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  CsrfGuard,
  HeaderSessionIdResolver,
  MapSessionModule,
  Public,
  Session,
  SessionModule,
  type SessionModuleOptions,
  SessionStoreError,
  SkipCsrf,
} from '@nest-session/core';
import { documentSession } from '@nest-session/core/swagger';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';

LeakGuard.install();

@Controller()
class ShopController {
  @Get('offers')
  offers() {
    return [];
  }

  @Post('cart')
  add(@Session() session: Session, @Body('item') item: string) {
    session.setAttribute('item', item);
  }

  @Get('orders')
  @Authenticated()
  orders() {
    return [];
  }

  @Post('orders')
  @UseGuards(CsrfGuard)
  @ApiConflictResponse({ description: 'sold out' })
  order(@Session() session: Session) {
    session.signIn('ada');
  }

  @Get('stock')
  stock(@Session() _session: Session) {
    throw new SessionStoreError('no reply');
  }
}

@Controller('open')
@SkipCsrf()
class OpenController {
  @Post()
  @Public()
  post() {}

  @Post('closed')
  closed() {}
}

let app: INestApplication;
afterEach(() => app.close());

/** What it documents, and the statuses of each route by its method and path. */
async function documented(session: SessionModuleOptions = {}, guards: unknown[] = []) {
  @Module({
    imports: [SessionModule.forRoot(session), MapSessionModule.forRoot()],
    controllers: [ShopController, OpenController],
    providers: guards.map((guard) => ({ provide: APP_GUARD, useExisting: guard as never })),
  })
  class AppModule {}
  const testing = await Test.createTestingModule({ imports: [AppModule] }).compile();
  app = testing.createNestApplication({ logger: false });
  const document = SwaggerModule.createDocument(app, documentSession(new DocumentBuilder(), app).build());
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, { responses: object }>).map(([method, { responses }]) => {
      const statuses = Object.keys(responses).filter((status) => Number(status) >= 400);
      return [`${method} ${path}`, statuses.join(' ')];
    }),
  );
  return { document, routes: Object.fromEntries(operations) as Record<string, string> };
}

const operationOf = ({ paths }: OpenAPIObject, path: string, method: 'get' | 'post') => paths[path]![method]!;

it('tells which routes may respond with what, and which need a session', async () => {
  const { document, routes } = await documented();
  expect(routes).toEqual({
    'get /offers': '',
    'post /cart': '409 413 503',
    'get /orders': '401 503',
    'post /orders': '403 409 413 503',
    'get /stock': '409 413 503',
    'post /open': '',
    'post /open/closed': '',
  });
  expect(document.components!.securitySchemes).toEqual({ session: { type: 'apiKey', in: 'cookie', name: 'SESSION' } });
  expect(operationOf(document, '/orders', 'get').security).toEqual([{ session: [] }]);
  expect(operationOf(document, '/cart', 'post').security).toBeUndefined();
});

it('takes the guards of all routes and their exceptions into account, and a rule for new sessions', async () => {
  const { routes } = await documented({ mayCreate: () => true }, [AuthenticatedGuard, CsrfGuard]);
  expect(routes).toEqual({
    'get /offers': '401 503',
    'post /cart': '401 403 409 413 429 503',
    'get /orders': '401 503',
    'post /orders': '401 403 409 413 429 503',
    'get /stock': '401 409 413 429 503',
    'post /open': '',
    'post /open/closed': '401 503',
  });
});

it('leaves what a route says of a response itself', async () => {
  const { document } = await documented();
  expect(operationOf(document, '/orders', 'post').responses).toMatchObject({ 409: { description: 'sold out' } });
});

it.each<[SessionModuleOptions, object[]]>([
  [{ cookie: { secure: true } }, [{ in: 'cookie', name: '__Host-SESSION' }]],
  [{ multipleSessions: true, cookie: { name: 'shop' } }, [{ in: 'cookie', name: 'shop' }]],
  [{ sessionIdResolver: HeaderSessionIdResolver.xAuthToken() }, [{ in: 'header', name: 'X-Auth-Token' }]],
  [
    {
      sessionIdResolver: new CompositeSessionIdResolver(
        HeaderSessionIdResolver.xAuthToken(),
        new CookieSessionIdResolver(),
      ),
    },
    [
      { in: 'header', name: 'X-Auth-Token' },
      { in: 'cookie', name: 'SESSION' },
    ],
  ],
])('knows what carries the token with %j', async (options, carriers) => {
  const { document } = await documented(options);
  const schemes = Object.values(document.components!.securitySchemes!);
  expect(schemes).toEqual(carriers.map((carrier) => ({ type: 'apiKey', ...carrier })));
  const names = Object.keys(document.components!.securitySchemes!);
  expect(operationOf(document, '/orders', 'get').security).toEqual(
    expect.arrayContaining(names.map((name) => ({ [name]: [] }))),
  );
});

it.each([
  [401, 'get', '/orders', {}],
  [403, 'post', '/orders', {}],
  [413, 'post', '/cart', { item: 'x'.repeat(2_000) }],
  [429, 'post', '/cart', { item: 'apple' }],
  [503, 'get', '/stock', {}],
] as const)('documents the body of the %d that is sent', async (status, method, path, body) => {
  const { document } = await documented({
    mayCreate: () => status !== 429,
    maxAttributeSize: 1_000,
  });
  const agent = await HttpAgent.for(app);
  const response = await (method === 'get' ? agent.get(path) : agent.post(path, body));
  expect(response.status).toBe(status);
  const { content } = operationOf(document, path, method).responses[status] as unknown as {
    content: { 'application/json': { schema: { required: string[]; properties: object } } };
  };
  const sent = Object.keys(response.json<object>());
  const { required, properties } = content['application/json'].schema;
  expect(sent).toEqual(expect.arrayContaining(required));
  expect(Object.keys(properties)).toEqual(expect.arrayContaining(sent));
});
