/** What options that are functions are given: the request of Node.js, whichever platform Nest runs on. */
export interface HttpRequestLike {
  /** In upper case, such as `GET`. */
  readonly method?: string | undefined;
  /** Path and query, such as `/cart?page=2`, as the client sent them. */
  readonly url?: string | undefined;
  /** By their names in lower case; an array where a header came several times. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}
