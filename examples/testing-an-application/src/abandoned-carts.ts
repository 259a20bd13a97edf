import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionExpiredEvent } from '@nest-session/core';
import { Mailer } from './mailer.js';

@Injectable()
export class AbandonedCarts {
  constructor(private readonly mailer: Mailer) {}

  @OnSessionEvent(SessionExpiredEvent)
  async remind({ principalName, session }: SessionExpiredEvent): Promise<void> {
    const items = session.getAttributeOrDefault('items', []);
    if (principalName === undefined || items.length === 0) return;
    await this.mailer.send(principalName, `You left behind: ${items.join(', ')}`);
  }
}
