import type { OptionReader } from '../option-reading/option.reader.js';
import { toOrigin } from '../option-reading/to-origin.js';

/** Options of `CsrfGuard`. */
export interface CsrfOptions {
  /**
   * Origins other than the application's own whose pages may send requests that change something, such as
   * `'https://admin.example.com'` or `'capacitor://localhost'`. They need the token all the same. @default none
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
  return Object.freeze({ trustedOrigins: new Set(origins?.map((each) => toOrigin(each)!)) });
}

function isListOfOrigins(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => toOrigin(each) !== undefined);
}
