import { type INestApplicationContext, Module, type Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionModule, SessionRepository } from '@nest-session/core';
import { type StorePrimitives, storePrimitivesOf } from '@nest-session/core/internal';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionExpirationSweeper } from '@nest-session/redis';

@Module({})
class StoreModule {}

/** The store of an application that is started, without HTTP around it. */
export interface StoreContext {
  readonly store: StorePrimitives;
  /** Looks at all members of all buckets. */
  sweep(): Promise<unknown>;
  stop(): Promise<void>;
}

/** `providers`: those of the application, such as the handlers of its events. */
export async function startStore(
  redis: RedisSessionModuleOptions,
  providers: readonly Provider[] = [],
): Promise<StoreContext> {
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ ...redis, requireAtStart: true })];
  const app: INestApplicationContext = await NestFactory.createApplicationContext(
    { module: StoreModule, imports, providers: [...providers] },
    { logger: ['error', 'warn'] },
  );
  return {
    store: storePrimitivesOf(app.get(SessionRepository)),
    sweep: () => app.get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 }),
    stop: () => app.close(),
  };
}

export async function inFlight<T>(items: readonly T[], limit: number, act: (item: T) => Promise<unknown>) {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await act(item);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
