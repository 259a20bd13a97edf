import { NestFactory } from '@nestjs/core';
import { MapSessionModule, SessionModule } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { SessionTelemetryModule } from '../../src/index.js';

LeakGuard.install();

const telemetry = SessionTelemetryModule.forRoot();
const session = SessionModule.forRoot();

async function start(imports: (typeof session)[]): Promise<void> {
  class AppModule {}
  const app = await NestFactory.create({ module: AppModule, imports }, { logger: false, abortOnError: false });
  await app.init();
}

it.each([
  { missing: 'SessionModule and a store', imports: [telemetry] },
  { missing: 'a store', imports: [telemetry, session] },
])('the module says that $missing must be imported, too', async ({ imports }) => {
  await expect(start(imports)).rejects.toThrow(
    'SessionTelemetryModule: There are no sessions to measure: add SessionModule.forRoot() and ' +
      'RedisSessionModule.forRoot(), or the module of another store, to the imports of the root module.',
  );
});

it('the module leaves it to a store to say that SessionModule is missing', async () => {
  await expect(start([telemetry, MapSessionModule.forRoot()])).rejects.toThrow(
    'MapSessionModule: SessionModule is missing',
  );
});
