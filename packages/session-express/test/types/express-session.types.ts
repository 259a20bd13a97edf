// What applications write, against the built types. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import type { Request } from 'express';
import type { Session as CoreSession } from '@nest-session/core';
import type { SaveOutcome } from '@nest-session/core/internal';
import { ExpressSessionModule, type ExpressSessionModuleOptions } from '@nest-session/express-session';

interface Item {
  name: string;
}

// As an application declared it for express-session.
declare module 'express-session' {
  interface SessionData {
    cart: Item[];
    userId: string;
  }
}

export async function handler(req: Request): Promise<void> {
  expectTypeOf(req.session.cart).toEqualTypeOf<Item[] | undefined>();
  req.session.userId = 'ann';
  // @ts-expect-error a number
  req.session.userId = 1;
  // @ts-expect-error not declared
  void req.session.unknown;
  delete req.session.cart;
  const { userId, ...rest } = req.session;
  expectTypeOf(userId).toEqualTypeOf<string | undefined>();
  expectTypeOf(rest.cart).toEqualTypeOf<Item[] | undefined>();

  req.session.save((error) => void error);
  req.session.regenerate((error) => void error).touch();
  expectTypeOf(req.session.save()).toEqualTypeOf<Promise<SaveOutcome>>();
  await req.session.regenerate();
  await req.session.reload();
  await req.session.destroy();
  req.session.cookie.maxAge = 1;
  expectTypeOf(req.sessionID).toEqualTypeOf<string>();
  req.sessionStore.destroy('id', (error) => void error);
  expectTypeOf(req.session.isNew).toEqualTypeOf<boolean>();
  expectTypeOf(req.session.updateAttribute).toEqualTypeOf<CoreSession['updateAttribute']>();
  // @ts-expect-error signIn() or signOut()
  req.session.principalName = undefined;
  // @ts-expect-error cookie.maxAge
  req.session.maxInactiveInterval = 60;
  // @ts-expect-error of the session in SessionContext
  req.session.absoluteTimeout = 60;
}

export const options: ExpressSessionModuleOptions[] = [
  {},
  { secret: 'x', name: 'sid', prefix: 'app:', resave: false, saveUninitialized: true, rolling: true, unset: 'destroy' },
  { secret: ['x', Buffer.from('y')], cookie: { path: '/app' } },
  { principal: (session) => session.userId },
  { principal: false },
  // @ts-expect-error no such value
  { unset: 'drop' },
  // @ts-expect-error no such option
  { secrets: ['x'] },
];

ExpressSessionModule.forRoot({ principal: ({ cart, ...others }) => cart?.[0]?.name ?? (others['name'] as string) });
