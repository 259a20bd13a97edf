import { Controller, Get, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Session, SessionModule } from '@nest-session/core';
import { loadChannel, saveChannel } from '@nest-session/core/telemetry';
import { SessionTelemetryModule } from '@nest-session/opentelemetry';
import { RedisSessionModule } from '@nest-session/redis';
import { metrics } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, InMemorySpanExporter, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

let written = 0;

@Controller()
class TelemetryController {
  @Get('read')
  read(@Session() session: Session) {
    return { value: session.getAttribute('value') ?? null };
  }

  @Get('write')
  write(@Session() session: Session) {
    session.setAttribute('value', String(written++).padEnd(98, 'x'));
    return { ok: true };
  }
}

@Module({})
class BenchModule {}

/** `without` and `again` are the same: the difference between them is noise. */
export const TELEMETRIES = ['without', 'again', 'subscriber', 'no SDK', 'metrics', 'metrics and spans'] as const;
export type Telemetry = (typeof TELEMETRIES)[number];

/** Called by server.main.ts. */
export function createApplication(contender: Telemetry, url: string): Promise<INestApplication> {
  if (contender === 'subscriber') subscribe();
  if (contender.startsWith('metrics')) {
    metrics.setGlobalMeterProvider(
      new MeterProvider({ readers: [new PrometheusExporter({ preventServerStart: true })] }),
    );
  }
  if (contender.endsWith('spans')) {
    const exporter = new InMemorySpanExporter();
    setInterval(() => exporter.reset(), 1000).unref();
    new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] }).register();
  }
  const telemetry = ['without', 'again', 'subscriber'].includes(contender) ? [] : [SessionTelemetryModule.forRoot()];
  const namespace = contender.replaceAll(' ', '-');
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url, namespace }), ...telemetry];
  const module = { module: BenchModule, imports, controllers: [TelemetryController] };
  return NestFactory.create(module, new FastifyAdapter(), { logger: ['error', 'warn'] });
}

/** One of an application's own, which does nothing. */
function subscribe(): void {
  const nothing = () => undefined;
  const subscribers = { start: nothing, end: nothing, asyncStart: nothing, asyncEnd: nothing, error: nothing };
  loadChannel.subscribe(subscribers);
  saveChannel.subscribe(subscribers);
}
