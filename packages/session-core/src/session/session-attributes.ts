/**
 * The attributes of your sessions and their types. Declare yours to have them typed:
 * `declare module '@nest-session/core' { interface SessionAttributes { items: Item[] } }`. From then on, any other name
 * is a type error, unless you declare `[name: string]: unknown` as well.
 */
export interface SessionAttributes {}

/** The names that attributes can have: those that `SessionAttributes` declares; any, while it declares none. */
export type SessionAttributeName = [keyof SessionAttributes] extends [never]
  ? string
  : Extract<keyof SessionAttributes, string>;

/** The names that `SessionAttributes` declares one by one. */
type DeclaredName = keyof {
  [N in keyof SessionAttributes as string extends N ? never : number extends N ? never : N]: SessionAttributes[N];
};

/** A name that attributes can have although `SessionAttributes` does not declare it. */
export type OtherAttributeName<N extends string> = N extends DeclaredName
  ? never
  : N extends SessionAttributeName
    ? N
    : never;
