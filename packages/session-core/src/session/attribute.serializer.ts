/** Turns the value of an attribute into text and back. Stores keep the text and never look into it. */
export abstract class AttributeSerializer {
  /**
   * The text of a value, which is never undefined or null.
   * @throws SerializationProblem when `deserialize()` would not give the same value back
   */
  abstract serialize(value: unknown): string;

  /** The value of a text. May throw anything: the option `undecodable` then decides. */
  abstract deserialize(text: string): unknown;
}

/**
 * Why a value cannot be serialized. The message completes the sentence `Session attribute "x" ...` without the value.
 */
export class SerializationProblem extends Error {
  /** Always 'SerializationProblem'. */
  override readonly name = 'SerializationProblem';
}
