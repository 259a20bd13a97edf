import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';

/** A method with its name, bound to its instance. */
export interface BoundMethod {
  /** `Class.method` */
  readonly name: string;
  readonly call: (argument: unknown) => unknown;
}

/** A method of a provider or controller. */
export interface DiscoveredMethod {
  /** The function that carries the marks of decorators. */
  readonly method: unknown;
  /**
   * Returns the method to call. The argument is the name of the decorator that marks it.
   * @throws InvalidSessionOptionsError for a method of a request-scoped or transient class, which has no single
   *   instance
   */
  bind(decorator: string): BoundMethod;
  /** Returns the name that the bound method has. */
  nameOf(): string;
}

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/**
 * The methods of all providers and controllers of the application. `module`: whose decorators mark them, for errors.
 */
export function* discoverMethods(
  discovery: DiscoveryService,
  scanner: MetadataScanner,
  module = 'SessionModule',
): Iterable<DiscoveredMethod> {
  const seen = new Set<object>();
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    // A request-scoped class may have no instance yet.
    const instance: unknown = wrapper.instance ?? wrapper.metatype?.prototype;
    // An object under two tokens is still one handler.
    if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
    seen.add(instance);
    const prototype = wrapper.instance ? (Object.getPrototypeOf(instance) as object | null) : instance;
    for (const name of scanner.getAllMethodNames(prototype)) {
      const method: unknown = Reflect.get(instance, name);
      yield {
        method,
        bind: (decorator) => bind(instance, name, wrapper, { decorator, module }),
        nameOf: () => nameOf(instance, name),
      };
    }
  }
}

function bind(
  instance: object,
  method: string,
  wrapper: InstanceWrapper,
  { decorator, module }: { readonly decorator: string; readonly module: string },
): BoundMethod {
  const name = nameOf(instance, method);
  if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) {
    throw new InvalidSessionOptionsError(module, [notStatic(decorator, name)]);
  }
  // Look the method up at each call, so that a spy or a proxy that replaces it is called.
  const call = (argument: unknown) =>
    (Reflect.get(instance, method) as (argument: unknown) => unknown).call(instance, argument);
  return { name, call };
}

function nameOf(instance: object, method: string): string {
  return `${instance.constructor.name}.${method}`;
}

function notStatic(decorator: string, name: string): string {
  return (
    `${decorator} cannot be used on ${name}: its class is request-scoped or transient, directly or through what it ` +
    'injects, and an event belongs to no request. Move the method to a provider of the default scope.'
  );
}
