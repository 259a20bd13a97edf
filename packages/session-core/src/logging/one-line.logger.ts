import { Logger } from '@nestjs/common';

// Includes the characters that terminals treat as commands, line ends or direction changes and that JSON.stringify()
// keeps.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

// The message at the top of a stack may contain line ends, so only a line end before a frame separates lines.
const FRAME = /\n(?= {4}at )/;

/** Writes every message on one line, so that foreign text can neither forge a line nor send commands to a terminal. */
export class OneLineLogger extends Logger {
  override verbose(message: string): void {
    super.verbose(escaped(message));
  }

  override log(message: string): void {
    super.log(escaped(message));
  }

  override warn(message: string): void {
    super.warn(escaped(message));
  }

  /** Writes a line about a failure, with the frames of a stack below it. @param stack from `shownStack()` */
  override error(message: string, stack?: string): void {
    if (stack === undefined) super.error(escaped(message));
    else super.error(escaped(message), stack.split(FRAME).map(escaped).join('\n'));
  }
}

function escaped(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
