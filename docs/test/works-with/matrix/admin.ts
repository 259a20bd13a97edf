// The page for administrators, on the adapter that ADAPTER names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CanActivate, type ExecutionContext, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionAdminModule } from '@nest-session/admin';
import { MapSessionModule, SessionModule } from '@nest-session/core';
import { HttpAgent, signIn } from '@nest-session/testing';
import { type Adapter, ADAPTERS } from './shop.js';

@Injectable()
class Administrators {
  readonly names = ['ada'];
}

@Injectable()
class AdminGuard implements CanActivate {
  constructor(private readonly administrators: Administrators) {}

  canActivate(context: ExecutionContext) {
    const { session } = context.switchToHttp().getRequest<{ session: { principalName?: string } }>();
    return this.administrators.names.includes(session.principalName ?? '');
  }
}

@Module({
  imports: [
    SessionModule.forRoot(),
    MapSessionModule.forRoot(),
    SessionAdminModule.forRoot({ path: 'admin', guards: [AdminGuard] }),
  ],
  providers: [Administrators],
})
class AdminModule {}

test('an administrator, and nobody else, sees the page and ends the sessions of a user', async () => {
  const adapter = new ADAPTERS[process.env['ADAPTER'] as Adapter]();
  const application = await NestFactory.create(AdminModule, adapter, { logger: false });
  await application.listen(0, '127.0.0.1');
  const [ada, bob, nobody] = [
    await signIn(application, { principalName: 'ada' }),
    await signIn(application, { principalName: 'bob' }),
    await HttpAgent.for(application),
  ];
  const path = '/admin/sessions?username=bob';
  for (const agent of [bob, nobody]) assert.equal((await agent.request('DELETE', path)).status, 403);
  assert.match((await ada.get('/admin')).text, /^<!doctype html>/);
  const foreign = { headers: { 'sec-fetch-site': 'cross-site' } };
  assert.equal((await ada.request('DELETE', path, foreign)).status, 403);
  assert.deepEqual((await ada.request('DELETE', path)).json(), { ended: 1 });
  await application.close();
});
