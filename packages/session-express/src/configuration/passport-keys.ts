/** The properties in which Passport keeps its users. */
export class PassportKeys extends Set<string> {
  /** Whether Passport has served a request, so that it reads these properties. */
  isInUse = false;
}
