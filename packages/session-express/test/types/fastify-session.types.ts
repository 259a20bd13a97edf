// What applications of @fastify/session write after their move, with the declaration of the page on moving.
import { expectTypeOf } from 'expect-type';
import type { Session as ExpressSession } from 'express-session';
import type { FastifyRequest } from 'fastify';
import type {} from '@nest-session/express-session';

declare module 'fastify' {
  interface Session {
    userId?: string;
    items?: string[];
  }

  interface FastifyRequest {
    session: ExpressSession &
      Session & {
        get<Name extends keyof Session>(name: Name): Session[Name];
        set<Name extends keyof Session>(name: Name, value: Session[Name]): void;
        regenerate(names: (keyof Session)[]): Promise<void>;
      };
  }
}

export async function handler({ session }: FastifyRequest): Promise<void> {
  expectTypeOf(session.userId).toEqualTypeOf<string | undefined>();
  expectTypeOf(session.get('items')).toEqualTypeOf<string[] | undefined>();
  session.set('items', ['apple']);
  session.userId = 'ann';
  // @ts-expect-error a text
  session.set('userId', 1);
  // @ts-expect-error not declared
  session.get('theme');
  await session.regenerate(['items']);
  await session.regenerate();
  await session.save();
  await session.destroy();
  session.signIn('ann');
  // @ts-expect-error signIn() or signOut()
  session.principalName = 'ann';
}
