/** An instant as ISO 8601, as Spring's actuator shows it; null where there is none. */
export function shownInstant(milliseconds: number | undefined): string | null {
  const date = new Date(milliseconds ?? NaN);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** Milliseconds as whole seconds. */
export function shownSeconds(milliseconds: number): number {
  return Math.round(milliseconds / 1000);
}
