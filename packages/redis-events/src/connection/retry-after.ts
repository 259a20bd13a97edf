/** How long a connection pauses before each attempt to open it again, in milliseconds: twice as long each time. */
export const retryAfter = (longestPause: number) => (attempt: number) => Math.min(50 * 2 ** attempt, longestPause);
