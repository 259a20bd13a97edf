import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionSignedInEvent } from '@nest-session/core';
import { deadline, type DeadlineEvent, OnDeadline } from '@nest-session/deadlines';

export const paymentDue = deadline<{ total: string }>('order.payment-due');

/** Handlers that fail for as long as they should. */
@Injectable()
export class FailingHandlers {
  isFailing = true;
  /** What succeeded. */
  readonly handled: string[] = [];

  @OnSessionEvent(SessionSignedInEvent)
  onSignIn({ principalName }: SessionSignedInEvent) {
    this.#handle(`sign-in of ${principalName}`);
  }

  @OnDeadline(paymentDue)
  onPaymentDue({ key }: DeadlineEvent<typeof paymentDue>) {
    this.#handle(`payment of ${key}`);
  }

  #handle(what: string): void {
    if (this.isFailing) throw new Error('<b>The mail server is down</b>');
    this.handled.push(what);
  }
}
