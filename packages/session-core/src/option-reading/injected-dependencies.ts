import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  type InjectionToken,
  Optional,
  type OptionalFactoryDependency,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';

type Dependency = InjectionToken | OptionalFactoryDependency;

/** If the options cannot be got, the start fails with a sentence that says what to write. */
export function explainInjection(module: string, definition: DynamicModule): DynamicModule {
  const { providers = [] } = definition;
  // Nest takes a class for granted where neither a factory nor a class is given.
  const given = providers.filter((each) => !('useClass' in each) || (each.useClass as unknown) !== undefined);
  if (given.length === providers.length) {
    return { ...definition, providers: given.map((each) => explained(module, each)) };
  }
  const refuse = () => Promise.reject(new InvalidSessionOptionsError(module, [NO_FACTORY]));
  return { ...definition, providers: given.map((each) => ({ ...each, inject: [], useFactory: refuse }) as Provider) };
}

function explained(module: string, provider: Provider): Provider {
  if (!('useFactory' in provider)) return provider;
  const { inject: dependencies = [], useFactory, ...others } = provider as FactoryProvider & { inject?: Dependency[] };
  const explain = (modules: ModulesContainer) => (token: InjectionToken) =>
    new InvalidSessionOptionsError(module, [notVisible(token, modules)]);
  return {
    ...others,
    inject: [ModuleRef, ModulesContainer],
    useFactory: async (moduleRef: ModuleRef, modules: ModulesContainer) => {
      const stopWaiting = tellOfLongWait(module, dependencies);
      try {
        const injected = await injectDependencies(moduleRef, dependencies, explain(modules));
        const options = await call(() => useFactory(...injected) as unknown, module, dependencies);
        if (options === undefined) throw new InvalidSessionOptionsError(module, [NO_OPTIONS]);
        return options;
      } finally {
        stopWaiting();
      }
    },
  };
}

// Milliseconds.
const LONG = 5000;

/**
 * Warns after a while: where a dependency needs what the module provides, Nest lets both wait for each other without a
 * word. Until then its timer keeps the process alive, which otherwise may end. Returns what ends the waiting.
 */
function tellOfLongWait(module: string, dependencies: readonly Dependency[]): () => void {
  if (dependencies.length === 0) return () => undefined;
  const names = dependencies.map((each) => nameOf(tokenOf(each))).join(', ');
  const timer = setTimeout(() => {
    logger.warn(
      `${module} has waited for its options for ${LONG / 1000} s: forRootAsync() injects ${names}. If one of these injects ` +
        'what this library provides, such as Sessions, the start waits for ever: let it get that in onModuleInit(), from ' +
        'ModuleRef',
    );
  }, LONG);
  return () => clearTimeout(timer);
}

/** Calls the factory. That of Nest, for a class, calls a method which TypeScript alone has asked for. */
async function call(factory: () => unknown, module: string, [dependency]: readonly Dependency[]): Promise<unknown> {
  try {
    return await factory();
  } catch (error) {
    if (!dependency || !(error instanceof TypeError) || !CALL_OF_NEST.test(error.message)) throw error;
    throw new InvalidSessionOptionsError(module, [noMethod(nameOf(tokenOf(dependency)), module)]);
  }
}

const CALL_OF_NEST = /^optionsFactory\[.+\] is not a function$/;

function noMethod(className: string, module: string): string {
  const method = `create${module.replace(/Module$/, '')}Options`;
  return `${className} of forRootAsync() has no method ${method}(): add it, and return the options in it.`;
}

const NO_FACTORY =
  'forRootAsync() has nothing that gives the options: write forRootAsync({ useFactory: () => ({ ... }) }), or give it ' +
  '`useClass` or `useExisting`.';

const NO_OPTIONS = 'The factory of forRootAsync() has returned undefined: return an object with the options.';

/** If nothing provides a dependency, it throws the error of `explain`. Other errors pass through. */
export async function injectDependencies(
  moduleRef: ModuleRef,
  dependencies: readonly Dependency[],
  explain: (token: InjectionToken) => Error,
): Promise<unknown[]> {
  const Injected = classThatInjects(dependencies);
  try {
    return (await moduleRef.create(Injected)).values;
  } catch (error) {
    const missing = dependencies[missingIndex(error, Injected)];
    throw missing === undefined ? error : explain(tokenOf(missing));
  }
}

/** @throws InvalidSessionOptionsError where the module that holds them is imported as a bare class */
export async function givenOptions<Options>(
  moduleRef: ModuleRef,
  token: InjectionToken,
  module: string,
): Promise<Options> {
  const [options] = await injectDependencies(moduleRef, [token], () => importedAsClass(module));
  return options as Options;
}

export function importedAsClass(module: string): InvalidSessionOptionsError {
  return new InvalidSessionOptionsError(module, [
    `It is imported as a class: write ${module}.forRoot() in the imports of the root module.`,
  ]);
}

/** `module`: the one that needs `provided`. @throws InvalidSessionOptionsError when SessionModule is not imported */
export function ofSessionModule<T>(provided: T | undefined, module: string): T {
  if (provided !== undefined) return provided;
  throw new InvalidSessionOptionsError(module, [
    'SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.',
  ]);
}

/** `own`: the module that holds the options. @throws InvalidSessionOptionsError when a module is configured twice */
export function assertConfiguredOnce(modules: ModulesContainer, own: Type, module: string): void {
  if ([...modules.values()].filter(({ metatype }) => metatype === own).length < 2) return;
  throw new InvalidSessionOptionsError(module, [
    `It is configured twice in this application. It is global: import ${module}.forRoot() once, in the root module.`,
  ]);
}

/** @throws InvalidSessionOptionsError of `module` when several modules provide the `store` of the `things` */
export function assertOneStore(modules: ModulesContainer, store: InjectionToken, module: string, things: string): void {
  const stores = [...modules.values()].filter(({ providers }) => providers.has(store));
  if (stores.length < 2) return;
  const names = stores.map(({ metatype }) => metatype.name).join(' and ');
  throw new InvalidSessionOptionsError(module, [
    `There are several stores for the ${things}: ${names}. Import one of them, once.`,
  ]);
}

function classThatInjects(dependencies: readonly Dependency[]): Type<{ readonly values: unknown[] }> {
  class Injected {
    readonly values: unknown[];

    constructor(...values: unknown[]) {
      this.values = values;
    }
  }
  for (const [index, dependency] of dependencies.entries()) {
    Inject(tokenOf(dependency))(Injected, undefined, index);
    if (isDescribed(dependency) && dependency.optional) Optional()(Injected, undefined, index);
  }
  return Injected;
}

/** The index of the parameter for which Nest found no provider, or -1 for any other error. */
function missingIndex(error: unknown, { name }: Type): number {
  // The error is Nest's UnknownDependenciesException, which Nest does not export.
  const { type, context } = error as { readonly type?: unknown; readonly context?: { readonly index?: number } };
  return type === name ? (context?.index ?? -1) : -1;
}

function notVisible(token: InjectionToken, modules: ModulesContainer): string {
  const exporting = [...modules.values()].find(({ exports }) => exports.has(token))?.metatype.name;
  const imported = exporting ?? '<the module that exports it>';
  return (
    `forRootAsync() injects ${nameOf(token)}, but Nest cannot find it: write ` +
    `forRootAsync({ imports: [${imported}], ... }), or make that module global.`
  );
}

function tokenOf(dependency: Dependency): InjectionToken {
  return isDescribed(dependency) ? dependency.token : dependency;
}

function isDescribed(dependency: Dependency): dependency is OptionalFactoryDependency {
  return typeof dependency === 'object' && 'token' in dependency;
}

function nameOf(token: InjectionToken): string {
  return typeof token === 'function' ? token.name : String(token);
}
