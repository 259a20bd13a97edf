import { Inject, Injectable } from '@nestjs/common';
import { VERSION } from '../configuration/version.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  REDIS_CONNECTIONS,
  type RedisConnections,
} from '../connection/redis-connections.js';
import { shownAddress } from '../connection/shown-address.js';
import { DELIVERY_OPTIONS } from '../delivery/delivery.tokens.js';
import type { DeliveryOptions } from '../delivery/event-rules.js';
import { logger } from '../logging/redis-session.logger.js';
import { Partitions, shownContent } from '../partitions/partitions.js';
import { StoreStartLog } from './store-start.log.js';

/** Says what the namespace of a module holds, and how it is delivered. */
@Injectable()
export class ContentStartLog extends StoreStartLog {
  constructor(
    @Inject(CONNECTION_OPTIONS) private readonly options: ConnectionOptions,
    @Inject(DELIVERY_OPTIONS) private readonly delivery: Pick<DeliveryOptions, 'events'>,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(REDIS_CONNECTIONS) connections: RedisConnections,
  ) {
    super(connections);
  }

  protected tell(server: string): void {
    const { namespace, count, owner } = this.partitions;
    const { events } = this.delivery;
    logger.log(
      `nest-session ${VERSION} keeps ${shownContent(owner.holds)} in ${server}: ` +
        `${shownAddress(this.options.connection)}; namespace ${JSON.stringify(namespace)}; partitions ${count}; ` +
        `group ${JSON.stringify(events.group)}${events.consume ? '' : ' (not handled here)'}`,
    );
  }
}
