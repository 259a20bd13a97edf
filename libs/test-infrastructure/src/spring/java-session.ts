/** A session as Java has it. Times are epoch milliseconds, the interval is in seconds. */
export interface JavaSession {
  readonly id: string;
  readonly creationTime: number;
  readonly lastAccessedTime: number;
  readonly maxInactiveInterval: number;
  /** As Jackson writes them, but a `BigInteger` and a `BigDecimal` as text; without the context of Spring Security. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The class of each attribute, such as `java.util.ArrayList`. */
  readonly classes: Readonly<Record<string, string>>;
  /** Who is in the context of Spring Security; of a request, whom Spring Security knows. Null when nobody is. */
  readonly signedInAs: { readonly name: string; readonly authorities: readonly string[] } | null;
}

/** What Java changes in a session, by one save. */
export interface JavaChange {
  /** By name. Null removes one. Java has a list as `ArrayList`, and an object as `LinkedHashMap`. */
  readonly attributes?: Readonly<Record<string, unknown>>;
  /** In seconds. */
  readonly maxInactiveInterval?: number;
  readonly changeId?: boolean;
}

/** An event that Java has heard, with the session that it had. */
export interface HeardEvent {
  readonly type: 'created' | 'deleted' | 'expired';
  readonly session: JavaSession;
}
