import { ConfigurableModuleBuilder } from '@nestjs/common';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { explainInjection, OptionReader } from '@nest-session/core/internal';

/** What an identity provider may send: logout tokens of OpenID Connect, or pushed security event tokens. */
export type ProviderMessage = 'back-channel' | 'events';

/** A signature that tokens may have. None can be made with a key that everybody can read. */
export type ProviderAlgorithm = (typeof ALGORITHMS)[number];

/**
 * What an event does to the sessions that it names: `'end'`; `'reauthenticate'`, so that `@RecentlyAuthenticated()`
 * refuses them until the user signs in again; or `'none'`.
 */
export type ProviderAction = (typeof ACTIONS)[number];

/** Whom an event is about, as the provider has sent it, such as `{ format: 'iss_sub', iss, sub }`. */
export interface ProviderSubject {
  readonly [member: string]: unknown;
}

/** An identity provider whose logouts and events the application accepts. */
export interface ProviderIssuer {
  /** The claim `iss` of its tokens, exactly as it stands there, such as `https://login.example.com/realms/shop`. */
  readonly issuer: string;
  /** The ids of this application at the provider. One of them must be in the claim `aud`. */
  readonly audience: string | readonly string[];
  /** What it may send. @default ['back-channel'] */
  readonly accepts?: readonly ProviderMessage[] | undefined;
  /** The signatures that its tokens may have. @default ['RS256', 'PS256', 'ES256', 'EdDSA'] */
  readonly algorithms?: readonly ProviderAlgorithm[] | undefined;
  /**
   * Its public keys, or where they are: https, or http on loopback. @default what its discovery document
   * `<issuer>/.well-known/openid-configuration` names
   */
  readonly keys?: { readonly jwksUri: string } | { readonly jwks: { readonly keys: readonly object[] } } | undefined;
  /**
   * Whether a logout token must have the claim `exp`. Some providers send none: with `'optional'`, such a token counts
   * for two minutes. @default 'required'
   */
  readonly expiry?: 'required' | 'optional' | undefined;
  /** The header `Authorization` of pushed events, as you have told it to the provider. @default any */
  readonly authorization?: string | undefined;
  /** Other issuers about whose users its events may tell. @default only its own users */
  readonly subjects?: readonly string[] | undefined;
  /**
   * What its events do, by their names, such as `{ 'credential-change': 'end' }`. @default `'end'` for
   * `session-revoked`, `sessions-revoked`, `account-disabled`, `account-purged` and `credential-compromise`;
   * `'reauthenticate'` for `credential-change`, `account-credential-change-required` and an `assurance-level-change`
   * that decreases; `'none'` for all others
   */
  readonly actions?: Readonly<Record<string, ProviderAction>> | undefined;
  /**
   * The names of the principals that the subject of an event means, where it is no user of this issuer or of `subjects`
   * by `iss` and `sub`, such as `{ format: 'email', email }`. An address may be unverified, or that of another user by
   * now. @default nobody
   */
  readonly principalsOf?: ((subject: ProviderSubject) => readonly string[] | Promise<readonly string[]>) | undefined;
}

/**
 * Finds the provider of a tenant. Its argument comes from a token that nobody has verified: look it up in your own
 * data, and never request anything from it. Find only hosts that you have allowed: anybody can have them asked for
 * keys. What it finds counts for ten minutes, for the last 1,000 providers.
 */
export type ProviderIssuerFinder = (issuer: string) => ProviderIssuer | undefined | Promise<ProviderIssuer | undefined>;

/** Options of `ProviderLogoutModule.forRoot()`. */
export interface ProviderLogoutModuleOptions {
  /**
   * Where providers send: `POST <path>/logout` and `POST <path>/events`. Nothing of the application runs before,
   * neither guards nor a global prefix. @default '/session/provider'
   */
  readonly path?: string | undefined;
  /** The identity providers, or a function that finds one by its issuer. */
  readonly issuers: readonly ProviderIssuer[] | ProviderIssuerFinder;
}

/** The interface of a class for `forRootAsync({ useClass })` or `useExisting`. */
export interface ProviderLogoutOptionsFactory {
  /** Returns the options of `ProviderLogoutModule`, or a promise of them. Called once, at start. */
  createProviderLogoutOptions(): ProviderLogoutModuleOptions | Promise<ProviderLogoutModuleOptions>;
}

const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;

const ACTIONS = ['end', 'reauthenticate', 'none'] as const;

const MESSAGES: readonly ProviderMessage[] = ['back-channel', 'events'];

const DEFAULT_ALGORITHMS: readonly ProviderAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA'];

export interface ResolvedIssuer extends Omit<ProviderIssuer, 'audience'> {
  readonly audience: string[];
  readonly accepts: readonly ProviderMessage[];
  readonly algorithms: ProviderAlgorithm[];
  readonly expiry: 'required' | 'optional';
  readonly subjects: readonly string[];
  readonly actions: Readonly<Record<string, ProviderAction>>;
}

export interface ResolvedProviderLogoutOptions {
  readonly path: string;
  readonly issuers: readonly ResolvedIssuer[] | ProviderIssuerFinder;
}

const MODULE = 'ProviderLogoutModule';

/** Reads and checks the options. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveProviderLogoutOptions(options: ProviderLogoutModuleOptions): ResolvedProviderLogoutOptions {
  const problems: string[] = [];
  const reader = new OptionReader(MODULE, options, '', problems);
  const path = reader.text('path', '/session/provider', (value) =>
    /^(?:\/[\w.~-]+)+$/.test(value) ? undefined : "must be a path, such as '/session/provider'",
  );
  const given = reader.value('issuers', isIssuers, 'a list of identity providers, or a function that finds one');
  if (given === undefined) reader.problem('Option `issuers` is missing: list the identity providers.');
  const issuers =
    typeof given === 'function' ? given : (given ?? []).map((each, i) => readIssuer(each, `issuers[${i}]`, problems));
  const names = typeof issuers === 'function' ? [] : issuers.map(({ issuer }) => issuer);
  if (new Set(names).size < names.length) reader.problem('Option `issuers` names one issuer twice: it has one entry.');
  reader.finish();
  return Object.freeze({ path, issuers });
}

/** What a function has found. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveFoundIssuer(found: ProviderIssuer): ResolvedIssuer {
  const problems: string[] = [];
  const issuer = readIssuer(found, 'issuers()', problems);
  if (problems.length > 0) throw new InvalidSessionOptionsError(MODULE, problems);
  return issuer;
}

function readIssuer(given: ProviderIssuer, path: string, problems: string[]): ResolvedIssuer {
  const reader = new OptionReader(MODULE, given, path, problems);
  const audience = reader.value(
    'audience',
    isTextOrTexts,
    'the id of the application at the provider, or a list of ids',
  );
  if (audience === undefined) problems.push(`Option \`${path}.audience\` is missing.`);
  const issuer = reader.text('issuer', '', addressProblem);
  if (issuer === '') problems.push(`Option \`${path}.issuer\` is missing.`);
  const accepts = reader.value('accepts', isListOf(MESSAGES), "a list of 'back-channel' and 'events'");
  const algorithms = reader.value('algorithms', isListOf(ALGORITHMS), `a list of ${ALGORITHMS.join(', ')}`);
  const resolved = {
    issuer,
    audience: [audience ?? []].flat(),
    accepts: accepts ?? (['back-channel'] as const),
    algorithms: algorithms ? [...algorithms] : [...DEFAULT_ALGORITHMS],
    keys: readKeys(reader, path, problems),
    expiry: reader.oneOf('expiry', ['required', 'optional'], 'required'),
    authorization: reader.text('authorization', undefined, (value) => (value === '' ? 'must not be empty' : undefined)),
    subjects: reader.value('subjects', isTexts, 'a list of issuers') ?? [],
    actions: reader.value('actions', isActions, `an object of ${ACTIONS.join(', ')} by the names of events`) ?? {},
    principalsOf: reader.value('principalsOf', isFunction, 'a function that takes a subject'),
  };
  reader.finish();
  return Object.freeze(resolved);
}

function readKeys(parent: OptionReader, path: string, problems: string[]): ProviderIssuer['keys'] {
  if (parent.value('keys', isRecord, 'an object with `jwksUri` or `jwks`') === undefined) return undefined;
  const reader = parent.section('keys');
  const jwksUri = reader.text('jwksUri', undefined, addressProblem);
  const jwks = reader.value('jwks', isKeySet, 'an object with a list of `keys`, as in a JWK set');
  if ((jwksUri === undefined) === (jwks === undefined)) problems.push(`Option \`${path}.keys\` needs one of both.`);
  reader.finish();
  if (jwks) return { jwks };
  return jwksUri === undefined ? undefined : { jwksUri };
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Of an issuer, or where its keys are. */
export function addressProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname));
  if (!url || !isSafe) return 'must be an address with https, or with http on loopback';
  return url.hash === '' && url.username === '' ? undefined : 'must be an address without a user and a fragment';
}

function isIssuers(value: unknown): value is readonly ProviderIssuer[] | ProviderIssuerFinder {
  return (Array.isArray(value) && value.every(isRecord)) || typeof value === 'function';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

function isTextOrTexts(value: unknown): value is string | readonly string[] {
  const texts = [value].flat();
  return texts.length > 0 && isTexts(texts);
}

function isListOf<T>(allowed: readonly T[]): (value: unknown) => value is readonly T[] {
  return (value): value is readonly T[] =>
    Array.isArray(value) && value.length > 0 && value.every((each) => allowed.includes(each as T));
}

function isActions(value: unknown): value is Readonly<Record<string, ProviderAction>> {
  return isRecord(value) && Object.values(value).every((each) => ACTIONS.includes(each as ProviderAction));
}

function isKeySet(value: unknown): value is { readonly keys: readonly object[] } {
  return isRecord(value) && Array.isArray(value['keys']) && value['keys'].every(isRecord);
}

function isFunction(value: unknown): value is NonNullable<ProviderIssuer['principalsOf']> {
  return typeof value === 'function';
}

export const {
  ConfigurableModuleClass: ProviderLogoutModuleDefinition,
  MODULE_OPTIONS_TOKEN: PROVIDER_LOGOUT_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<ProviderLogoutModuleOptions>({ moduleName: 'ProviderLogout' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createProviderLogoutOptions')
  .setExtras({}, (definition) => explainInjection(MODULE, definition))
  .build();
