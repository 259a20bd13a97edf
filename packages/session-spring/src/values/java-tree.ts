/**
 * What a Java stream says, without any object of its classes. `bigint` is a long, and a text of one unit may be a char.
 */
export type JavaValue = null | boolean | number | bigint | string | JavaObject | JavaArray | JavaEnum | JavaClass;

/** The description of a class. */
export interface JavaClass {
  readonly kind: 'class';
  /** As Java names it, such as `java.util.Map$Entry` or `[B`. */
  readonly name: string;
  flags: number;
  readonly fields: readonly JavaField[];
  /** It and its superclasses, the uppermost first. Undefined while it is being read. */
  line: readonly JavaClass[] | undefined;
}

export interface JavaField {
  readonly name: string;
  /** A primitive type, or `L` and `[` for objects and arrays. */
  readonly type: string;
}

export interface JavaObject {
  readonly kind: 'object';
  readonly type: JavaClass;
  /** What each class has written, the uppermost first. */
  readonly parts: JavaPart[];
}

export interface JavaPart {
  readonly type: JavaClass;
  readonly fields: Map<string, JavaValue>;
  /** What the class has written with code of its own: values, and bytes between them. */
  readonly written: (JavaValue | Buffer)[];
}

export interface JavaArray {
  readonly kind: 'array';
  /** Of the elements. */
  readonly type: string;
  /** A view of the stream for `byte[]`. */
  items: readonly JavaValue[] | Buffer;
}

interface JavaEnum {
  readonly kind: 'enum';
  readonly name: string;
}

/** The bits of `flags`. */
export const WRITES = 0x01;
export const SERIALIZABLE = 0x02;
export const EXTERNALIZABLE = 0x04;
export const IN_BLOCKS = 0x08;

/** The class of a proxy object that Java makes at run time. */
export const PROXY = 'java.lang.reflect.Proxy';
