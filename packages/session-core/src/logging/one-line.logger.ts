import { Logger } from '@nestjs/common';

// Also what terminals take as commands, as ends of lines or as a change of direction, and JSON.stringify() leaves.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

// In a stack, the ends of lines are those before its frames.
const FRAME = /\n(?= {4}at )/;

/**
 * Writes each line as one line, whatever is in it: nobody can forge a line of the log, or command the terminal of who reads
 * it. Foreign text in a line is to be quoted as well, by `JSON.stringify()` or `shownError()`.
 */
export class OneLineLogger extends Logger {
  /** Writes a line that needs no attention. */
  override log(message: string): void {
    super.log(escaped(message));
  }

  /** Writes a line that somebody should look at. */
  override warn(message: string): void {
    super.warn(escaped(message));
  }

  /** Writes a line about a failure, and below it the frames of a stack. @param stack from `shownStack()` */
  override error(message: string, stack?: string): void {
    if (stack === undefined) super.error(escaped(message));
    else super.error(escaped(message), stack.split(FRAME).map(escaped).join('\n'));
  }
}

function escaped(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
