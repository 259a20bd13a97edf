import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Inject } from '@nestjs/common';
import { Context, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { Sessions } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import type { HttpAgent } from '@nest-session/testing';
import { closeApps, startApp } from '../support/express-session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** As of a boilerplate for express-session: resolvers get the request in the context, and keep the user by its id. */
@Resolver()
class UserResolver {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Mutation(() => Boolean)
  login(@Context() { req }: any) {
    req.session.userId = 7;
    req.session.lastLogin = new Date(0);
    return true;
  }

  @Query(() => String, { nullable: true })
  me(@Context() { session }: any) {
    return session.userId === undefined ? null : `${session.userId} since ${session.lastLogin}`;
  }

  @Mutation(() => Boolean)
  async logout(@Context() { req }: any) {
    await new Promise<void>((resolve, reject) =>
      req.session.destroy((error?: Error) => (error ? reject(error) : resolve())),
    );
    return true;
  }

  @Mutation(() => Boolean)
  async logoutEverywhere(@Context() { req }: any) {
    return (await this.sessions.endAll(String(req.session.userId))) > 0;
  }
}

const ask = async (client: HttpAgent, query: string) =>
  (await client.post('/graphql', { query })).json<{ data: unknown }>();

it('the session in the context of GraphQL signs users in, out, and out everywhere', async () => {
  const { agent } = await startApp({
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        context: ({ req, res }: any) => ({ req, res, session: req.session as unknown }),
      }),
    ],
    providers: [UserResolver],
    express: { principal: ({ userId }) => userId as number | undefined },
  });
  const [phone, laptop] = [agent(), agent()];
  const user = { data: { me: '7 since 1970-01-01T00:00:00.000Z' } };
  const nobody = { data: { me: null } };
  for (const each of [phone, laptop]) {
    expect(await ask(each, '{ me }')).toEqual(nobody);
    expect(await ask(each, 'mutation { login }')).toEqual({ data: { login: true } });
    expect(await ask(each, '{ me }')).toEqual(user);
  }
  await ask(phone, 'mutation { logout }');
  expect([await ask(phone, '{ me }'), await ask(laptop, '{ me }')]).toEqual([nobody, user]);
  await ask(phone, 'mutation { login }');
  expect(await ask(phone, 'mutation { logoutEverywhere }')).toEqual({ data: { logoutEverywhere: true } });
  expect([await ask(phone, '{ me }'), await ask(laptop, '{ me }')]).toEqual([nobody, nobody]);
});
