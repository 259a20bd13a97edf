// What resolvers of GraphQL do with sessions, by Apollo.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, Field, GraphQLModule, Mutation, ObjectType, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { MapSessionModule, Session, SessionAttribute, SessionModule } from '@nest-session/core';
import { HttpAgent } from '@nest-session/testing';

@ObjectType()
class Account {
  @Field(() => String, { nullable: true })
  name?: string;

  @Field(() => [String])
  items!: string[];
}

@Resolver(() => Account)
class AccountResolver {
  @Query(() => Account)
  account(): object {
    return {};
  }

  @Mutation(() => Account)
  login(@Session() session: Session, @Args('name') name: string): object {
    session.signIn(name);
    return {};
  }

  @Mutation(() => Account)
  async add(@Session() session: Session, @Args('item') item: string): Promise<object> {
    await session.updateAttribute('items', (items = []) => [...items, item]);
    return {};
  }

  @ResolveField()
  name(@Session() session: Session): string | undefined {
    return session.principalName;
  }

  @ResolveField()
  items(@SessionAttribute('items') items: string[] = []): string[] {
    return items;
  }
}

@Module({
  imports: [
    SessionModule.forRoot(),
    MapSessionModule.forRoot(),
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
  ],
  providers: [AccountResolver],
})
class AccountModule {}

test('resolvers of GraphQL, and those of fields, have the session', async () => {
  const adapter = process.env['ADAPTER'] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app = await NestFactory.create(AccountModule, adapter, { logger: false });
  const agent = await HttpAgent.for(app);
  const ask = async (query: string) => (await agent.post('/graphql', { query })).json<{ data: unknown }>().data;
  assert.deepEqual(await ask('mutation { add(item: "apple") { name items } }'), {
    add: { name: null, items: ['apple'] },
  });
  const visitor = agent.fork();
  assert.deepEqual(await ask('mutation { login(name: "ada") { name } }'), { login: { name: 'ada' } });
  assert.deepEqual(await ask('{ account { name items } }'), { account: { name: 'ada', items: ['apple'] } });
  assert.notEqual(agent.cookie('SESSION'), visitor.cookie('SESSION'));
  await app.close();
});
