import http from 'node:http';
import { Writable } from 'node:stream';
import fastifyCompress from '@fastify/compress';
import fastifyHelmet from '@fastify/helmet';
import fastifyRateLimit from '@fastify/rate-limit';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import compression from 'compression';
import { rateLimit } from 'express-rate-limit';
import helmet from 'helmet';
import morgan from 'morgan';
import { pinoHttp } from 'pino-http';
import type { ReceivedResponse } from './response.client.js';

/** How a companion is set up, and how a test sees that it has worked on responses. */
export interface Companion<App> {
  /** On the server of the platform, before Nest gets it. */
  readonly before?: (server: { use(middleware: never): unknown }) => void;
  /** In the place of main.ts. */
  readonly configure?: (app: App) => Promise<void> | void;
  /** Reverts the changes outside of the application. */
  readonly remove?: () => Promise<void> | void;
  /** Whether it has worked on one of these responses. */
  readonly hasWorked: (responses: readonly ReceivedResponse[]) => boolean;
}

/** Rejects no request. */
const UNLIMITED = 1_000_000;

const hasHeader = (name: string) => (responses: readonly ReceivedResponse[]) =>
  responses.some(({ headers }) => name in headers);
const isCompressed = hasHeader('content-encoding');

/** A stream for logs, and whether any came. */
function sink() {
  let lines = 0;
  const stream = new Writable({
    write(_chunk, _encoding, callback) {
      lines++;
      callback();
    },
  });
  return { stream, hasLines: () => lines > 0 };
}

function accessLog(): Companion<NestExpressApplication> {
  const { stream, hasLines } = sink();
  return { configure: (app) => void app.use(morgan('combined', { stream })), hasWorked: hasLines };
}

function pino(): Companion<NestExpressApplication | NestFastifyApplication> {
  const { stream, hasLines } = sink();
  return { configure: (app) => void app.use(pinoHttp({}, stream)), hasWorked: hasLines };
}

/** The instrumentation is applied by hand, since Jest has a module loader of its own, which it does not hook into. */
function openTelemetry(): Companion<unknown> {
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const instrumentation = new HttpInstrumentation({ disableOutgoingRequestInstrumentation: true });
  const definition = instrumentation.getModuleDefinitions().find(({ name }) => name === 'http');
  return {
    configure: () => {
      provider.register();
      instrumentation.setTracerProvider(provider);
      definition?.patch?.(http);
    },
    remove: async () => {
      definition?.unpatch?.(http);
      await provider.shutdown();
    },
    hasWorked: () => exporter.getFinishedSpans().length > 0,
  };
}

export const EXPRESS_COMPANIONS: Readonly<Record<string, () => Companion<NestExpressApplication>>> = {
  compression: () => ({
    configure: (app) => void app.use(compression({ threshold: 0 })),
    hasWorked: isCompressed,
  }),
  morgan: accessLog,
  'pino-http': pino,
  helmet: () => ({ configure: (app) => void app.use(helmet()), hasWorked: hasHeader('content-security-policy') }),
  opentelemetry: openTelemetry,
  'rate limiter before': () => ({
    before: (server) => void server.use(rateLimit({ limit: UNLIMITED }) as never),
    hasWorked: hasHeader('x-ratelimit-limit'),
  }),
  'rate limiter after': () => ({
    configure: (app) => void app.use(rateLimit({ limit: UNLIMITED })),
    hasWorked: hasHeader('x-ratelimit-limit'),
  }),
};

export const FASTIFY_COMPANIONS: Readonly<Record<string, () => Companion<NestFastifyApplication>>> = {
  compress: () => ({
    configure: async (app) => void (await app.register(fastifyCompress, { threshold: 0 })),
    hasWorked: isCompressed,
  }),
  'pino-http': pino,
  helmet: () => ({
    configure: async (app) => void (await app.register(fastifyHelmet)),
    hasWorked: hasHeader('content-security-policy'),
  }),
  opentelemetry: openTelemetry,
  'rate limiter': () => ({
    configure: async (app) => void (await app.register(fastifyRateLimit, { max: UNLIMITED })),
    hasWorked: hasHeader('x-ratelimit-limit'),
  }),
};
