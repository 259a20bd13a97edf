// `@nest-session/core/telemetry`: what the tracing channels of `node:diagnostics_channel` tell.

export {
  deadlineChannel,
  type DeadlineContext,
  eventChannel,
  loadChannel,
  saveChannel,
  type SessionChannels,
  type SessionHandlerContext,
  type SessionLoadContext,
  type SessionSaveContext,
  type SessionSweepContext,
  sweepChannel,
} from './telemetry/channels.js';
