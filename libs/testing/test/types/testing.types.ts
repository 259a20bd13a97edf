// What tests of applications write, and what must not compile, against the built types. Checked by npm run typecheck.
import type { INestApplication } from '@nestjs/common';
import { expectTypeOf } from 'expect-type';
import { SessionExpiredEvent } from '@nest-session/core';
import { eventually, HttpAgent, RedisServer, signIn, TestSessionModule } from '@nest-session/testing';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
  }
}

export async function signedIn(app: INestApplication): Promise<void> {
  const agent = await signIn(app, { principalName: 'ann', attributes: { items: ['apple'] } });
  expectTypeOf(agent).toEqualTypeOf<HttpAgent>();
  expectTypeOf(agent.headersFor('/')).toEqualTypeOf<Record<string, string>>();
  const response = await agent.get('/');
  expectTypeOf(response.json<{ id: string }>().id).toEqualTypeOf<string>();
  expectTypeOf(response.json()).toEqualTypeOf<unknown>();
  // @ts-expect-error read-only
  response.status = 200;
  // @ts-expect-error not the declared type
  await signIn(app, { attributes: { items: 'apple' } });
  // @ts-expect-error not declared
  await signIn(app, { attributes: { theme: 'dark' } });
  // @ts-expect-error an unknown property
  await signIn(app, { principal: 'ann' });
}

export async function redis(): Promise<void> {
  const server = await RedisServer.start({ args: ['--maxmemory', '10mb'] });
  // @ts-expect-error read-only
  server.port = 6379;
  // @ts-expect-error an unknown option
  await RedisServer.start({ arguments: [] });
  // @ts-expect-error start() waits until Redis replies
  new RedisServer();
}

export async function facts(): Promise<void> {
  expectTypeOf(await eventually(() => Promise.resolve(1))).toEqualTypeOf<number>();
  // @ts-expect-error milliseconds
  await eventually(() => true, { timeout: '20s' });
}

export const used = [TestSessionModule, SessionExpiredEvent];

type Testing = typeof import('@nest-session/testing');

export type NotForApplications = [
  // @ts-expect-error of @nest-session/testing/contracts
  Testing['sessionRepositoryContract'],
  // @ts-expect-error of @nest-session/testing/contracts
  Testing['registerChecks'],
  // @ts-expect-error of @nest-session/core
  Testing['SessionModule'],
  // @ts-expect-error of the private test-infrastructure package
  Testing['TcpProxy'],
  // @ts-expect-error of the private test-infrastructure package
  Testing['LeakGuard'],
];
