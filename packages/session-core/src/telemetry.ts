// `@nest-session/core/telemetry`: what the tracing channels of `node:diagnostics_channel` tell.

export type {
  SessionChannels,
  SessionHandlerContext,
  SessionLoadContext,
  SessionSaveContext,
  SessionSweepContext,
} from './telemetry/channels.js';
