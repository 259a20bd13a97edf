import { SessionAttributeError } from '../errors/session.errors.js';
import { HIDDEN, PRINCIPAL_ATTRIBUTE } from './attribute-names.js';
import type { AttributeSerializer } from './attribute.serializer.js';
import type { ReadonlySession, SessionAttributeName } from './session.js';
import type { SessionRecord } from './session-record.js';
import { SessionIds } from './session-token.js';
import { StoredAttributes } from './tracked-attributes.js';
import { WarnOnce } from '../logging/warn-once.js';

// A snapshot belongs to no repository, but an application has one serializer.
const warningsBySerializer = new WeakMap<AttributeSerializer, WarnOnce>();

/** A session as it was, for events. Each read decodes the value again, so that handlers do not share objects. */
export class SessionSnapshot implements ReadonlySession {
  readonly id: string;
  /** When the session was created: epoch milliseconds by the clock of the store; 0 when the data was lost. */
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  readonly maxInactiveInterval: number;
  readonly absoluteTimeout: number;
  readonly authenticatedAt: number | undefined;
  readonly #attributes: StoredAttributes;

  /** @param ids shows the id in log lines; unset: a fingerprint of the id */
  constructor(record: Omit<SessionRecord, 'timeToLive'>, serializer: AttributeSerializer, ids = FINGERPRINTS) {
    this.id = record.id;
    this.creationTime = record.creationTime;
    this.lastAccessedTime = record.lastAccessedTime;
    this.maxInactiveInterval = record.maxInactiveInterval;
    this.absoluteTimeout = record.absoluteTimeout;
    this.authenticatedAt = record.authenticatedAt;
    const warnings = warningsBySerializer.get(serializer) ?? new WarnOnce();
    warningsBySerializer.set(serializer, warnings);
    const { id, attributes } = record;
    this.#attributes = new StoredAttributes(attributes, serializer, warnings, () => ids.shown(id));
  }

  /** The snapshot of a session whose data was lost: it has no attributes, and its times are 0. */
  static empty(id: string, serializer: AttributeSerializer): SessionSnapshot {
    const times = { creationTime: 0, lastAccessedTime: 0, maxInactiveInterval: 0, absoluteTimeout: -1 };
    return new SessionSnapshot({ id, ...times, attributes: [] }, serializer);
  }

  get principalName(): string | undefined {
    const name = this.getAttribute(PRINCIPAL_ATTRIBUTE);
    return typeof name === 'string' ? name : undefined;
  }

  get attributeNames(): SessionAttributeName[] {
    return this.#attributes.names;
  }

  getAttribute<T = unknown>(name: string): T | undefined {
    return HIDDEN.has(name) ? undefined : (this.#attributes.decode(name) as T | undefined);
  }

  getRequiredAttribute<T = unknown>(name: string): T {
    const value = this.getAttribute<T>(name);
    if (value === undefined) throw new SessionAttributeError(name, 'is required and missing');
    return value;
  }

  getAttributeOrDefault<T>(name: string, defaultValue: T): T {
    return this.getAttribute<T>(name) ?? defaultValue;
  }
}

// Without the configuration an id may be a token: it is shown as a fingerprint.
const FINGERPRINTS: Pick<SessionIds, 'shown'> = new SessionIds(undefined, 'plain');
