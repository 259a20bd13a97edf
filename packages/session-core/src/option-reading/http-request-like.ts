/** The Node.js request that is passed to options that are functions, on every platform. */
export interface HttpRequestLike {
  /** The method in upper case, such as `GET`. */
  readonly method?: string | undefined;
  /** The path and the query as the client sent them, such as `/cart?page=2`. */
  readonly url?: string | undefined;
  /** The headers by their names in lower case. A header that came several times may be an array. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}
