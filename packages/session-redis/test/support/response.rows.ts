import type { ReceivedResponse, SentRequest } from './response.client.js';
import type { ResponseColumn } from './response.app.js';
import { FILE_SIZE } from './response.routes.js';

/** A kind of response, the client's view of it, and the behaviour when the session cannot be saved. */
export interface ResponseRow extends SentRequest {
  readonly status: number;
  /** The marks that it leaves in the session. */
  readonly marks: readonly string[];
  /** How often exception filters are called. @default 0 */
  readonly filters?: number;
  /**
   * How often they are called when the save fails: for an error of the application, as otherwise, and for the failed
   * save where `SessionInterceptor` has tried it before anything was sent. The response is 503 in any case.
   */
  readonly filtersOnFailure: number;
  readonly body?: string;
  readonly check?: (response: ReceivedResponse) => void;
  readonly only?: 'express' | 'fastify';
  /** Why a kind of client cannot request it. */
  readonly not?: { readonly inject: string };
}

const JSON_OK = { check: ({ text }: ReceivedResponse) => expect(JSON.parse(text)).toEqual({ ok: true }) };
const isText = (expected: string) => ({ check: ({ text }: ReceivedResponse) => expect(text).toBe(expected) });
const isError = (message: string) => ({
  check: ({ text }: ReceivedResponse) => expect((JSON.parse(text) as { message: string }).message).toMatch(message),
});
const isWholeFile = { check: ({ text }: ReceivedResponse) => expect(text.length).toBe(FILE_SIZE) };

/** The session is marked by middleware, since no handler is reached. */
const BY_MIDDLEWARE = { 'x-mark': 'middleware' };

/** Saved by `SessionInterceptor`, before anything is sent. */
const byInterceptor = { filtersOnFailure: 1 };
/** Saved by the first byte of the response: no exception filter can handle the error any more. */
const byHead = { filtersOnFailure: 0 };

function route(name: string) {
  return { path: `/api/${name}`, marks: [name], status: 200 };
}

const RESPONSE_ROWS: Readonly<Record<string, ResponseRow>> = {
  'a value': { ...route('value'), ...byInterceptor, ...JSON_OK },
  'a promise': { ...route('promise'), ...byInterceptor, ...JSON_OK },
  'an Observable': { ...route('observable'), ...byInterceptor, ...JSON_OK },
  'an Observable of several values': { ...route('observable-of-many'), ...byInterceptor, ...isText('{"n":2}') },
  // Nest itself rejects it.
  'an Observable without a value': {
    ...route('observable-of-none'),
    status: 500,
    filters: 1,
    filtersOnFailure: 1,
    ...isError('Internal'),
  },
  // It starts when the first chunk is read.
  'a generator': { ...route('generator'), ...byHead, ...isText('ab') },
  'a web Response': { ...route('web-response'), status: 202, ...byInterceptor, ...isText('web') },
  '@Res()': { ...route('res'), ...byHead, ...JSON_OK },
  '@Res(), later': { ...route('res-later'), status: 201, ...byHead, ...JSON_OK },
  '@Res({ passthrough })': {
    ...route('passthrough'),
    status: 202,
    ...byInterceptor,
    check: ({ setCookies }) => expect(setCookies).toContain('app=1'),
  },
  '@Redirect()': { ...route('redirect'), status: 302, ...byInterceptor },
  'redirect()': {
    ...route('res-redirect'),
    status: 302,
    ...byHead,
    check: ({ headers }) => expect(headers.location).toBe('/elsewhere'),
  },
  HTML: { ...route('html'), ...byInterceptor, ...isText('<p>hello</p>') },
  '@Head()': { ...route('head'), method: 'HEAD', ...byInterceptor, ...isText('') },
  'HEAD of a @Get()': { ...route('value'), method: 'HEAD', ...byInterceptor, ...isText('') },
  '204': { ...route('empty'), status: 204, ...byInterceptor, ...isText('') },
  '304': { ...route('not-modified'), status: 304, ...byInterceptor, ...isText('') },
  'a fresh ETag': {
    ...route('html'),
    headers: { 'if-none-match': 'W/"c-IfUnyRpP0A7sn7/YurkBabL74Q8"' },
    status: 304,
    only: 'express',
    ...byInterceptor,
  },
  'a guard that denies': {
    ...route('guard'),
    status: 403,
    filters: 1,
    filtersOnFailure: 1,
    ...isError('Forbidden'),
  },
  'a pipe that refuses': {
    ...route('pipe'),
    path: '/api/pipe/none',
    status: 400,
    filters: 1,
    filtersOnFailure: 1,
    ...isError('numeric'),
  },
  'a handler that throws': {
    ...route('throw'),
    status: 418,
    filters: 1,
    filtersOnFailure: 1,
    ...isError('no'),
  },
  'a handler with a bug': { ...route('bug'), status: 500, filters: 1, filtersOnFailure: 1, ...isError('Internal') },
  'a filter that reads and writes the session': {
    ...route('filter'),
    marks: ['handler', 'filter'],
    status: 400,
    ...byHead,
    check: ({ text }) => expect((JSON.parse(text) as { before: string[] }).before.at(-1)).toBe('handler'),
  },
  'an interceptor of the route': { ...route('interceptor-of-route'), ...byInterceptor, ...JSON_OK },
  'an interceptor that responds': { ...route('interceptor-responds'), ...byInterceptor, ...JSON_OK },
  'a global interceptor inside of ours': { ...route('global-interceptor'), ...byInterceptor, ...JSON_OK },
  'a global interceptor of the root module': { ...route('outer-interceptor'), ...byInterceptor, ...JSON_OK },
  'no route': {
    path: '/api/nowhere',
    headers: BY_MIDDLEWARE,
    marks: ['middleware'],
    status: 404,
    filters: 1,
    filtersOnFailure: 1,
    ...isError('Cannot GET'),
  },
  'no route, outside of the prefix': {
    path: '/nowhere',
    headers: BY_MIDDLEWARE,
    marks: ['middleware'],
    status: 404,
    only: 'express',
    ...byHead,
    check: ({ text }) => expect(text).toContain('Cannot GET'),
  },
  'malformed JSON': {
    path: '/api/malformed',
    method: 'POST',
    headers: { ...BY_MIDDLEWARE, 'content-type': 'application/json' },
    body: '{"a":',
    marks: ['middleware'],
    status: 400,
    filters: 1,
    filtersOnFailure: 1,
    check: ({ text }) => expect(JSON.parse(text)).toMatchObject({ statusCode: 400 }),
  },
  'middleware that responds': {
    path: '/middleware',
    headers: BY_MIDDLEWARE,
    marks: ['middleware'],
    status: 200,
    ...byHead,
    ...isText('responded'),
  },
  'a StreamableFile': { ...route('file'), ...byInterceptor, ...isWholeFile },
  'pipeline()': { ...route('pipeline'), ...byHead, ...isWholeFile },
  'pipeline(), awaited': {
    ...route('awaited-pipeline'),
    // It rejects when its response was replaced, and so does the handler.
    filtersOnFailure: 1,
    ...isWholeFile,
    not: { inject: 'a response without a connection is never closed, and nobody would tell the source' },
  },
  'write() and end()': { ...route('write-and-end'), status: 203, ...byHead, ...isText('one two three') },
  'writeHead()': {
    ...route('write-head'),
    status: 201,
    ...byHead,
    check: ({ text, headers, setCookies }) => {
      expect([text, headers['x-app']]).toEqual(['raw', '1']);
      expect(setCookies.slice(0, 2)).toEqual(['app=1', 'other=2']);
    },
  },
  trailers: {
    ...route('trailers'),
    ...byHead,
    check: ({ text, trailers }) => expect([text, trailers['x-sum']]).toEqual(['body', '1']),
  },
  'early hints': {
    ...route('early-hints'),
    ...byHead,
    check: ({ informational }) => expect(informational).toEqual([103]),
    not: { inject: 'there is no connection that informational responses could take' },
  },
  'server-sent events': {
    ...route('sse'),
    ...byHead,
    check: ({ text, headers }) => {
      expect(headers['content-type']).toBe('text/event-stream');
      expect(text.match(/^data: \{"n":[01]\}$/gm)).toHaveLength(2);
    },
  },
  'a hijacked reply': { ...route('hijack'), only: 'fastify', ...byHead, ...isText('hijacked') },
  'a versioned route': { ...route('versioned'), path: '/api/v2/versioned', ...byInterceptor, ...JSON_OK },
  'a route outside of the prefix': { ...route('outside'), path: '/outside', ...byInterceptor, ...JSON_OK },
  'a request-scoped provider': { ...route('request-scoped'), ...byInterceptor, ...JSON_OK },
  'a durable provider': { ...route('durable'), ...byInterceptor, ...JSON_OK },
};

/** The rows that an application of this kind supports. */
export function rowsOf({ platform, transport }: ResponseColumn): [string, ResponseRow][] {
  return Object.entries(RESPONSE_ROWS).filter(
    ([, { only = platform, not }]) => only === platform && !(transport && not && transport in not),
  );
}
