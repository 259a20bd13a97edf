/** What options that are functions are given: the request of Node.js, whichever platform Nest runs on. */
export interface HttpRequestLike {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}
