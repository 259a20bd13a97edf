import { Inject, Injectable } from '@nestjs/common';
import { OnSecurityEvent, type SecurityEvent } from '@nest-session/core';
import { BesideTheLog } from '@nest-session/core/internal';
import { MeasuredStores } from '../configuration/measured-stores.js';
import { ATTRIBUTES } from '../instrumentation/attributes.js';
import { SessionMeter } from '../metrics/session-meter.js';

/** Counts security events. The log has those that it has without it. */
@Injectable()
export class SecurityEventCounter {
  constructor(
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
  ) {}

  @BesideTheLog()
  @OnSecurityEvent()
  countEvent({ kind, suppressed }: SecurityEvent): void {
    const attributes = { [ATTRIBUTES.namespace]: this.stores.first.namespace, [ATTRIBUTES.securityKind]: kind };
    this.meter.add('securityEvents', 1 + suppressed, attributes);
  }
}
