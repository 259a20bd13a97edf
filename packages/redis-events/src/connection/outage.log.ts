import { AsyncResource } from 'node:async_hooks';
import type { Cluster, Redis } from 'ioredis';
import { isCluster } from './node-with.js';
import { logger, toldReasons } from '../logging/failure.log.js';
import { adviceFor } from '../logging/advice.js';
import { FailureReasons, shownError } from '@nest-session/core/internal';

type Client = Redis | Cluster;

const NO_ADDRESSES = 'The Cluster does not say the addresses of its nodes';
const CLOSED_AT_ONCE = 'The server closed the connection before it was ready';
/** What ioredis says when a connection has failed for a reason that it has told before. */
const CONSEQUENCE =
  /^(Connection is closed\.|The server closed the connection|Stream isn't writeable|All sentinels are unreachable(?!.* Last error: ))/;

/** Logs one line when an outage begins, one for each further reason, and one when it ends, whoever notices. */
export class OutageLog {
  readonly #broken = new Set<Client>();
  /** What a connection tells is of no request, although one may run: loggers add that one. */
  readonly #ofNoRequest = new AsyncResource('OutageLog');
  readonly #reasons = new FailureReasons();
  #reason: Error | undefined;
  #reasonOfNode: Error | undefined;

  get reason(): Error | undefined {
    return this.#reason;
  }

  watch(client: Client): void {
    let isUnready = false;
    client.on('connect', () => (isUnready = true));
    client.on('close', () => this.#broken.add(client));
    // Whatever Redis replied to the first commands, ioredis tells nobody.
    client.on('reconnecting', () => {
      if (isUnready) this.#report(new Error(CLOSED_AT_ONCE));
      isUnready = false;
    });
    // Without a listener ioredis itself logs every failed attempt.
    const fail = (error: Error) => {
      if (isUnexpectedReply(error)) return;
      isUnready = false;
      this.#broken.add(client);
      toldReasons.add(error);
      this.#report(this.#reasonOf(error));
    };
    client.on('error', fail);
    // ioredis leaves nodes without an address out, says that it is ready, and asks again.
    client.on('refresh', () => hasNoAddresses(client) && fail(new Error(NO_ADDRESSES)));
    client.on('ready', () => {
      isUnready = false;
      if (!hasNoAddresses(client)) this.forget(client);
    });
    client.on('end', () => void this.#mend(client));
  }

  /** The client of the Cluster itself says only that it was closed. */
  watchNode(client: Redis): void {
    client.on('error', (error: Error) => (this.#reasonOfNode = error));
  }

  /** It is ready, or its node has lost its slots, and others have them. */
  forget(client: Client): void {
    if (this.#mend(client)) this.#ofNoRequest.runInAsyncScope(() => logger.log('Redis can be reached again'));
  }

  #report(reason: Error): void {
    const lasts = this.#reasons.isKnown;
    if (lasts && isConsequence(reason)) return;
    this.#reason = reason;
    if (!this.#reasons.add(reason)) return;
    const line = lasts ? 'Redis still cannot be reached, for another reason' : 'Redis cannot be reached, retrying';
    const message = `${line}: ${shownError(reason)}${adviceFor(reason)}`;
    this.#ofNoRequest.runInAsyncScope(() => logger.error(message));
  }

  #reasonOf(error: Error & { readonly lastNodeError?: Error }): Error {
    const { lastNodeError = error } = error;
    return isConsequence(lastNodeError) ? (this.#reasonOfNode ?? lastNodeError) : lastNodeError;
  }

  #mend(client: Client): boolean {
    const ends = this.#broken.delete(client) && this.#broken.size === 0 && this.#reasons.isKnown;
    if (ends) {
      this.#reasons.clear();
      this.#reason = this.#reasonOfNode = undefined;
    }
    return ends;
  }
}

function hasNoAddresses(client: Client): boolean {
  return isCluster(client) && client.slots.length > 0 && client.slots.every((addresses) => addresses.length === 0);
}

function isConsequence({ message }: Error): boolean {
  return CONSEQUENCE.test(message);
}

/** ioredis 5 reports so that a slot has moved to another node; see PartitionSignals. */
export function isUnexpectedReply({ message }: Error): boolean {
  return message.startsWith('Command queue state error');
}
