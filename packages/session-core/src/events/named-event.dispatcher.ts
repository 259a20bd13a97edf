import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { HandlerMark } from '../discovery/handler-marks.js';
import { logger } from '../logging/session.logger.js';
import type { SessionTelemetry } from '../telemetry/session-telemetry.js';
import { EventHandlingError } from './event-handling.errors.js';
import { HandlerDispatcher, type HandlerKind } from './handler.dispatcher.js';

export interface HandledName extends HandlerMark {
  readonly name: string;
}

export interface HandledKind<Event> extends Omit<HandlerKind<Event, HandledName>, 'typesOf' | 'handles' | 'failure'> {
  /** The name by which handlers want an event. */
  nameOf(event: Event): string;
}

export abstract class NamedEventDispatcher<Event> extends HandlerDispatcher<Event, HandledName> {
  constructor(
    private readonly named: HandledKind<Event>,
    discovery: DiscoveryService,
    scanner: MetadataScanner,
    telemetry: SessionTelemetry | undefined,
  ) {
    const kind: HandlerKind<Event, HandledName> = {
      ...named,
      typesOf: ({ name }) => [name],
      handles: ({ name }, event) => name === named.nameOf(event),
      failure: (event, failed, called) => new EventHandlingError(named.shown(event), failed, called),
    };
    super(kind, discovery, scanner, telemetry);
  }

  calls(marks: object): boolean {
    return this.named.marks === marks;
  }

  async reportGap({ since }: { readonly since: number }): Promise<void> {
    const from = new Date(since).toISOString();
    const { marks, what } = this.named;
    logger.warn(`Handlers of ${marks.decorator} with \`broadcast\` may have missed ${what} that came after ${from}`);
  }
}
