/** The Node.js request that options which are functions get, on every platform. */
export interface HttpRequestLike {
  /** In upper case, such as `GET`. */
  readonly method?: string | undefined;
  /** Path and query, such as `/cart?page=2`, as the client sent them. */
  readonly url?: string | undefined;
  /** By their names in lower case; an array where a header came several times. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}
