/** An instant as ISO 8601, as Spring's actuator shows it; null where there is none. */
export function shownInstant(milliseconds: number | undefined): string | null {
  const date = new Date(milliseconds ?? NaN);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

export function shownSeconds(milliseconds: number): number {
  return Math.round(milliseconds / 1000);
}

export interface ShownValue {
  /** As the application wants it shown. */
  readonly value?: unknown;
  readonly isUnreadable?: true;
}

/** A value that cannot be read keeps nothing else from being shown. */
export function shownValue(show: (() => unknown) | undefined): ShownValue {
  if (!show) return {};
  try {
    const text = JSON.stringify(show()) as string | undefined;
    return text === undefined ? {} : { value: JSON.parse(text) as unknown };
  } catch {
    return { isUnreadable: true };
  }
}
