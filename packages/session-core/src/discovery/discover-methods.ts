import type { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';

export interface BoundMethod {
  /** `Class.method` */
  readonly name: string;
  readonly module: string;
  readonly call: (argument: unknown) => unknown;
}

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Of all providers and controllers. `method` carries the marks; `module`: whose decorators mark them, for errors. */
export function* discoverMethods(discovery: DiscoveryService, scanner: MetadataScanner, module = 'SessionModule') {
  const seen = new Set<object>();
  for (const wrapper of [...discovery.getProviders(), ...discovery.getControllers()]) {
    // A request-scoped class may have no instance yet.
    const instance: unknown = wrapper.instance ?? wrapper.metatype?.prototype;
    // An object under two tokens is still one handler.
    if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
    seen.add(instance);
    const prototype = wrapper.instance ? (Object.getPrototypeOf(instance) as object | null) : instance;
    for (const key of scanner.getAllMethodNames(prototype)) {
      const name = `${instance.constructor.name}.${key}`;
      // Look the method up at each call, so that a spy or a proxy that replaces it is called.
      const call = (argument: unknown) =>
        (Reflect.get(instance, key) as (argument: unknown) => unknown).call(instance, argument);
      /** @throws InvalidSessionOptionsError for a method of a request-scoped or transient class */
      const bind = (decorator: string): BoundMethod => {
        if (hasOneInstance(wrapper)) return { name, module: wrapper.host?.name ?? 'an unknown module', call };
        throw new InvalidSessionOptionsError(module, [notStatic(decorator, name)]);
      };
      yield { name, method: Reflect.get(instance, key) as unknown, bind };
    }
  }
}

function hasOneInstance(wrapper: InstanceWrapper): boolean {
  return !wrapper.isTransient && wrapper.isDependencyTreeStatic();
}

interface RecordedHandler extends Pick<BoundMethod, 'name' | 'module'> {
  readonly events: readonly string[];
}

/** Otherwise each would be called again when the other fails. @throws InvalidSessionOptionsError naming the modules */
export function assertToldApart(handlers: readonly RecordedHandler[], module: string): void {
  const known = new Map<string, RecordedHandler>();
  const problems = new Set<string>();
  for (const handler of handlers) {
    for (const event of handler.events) {
      const other = known.get(`${event} ${handler.name}`);
      if (other && other !== handler) problems.add(namesakes(other, handler));
      known.set(`${event} ${handler.name}`, handler);
    }
  }
  if (problems.size > 0) throw new InvalidSessionOptionsError(module, [...problems]);
}

function namesakes({ name, module }: RecordedHandler, other: RecordedHandler): string {
  const both = module === other.module ? `in ${module}` : `in ${module} and in ${other.module}`;
  return (
    `${name} is a handler of the same event twice, ${both}. Handlers are told apart by this name, so each would be called ` +
    'again when the other one fails. Rename one of the classes. If it is one class, provide it in one module only.'
  );
}

function notStatic(decorator: string, name: string): string {
  return (
    `${decorator} cannot be used on ${name}: its class is request-scoped or transient, directly or through what it ` +
    'injects, and an event belongs to no request. Move the method to a provider of the default scope.'
  );
}
