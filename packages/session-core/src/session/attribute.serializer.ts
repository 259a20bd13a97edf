/** Turns the value of an attribute into text and back. Stores keep the text and never look into it. */
export abstract class AttributeSerializer {
  /**
   * The text of a value, which is never undefined or null.
   * @throws SerializationProblem when `deserialize()` would not give the same value back
   */
  abstract serialize(value: unknown): string;

  /** The value of a text. May throw anything: the attribute then reads as undefined. */
  abstract deserialize(text: string): unknown;

  /**
   * Whether a value still has the text that it was read from or written as. False when unsure: `serialize()` then
   * decides. Implement it if it costs less: every request asks it of each object that it has read.
   */
  hasText?(value: unknown, text: string): boolean;
}

/** Whether a value still has a text, by the serializer's own way to tell, or else by serializing the value. */
export function hasText(serializer: AttributeSerializer, value: unknown, text: string): boolean {
  if (serializer.hasText) return serializer.hasText(value, text);
  try {
    return serializer.serialize(value) === text;
  } catch {
    return false;
  }
}

/**
 * Why a value cannot be serialized. The message completes the sentence `Session attribute "x" ...` without the value.
 */
export class SerializationProblem extends Error {
  /** Always 'SerializationProblem'. */
  override readonly name = 'SerializationProblem';
}

/** Whether a value is a serializer. */
export function isSerializer(value: unknown): value is AttributeSerializer {
  return hasMethod(value, 'serialize') && hasMethod(value, 'deserialize');
}

function hasMethod(value: unknown, name: string): boolean {
  return value instanceof Object && typeof Reflect.get(value, name) === 'function';
}

/** The key that `Object.assign()` and the like do not copy: they give the copy another prototype. */
export const PROTO = '__proto__';

type Deserialize = AttributeSerializer['deserialize'];

const leavesOutProto = new WeakSet<Deserialize>();

/** Says that this method itself leaves out keys `__proto__`. One that overrides it does not have to. */
export function markSafe(deserialize: Deserialize): void {
  leavesOutProto.add(deserialize);
}

/** The value of a text that another program may have stored, whatever the serializer: without keys `__proto__`. */
export function readText(serializer: Pick<AttributeSerializer, 'deserialize'>, text: string): unknown {
  const value = serializer.deserialize(text);
  return leavesOutProto.has(serializer.deserialize) ? value : withoutProto(value);
}

/** Removes keys `__proto__` from plain data, where it stands. Instances of classes are left to who made them. */
export function withoutProto(value: unknown): unknown {
  const found = new Set<object>();
  const add = (each: unknown) => {
    if (typeof each === 'object' && each !== null) found.add(each);
  };
  add(value);
  for (const each of found) {
    if (Array.isArray(each) || each instanceof Set) for (const member of each) add(member);
    else if (each instanceof Map) for (const entry of each) entry.forEach(add);
    else if (isPlain(each)) {
      if (Object.hasOwn(each, PROTO)) delete (each as Record<string, unknown>)[PROTO];
      Object.values(each).forEach(add);
    }
  }
  return value;
}

/** Whether an object is an instance of no class: of whichever realm, only `Object.prototype` has no prototype. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
