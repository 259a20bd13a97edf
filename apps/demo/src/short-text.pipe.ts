import { BadRequestException, Injectable, type PipeTransform } from '@nestjs/common';

const LONGEST = 40;

/** Accepts texts of 1 to 40 characters, and removes the spaces around them. */
@Injectable()
export class ShortTextPipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    const text = typeof value === 'string' ? value.trim() : '';
    if (text === '' || text.length > LONGEST) {
      throw new BadRequestException(`Enter a text of 1 to ${LONGEST} characters`);
    }
    return text;
  }
}
