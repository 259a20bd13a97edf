/** Whether Redis replied with an error. After any other error it is unknown whether the command took effect. */
export function isAnswer(error: unknown): boolean {
  // Not `instanceof`: the application may have another copy of ioredis.
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether Redis replied with an error of this kind: the first word of its message, such as `NOGROUP`. */
export function isReply(error: unknown, kind: string): error is Error {
  return error instanceof Error && error.message.startsWith(`${kind} `);
}
