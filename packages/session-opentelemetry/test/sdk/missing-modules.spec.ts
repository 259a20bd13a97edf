import type { ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MapSessionModule, SessionModule } from '@nest-session/core';
import { DeadlineModule, MapDeadlineModule } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { SessionTelemetryModule } from '../../src/index.js';

LeakGuard.install();

const telemetry = SessionTelemetryModule.forRoot();
const session = SessionModule.forRoot();

async function start(imports: NonNullable<ModuleMetadata['imports']>): Promise<void> {
  class AppModule {}
  const app = await NestFactory.create({ module: AppModule, imports }, { logger: false, abortOnError: false });
  await app.init();
  await app.close();
}

it.each([
  { missing: 'SessionModule and a store', imports: [telemetry] },
  { missing: 'a store', imports: [telemetry, session] },
])('the module says that $missing must be imported, too', async ({ imports }) => {
  await expect(start(imports)).rejects.toThrow(
    'SessionTelemetryModule: There are no sessions to measure, and no deadlines: add SessionModule.forRoot() and ' +
      'RedisSessionModule.forRoot(), or the module of another store, to the imports of the root module; for deadlines, ' +
      'DeadlineModule and RedisDeadlineModule.forRoot().',
  );
});

it('the module leaves it to a store to say that SessionModule is missing', async () => {
  await expect(start([telemetry, MapSessionModule.forRoot()])).rejects.toThrow(
    'MapSessionModule: SessionModule is missing',
  );
});

it('the module needs no sessions where there are deadlines', async () => {
  await expect(start([telemetry, DeadlineModule, MapDeadlineModule])).resolves.toBeUndefined();
});

it('the module says that the factory of its options returns nothing', async () => {
  const options = { useFactory: () => undefined as never };
  await expect(
    start([SessionTelemetryModule.forRootAsync(options), session, MapSessionModule.forRoot()]),
  ).rejects.toThrow(
    'SessionTelemetryModule: The factory of forRootAsync() has returned undefined: return an object with the options.',
  );
});
