import { OptionReader, toOrigin } from '@nest-session/core/internal';

/** Options of `SessionWebSocketModule.forRoot()`. */
export interface SessionWebSocketModuleOptions {
  /**
   * Other origins whose pages may open connections, such as `https://app.example.com` or `capacitor://localhost`. The
   * pages of the application's own host always may. Browsers send cookies with every WebSocket, so list only pages that
   * may act for their visitors.
   * @default none
   */
  origins?: readonly string[];
}

/** The options of `SessionWebSocketModule`, checked. */
export interface ResolvedSessionWebSocketOptions {
  readonly origins: readonly string[];
}

/** Reads and checks the options. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveSessionWebSocketOptions(
  options: SessionWebSocketModuleOptions = {},
): ResolvedSessionWebSocketOptions {
  const reader = new OptionReader('SessionWebSocketModule', options);
  const origins = reader.value('origins', isList, "a list of origins, such as ['https://app.example.com']") ?? [];
  for (const origin of origins) {
    if (toOrigin(origin) === undefined) {
      reader.problem(
        `Option \`origins\` has ${JSON.stringify(origin)}, which is not an origin: write a scheme and a host ` +
          "without a path, such as 'https://app.example.com'.",
      );
    }
  }
  reader.finish();
  return Object.freeze({ origins: origins.map((each) => toOrigin(each)!) });
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}
