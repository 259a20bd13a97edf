import {
  type CallHandler,
  type ExecutionContext,
  HttpException,
  type NestInterceptor,
  ValidationPipe,
  VersioningType,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { CsrfGuard } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { map } from 'rxjs';
import { AdminApp, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();
afterEach(closeApps);

/** The interceptor of Nest's own documentation. */
const wrap: NestInterceptor = {
  intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(map((data: unknown) => ({ data }))),
};

describe.each(PLATFORMS)('in an application on %s', (platform) => {
  it('everything is below the global prefix, the page with addresses that fit', async () => {
    const app = await AdminApp.start({ platform, configure: (nest) => nest.setGlobalPrefix('api/v2') });
    const admin = app.agent();
    await admin.post('/api/v2/sign-in/ada');
    expect((await admin.get(`/api/v2${PATH}/overview`)).status).toBe(200);
    expect((await admin.get(`${PATH}/overview`)).status).toBe(404);
    const page = await admin.get(`/api/v2${PATH}`);
    const [, script] = /src="([^"]+)"/.exec(page.text)!;
    const { pathname } = new URL(script!, `http://host/api/v2${PATH}`);
    const file = await admin.get(pathname);
    expect([file.status, file.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8']);
  });

  it.each([
    { type: VersioningType.URI, path: PATH },
    { type: VersioningType.HEADER, header: 'x-version', path: PATH },
  ] as const)('it is in every version: $type', async ({ path, ...versioning }) => {
    const app = await AdminApp.start({
      platform,
      admin: { guards: 'none' },
      configure: (nest) => nest.enableVersioning({ defaultVersion: '3', ...versioning } as never),
    });
    for (const headers of [{}, { 'x-version': '7' }]) {
      expect((await app.agent().get(`${path}/overview`, { headers })).status).toBe(200);
    }
  });

  it('global interceptors, pipes and filters have their say', async () => {
    const app = await AdminApp.start({
      platform,
      admin: { guards: 'none' },
      configure: (nest) => {
        nest.useGlobalInterceptors(wrap);
        nest.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true, transform: true }));
        nest.useGlobalFilters({
          catch: (error: HttpException, host) =>
            nest
              .getHttpAdapter()
              .reply(host.switchToHttp().getResponse(), { filtered: error.message }, error.getStatus()),
        });
      },
    });
    const bob = await app.signIn('bob');
    const list = await app.agent().get(`${PATH}/sessions?username=bob&limit=5`);
    expect(list.json()).toMatchObject({ data: { total: 1 } });
    expect(bob).toBeDefined();
    const missing = await app.agent().get(`${PATH}/sessions/x`);
    expect([missing.status, missing.json()]).toEqual([404, { filtered: 'No live session has this id' }]);
    expect((await app.agent().get(PATH)).text).toMatch(/^<!doctype html>/i);
  });

  it('its actions need no token of a global CsrfGuard', async () => {
    const app = await AdminApp.start({
      platform,
      admin: { guards: 'none' },
      providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
    });
    expect((await app.agent().request('DELETE', `${PATH}/sessions?username=bob`)).json()).toEqual({ ended: 0 });
  });

  it('the page leads from its address with a slash to the one without', async () => {
    const app = await AdminApp.start({ platform, admin: { guards: 'none' } });
    const response = await app.agent().get(`${PATH}/`);
    if (platform === 'Fastify') expect(response.status).toBe(404);
    else expect([response.status, response.headers['location']]).toEqual([308, '../sessions']);
  });
});

it('in an application on Express, requests may have a property `raw`, such as their body', async () => {
  const app = await AdminApp.start({
    configure: (nest) => {
      nest.use((request: { raw?: unknown }, _: unknown, next: () => void) => {
        request.raw = Buffer.from('{}');
        next();
      });
    },
  });
  const bob = await app.signIn('bob');
  const admin = await app.admin();
  expect((await admin.get(PATH)).status).toBe(200);
  expect((await admin.request('DELETE', `${PATH}/sessions/${bob.id}`)).status).toBe(204);
  expect(app.events).toMatchObject([{ action: 'end-session', by: 'ada', path: `${PATH}/sessions/${bob.id}` }]);
});
