import {
  type ExceptionFilter,
  Get,
  type NestInterceptor,
  Next,
  Post,
  Redirect,
  Render,
  Req,
  RequestMethod,
  Res,
  Session,
  Sse,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';

// What the decorators of NestJS leave on handlers and their classes. The keys are asked of the decorators: the file
// that lists them is not public, and its next place must not keep an application from starting.

export interface Handler {
  readonly controller: Type;
  /** The method, which may belong to a class that it extends. */
  readonly method: object;
}

interface EnhancerKind {
  /** Where their decorator keeps them; undefined where it keeps them elsewhere than in metadata of its target. */
  readonly key: unknown;
  readonly use: (enhancer: never) => ClassDecorator & MethodDecorator;
}

export const GUARDS: EnhancerKind = { key: keysOnMethod(UseGuards(class {}))[0], use: UseGuards };
const INTERCEPTORS: EnhancerKind = { key: keysOnMethod(UseInterceptors(class {}))[0], use: UseInterceptors };
const FILTERS: EnhancerKind = { key: keysOnMethod(UseFilters(class {} as Type))[0], use: UseFilters };

const ROUTE = keysOnMethod(Get());
const [METHOD] = ROUTE.filter((key) => valueOn(Get(), key) !== valueOn(Post(), key));
const REDIRECTED_OR_RENDERED = [Redirect(), Render('')].flatMap(keysOnMethod);
const SENT_OTHERWISE = [...keysOnMethod(Sse('')).filter((key) => !ROUTE.includes(key)), ...REDIRECTED_OR_RENDERED];

const [PARAMETERS] = keysOnParameter(Req());
const PASSED_THROUGH = keysOnParameter(Res({ passthrough: true })).find((key) => key !== PARAMETERS);
const WITH_RESPONSE = [Res(), Next()].flatMap(typesOf);
const WITH_REQUEST = [Req(), Session()].flatMap(typesOf);

export const isMetadataKnown = [GUARDS, INTERCEPTORS, FILTERS, { key: ROUTE[0] }, { key: PARAMETERS }].every(
  ({ key }) => key !== undefined,
);

/** Where a decorator of methods keeps what it knows. */
export function keysOnMethod(decorate: MethodDecorator): unknown[] {
  return Reflect.getOwnMetadataKeys(methodWith(decorate));
}

function valueOn(decorate: MethodDecorator, key: unknown): unknown {
  return Reflect.getMetadata(key, methodWith(decorate));
}

function methodWith(decorate: MethodDecorator): () => void {
  const { prototype } = class {
    method(): void {}
  };
  decorate(prototype, 'method', Object.getOwnPropertyDescriptor(prototype, 'method')!);
  return prototype.method;
}

function keysOnParameter(decorate: ParameterDecorator): unknown[] {
  return Reflect.getOwnMetadataKeys(decorated(decorate), 'method');
}

function typesOf(decorate: ParameterDecorator): string[] {
  return parametersOf(decorated(decorate), 'method');
}

function decorated(decorate: ParameterDecorator): Type {
  class Probe {
    method(): void {}
  }
  decorate(Probe.prototype, 'method', 0);
  return Probe;
}

/** A number each, or a longer text for a decorator of the application. */
function parametersOf(controller: Type, name: string): string[] {
  const parameters = Reflect.getMetadata(PARAMETERS, controller, name) as object | undefined;
  // A key is the type of the parameter and its index, as in `7:0`.
  return Object.keys(parameters ?? {}).map((key) => key.split(':', 1)[0]!);
}

export function isRoute(method: object): boolean {
  return ROUTE.some((key) => Reflect.hasMetadata(key, method));
}

/** `GET`, `POST` and so on, or `ALL`. */
export function requestMethodOf(method: object): string {
  return RequestMethod[Reflect.getMetadata(METHOD, method) as RequestMethod];
}

export function isRedirectedOrRendered(method: object): boolean {
  return REDIRECTED_OR_RENDERED.some((key) => Reflect.hasMetadata(key, method));
}

export function isSentOtherwise({ controller, method }: Handler, name: string): boolean {
  if (SENT_OTHERWISE.some((key) => Reflect.hasMetadata(key, method))) return true;
  if (PASSED_THROUGH !== undefined && Reflect.hasMetadata(PASSED_THROUGH, controller, name)) return false;
  return parametersOf(controller, name).some((type) => WITH_RESPONSE.includes(type));
}

/** Whether a handler gets the request, or by any decorator of the application something that is made of it. */
export function takesRequest(controller: Type, name: string): boolean {
  return parametersOf(controller, name).some((type) => WITH_REQUEST.includes(type) || Number.isNaN(Number(type)));
}

export function guardsOf(target: object): readonly (object | Type)[] {
  return enhancersOf(target, GUARDS);
}

export function interceptorsOf(target: object): readonly object[] {
  return enhancersOf(target, INTERCEPTORS);
}

/** Marks the guards of the library; not what the application derives from them, which may let others in. */
export const OWN_GUARD = Symbol('OWN_GUARD');

export function hasForeignGuard(guards: readonly object[]): boolean {
  return guards.some(
    (guard) => !Reflect.hasOwnMetadata(OWN_GUARD, typeof guard === 'function' ? guard : guard.constructor),
  );
}

/** Whether a handler or a class lists this guard or a subclass of it. On a handler, that outweighs all exceptions. */
export function isGuardedBy(guard: Type, target: object): boolean {
  return guardsOf(target).some((each) => each === guard || each instanceof guard || guard.isPrototypeOf(each));
}

/** Puts an interceptor around those of the decorators of a handler. Nest runs a class's around a method's. */
export function putFirst(interceptor: NestInterceptor, { controller, method }: Handler): void {
  putFirstAmong(INTERCEPTORS, interceptor, interceptorsOf(controller).length > 0 ? controller : method);
}

export function putLast(interceptor: NestInterceptor, method: object): void {
  if (!interceptorsOf(method).includes(interceptor)) UseInterceptors(interceptor)(method as Type);
}

/** Behind those that handlers have by decorators: the first of a class is last. */
export function putFilterLast(filter: ExceptionFilter, controller: Type): void {
  putFirstAmong(FILTERS, filter, controller);
}

/** Puts an enhancer before the others of a class or a method; where they are unknown, as its decorator does. */
export function putFirstAmong(kind: EnhancerKind, enhancer: object, target: object): void {
  const others = enhancersOf(target, kind);
  if (others.includes(enhancer)) return;
  if (kind.key === undefined) kind.use(enhancer as never)(target as Type);
  // A new list: that of a class may belong to the class it extends.
  else Reflect.defineMetadata(kind.key, [enhancer, ...others], target);
}

function enhancersOf(target: object, { key }: EnhancerKind): readonly object[] {
  return (Reflect.getMetadata(key, target) as object[] | undefined) ?? [];
}
