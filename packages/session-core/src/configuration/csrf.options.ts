import type { OptionReader } from '../option-reading/option.reader.js';

/** Options of `CsrfGuard`. */
export interface CsrfOptions {
  /**
   * Origins other than the application's own whose pages may send requests that change something, such as
   * `'https://admin.example.com'`. They need the token all the same. @default none
   */
  trustedOrigins?: readonly string[];
}

/** The section `csrf` of the options, checked and with all defaults. */
export interface ResolvedCsrfOptions {
  /** As browsers write them. */
  readonly trustedOrigins: ReadonlySet<string>;
}

/** Reads the `csrf` section. */
export function readCsrfOptions(reader: OptionReader): ResolvedCsrfOptions {
  const origins = reader.value(
    'trustedOrigins',
    isListOfOrigins,
    "a list of origins, such as 'https://www.example.com', without a slash or a path behind the host",
  );
  reader.finish();
  return Object.freeze({ trustedOrigins: new Set((origins ?? []).map((each) => new URL(each).origin)) });
}

function isListOfOrigins(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && isOrigin(each));
}

/** Whether it is a scheme and a host, with nothing behind them that would be ignored. */
function isOrigin(text: string): boolean {
  if (!/^https?:\/\/[^/?#@]+$/i.test(text) || !URL.canParse(text)) return false;
  return !text.includes('*');
}
