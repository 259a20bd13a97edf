// Metrics of sessions, by the SDK of OpenTelemetry.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { metrics } from '@opentelemetry/api';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { MapSessionModule, SessionModule, SessionRepository } from '@nest-session/core';
import { SessionTelemetryModule } from '@nest-session/opentelemetry';

class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

@Module({
  imports: [SessionModule.forRoot(), MapSessionModule.forRoot(), SessionTelemetryModule.forRoot()],
})
class MeasuredModule {}

test('OpenTelemetry counts sessions', async () => {
  const reader = new Reader();
  const provider = new MeterProvider({ readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  const application = await NestFactory.createApplicationContext(MeasuredModule, { logger: false });
  const session = application.get(SessionRepository, { strict: false }).createSession();
  session.setAttribute('items', ['apple']);
  await session.save();
  const { resourceMetrics } = await reader.collect();
  const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  const created = all.find(({ descriptor }) => descriptor.name === 'nest_session.sessions.created');
  assert.equal(created?.dataPoints[0]?.value, 1);
  await application.close();
  await provider.shutdown();
  metrics.disable();
});
