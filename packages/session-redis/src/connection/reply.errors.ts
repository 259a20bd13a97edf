/** Whether Redis answered with an error of this kind, such as `NOGROUP`: the first word of its message. */
export function isReply(error: unknown, kind: string): boolean {
  return error instanceof Error && error.message.startsWith(`${kind} `);
}
