import type { AddressInfo, Server } from 'node:net';
import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type ClientProviderOptions,
  type ClientProxy,
  ClientProxyFactory,
  ClientsModule,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
} from '@nestjs/microservices';
import { Session, SessionContext, SessionModule } from '@nest-session/core';
import { RedisSessionModule, RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { firstValueFrom, lastValueFrom, map } from 'rxjs';

LeakGuard.install();

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(async () => {
  await server.stop();
});

@Injectable()
class Greeter {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  greet() {
    return this.context.isActive ? `hello ${this.context.session.id}` : 'hello nobody';
  }
}

@Controller()
class TestController {
  constructor(
    @Inject(Greeter) private readonly greeter: Greeter,
    @Inject(RedisSessionRepository) private readonly repository: RedisSessionRepository,
  ) {}

  @Get('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return { id: session.id };
  }

  @MessagePattern('visited')
  async visited(id: string) {
    const session = await this.repository.findById(id);
    return { greeting: this.greeter.greet(), visited: session?.getAttribute('visited') };
  }
}

function appModule() {
  class AppModule {}
  return {
    module: AppModule,
    imports: [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: server.url, notifications: 'off', commandTimeout: '1m' }),
    ],
    controllers: [TestController],
    providers: [Greeter],
  };
}

@Controller()
class ShopController {
  constructor(
    @Inject(Greeter) private readonly greeter: Greeter,
    @Inject('PRICES') private readonly prices: ClientProxy,
  ) {}

  @Get('piped')
  piped() {
    return this.prices.send<number>('price', {}).pipe(map(() => this.greeter.greet()));
  }

  @Get('awaited')
  async awaited() {
    await firstValueFrom(this.prices.send<number>('price', {}));
    return this.greeter.greet();
  }

  @MessagePattern('price')
  price() {
    return 42;
  }
}

it.each(['TCP', 'REDIS'] as const)('a reply over %s is in the session of nobody, until it is awaited', async (name) => {
  const port = await freePort();
  const options: MicroserviceOptions & ClientProviderOptions =
    name === 'TCP'
      ? { name: 'PRICES', transport: Transport.TCP, options: { host: '127.0.0.1', port } }
      : {
          name: 'PRICES',
          transport: Transport.REDIS,
          options: { host: '127.0.0.1', port: Number(new URL(server.url).port) },
        };
  const module = appModule();
  module.imports.push(ClientsModule.register([options]));
  module.controllers.push(ShopController as never);
  const app = await NestFactory.create(module, { logger: false, abortOnError: false });
  app.connectMicroservice(options);
  await app.startAllMicroservices();
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  // The first request opens the connection over which the replies for all others come.
  for (const agent of [new HttpAgent(url), new HttpAgent(url), new HttpAgent(url)]) {
    const { id } = (await agent.get('/visit')).json<{ id: string }>();
    expect((await agent.get('/piped')).text).toBe('hello nobody');
    expect((await agent.get('/awaited')).text).toBe(`hello ${id}`);
  }
  await app.close();
});

it('message handlers of a hybrid application have no request session and find sessions by id', async () => {
  const app = await NestFactory.create(appModule(), { logger: false, abortOnError: false });
  const microservice = app.connectMicroservice<MicroserviceOptions>(
    { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } },
    { inheritAppConfig: true },
  );
  await app.startAllMicroservices();
  await app.listen(0, '127.0.0.1');
  const { id } = (await new HttpAgent(await app.getUrl()).get('/visit')).json<{ id: string }>();

  const { port } = microservice.unwrap<Server>().address() as AddressInfo;
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  expect(await lastValueFrom(client.send('visited', id))).toEqual({ greeting: 'hello nobody', visited: true });
  await client.close();
  await app.close();
});
