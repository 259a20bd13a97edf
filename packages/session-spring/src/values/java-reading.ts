import type { JavaPart, JavaValue } from './java-tree.js';
import type { PlainValue } from './plain-value.js';

/** What a value means, or undefined if that is unknown. */
export type ReadJava = (value: JavaValue | undefined) => PlainValue | undefined;

/**
 * What an object of a class means, by the part that the class has written, and those of its superclasses before it.
 * Undefined if they are not as they should be.
 */
export type JavaReading = (part: JavaPart, read: ReadJava, parts: readonly JavaPart[]) => PlainValue | undefined;

/** What is known of classes, by their names. */
export type JavaReadings = ReadonlyMap<string, JavaReading>;
