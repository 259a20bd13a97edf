import { Inject, Injectable, Optional } from '@nestjs/common';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import {
  logger,
  REDIS_CONNECTIONS,
  type RedisConnections,
  shownAddress,
  StoreStartLog,
  VERSION,
} from '@nest-session/redis-events/internal';
import { shownDetails, shownFacts } from '@nest-session/redis/internal';
import { type ResolvedSpringSessionOptions, SPRING_SESSION_OPTIONS } from './configuration/spring-session.options.js';

/** Says what runs, as soon as Redis has told its version. */
@Injectable()
export class SpringStartLog extends StoreStartLog {
  constructor(
    @Inject(SPRING_SESSION_OPTIONS) private readonly options: ResolvedSpringSessionOptions,
    // Optional, so that the error names the missing module.
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessions: ResolvedSessionOptions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
  ) {
    super(connections);
  }

  protected tell(server: string): void {
    const { mode, connection, springNamespace, commandTimeout, requireAtStart } = this.options;
    const isRead = mode === 'read';
    const inEffect = isRead ? { commandTimeout, requireAtStart } : { ...this.options, grace: undefined };
    const facts = shownFacts({ ...inEffect, namespace: springNamespace }, this.sessions, { mode });
    const what = isRead ? 'reads the sessions of Spring Session' : 'shares sessions with Spring Session';
    const details = shownDetails(inEffect, this.sessions);
    logger.log(`nest-session ${VERSION} ${what} in ${server}: ${shownAddress(connection)}; ${facts}`);
    logger.verbose(`Options that are in effect, on Node.js ${process.version}: ${details}`);
  }
}
