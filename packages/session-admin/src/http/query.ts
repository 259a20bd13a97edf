import { BadRequestException } from '@nestjs/common';

export type Query = Readonly<Record<string, unknown>>;

/** A parameter; undefined where it is not there. @throws BadRequestException for one that is there twice */
export function textIn(query: Query, name: string): string | undefined {
  const value = Object.hasOwn(query, name) ? query[name] : undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw new BadRequestException(`The parameter ${name} must be there once`);
}

export function requiredText(query: Query, name: string): string {
  const text = textIn(query, name);
  if (text === undefined || text === '') throw new BadRequestException(`The parameter ${name} is missing`);
  return text;
}

export function numberIn(
  query: Query,
  name: string,
  fallback: number,
  { atLeast, atMost }: { readonly atLeast: number; readonly atMost: number },
): number {
  const text = textIn(query, name);
  if (text === undefined) return fallback;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (number >= atLeast && number <= atMost) return number;
  throw new BadRequestException(`The parameter ${name} must be a whole number from ${atLeast} to ${atMost}`);
}

export function wordIn<Word extends string>(query: Query, name: string, words: readonly Word[]): Word | undefined {
  const text = textIn(query, name);
  const word = words.find((each) => each === text);
  if (text === undefined || word !== undefined) return word;
  throw new BadRequestException(`The parameter ${name} must be one of ${words.join(', ')}`);
}

export function limitIn(query: Query): number {
  return numberIn(query, 'limit', 50, { atLeast: 1, atMost: 200 });
}
