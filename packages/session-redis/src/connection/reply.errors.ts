/** Whether Redis answered: an error of any other kind is that of a connection, and says nothing about what is stored. */
export function isAnswer(error: unknown): boolean {
  // Not `instanceof`: the application may have another copy of ioredis than the one found here.
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether Redis answered with an error of this kind, such as `NOGROUP`: the first word of its message. */
export function isReply(error: unknown, kind: string): boolean {
  return error instanceof Error && error.message.startsWith(`${kind} `);
}
