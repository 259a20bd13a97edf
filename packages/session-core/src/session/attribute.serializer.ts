/** Turns the value of one attribute into text and back. A store keeps the text and never looks into it. */
export abstract class AttributeSerializer {
  /**
   * The text for a value, which is neither undefined nor null.
   * @throws SerializationProblem when the value would not come back as it is
   */
  abstract serialize(value: unknown): string;

  /** The value of a text. May throw anything; the session then treats the attribute as missing. */
  abstract deserialize(text: string): unknown;
}

/** Why a value cannot be serialized, as the end of the sentence "Session attribute "x" ...". Never holds the value. */
export class SerializationProblem extends Error {
  /** Always 'SerializationProblem'. */
  override readonly name = 'SerializationProblem';
}
