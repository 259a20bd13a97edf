import { Injectable } from '@nestjs/common';
import type { SessionTakeover } from './session-takeover.js';

/** What another package of this library adds to the requests of the application. Set it before `onModuleInit()`. */
@Injectable()
export class SessionExtension {
  /**
   * The properties of every request that has a session, instead of `session` alone. The accessors get the request of
   * Node.js as `this`; `SessionExchange.of()` leads from there to its session.
   */
  properties?: PropertyDescriptorMap | undefined;
  /** Finds sessions that another library keeps. */
  takeover?: SessionTakeover | undefined;
}
