// What an application writes that declares no attributes. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import { Session, SessionAttribute } from '@nest-session/core';

export class UndeclaredNames {
  use(session: Session): void {
    expectTypeOf(session.getAttribute('theme')).toEqualTypeOf<unknown>();
    expectTypeOf(session.getAttribute<'dark' | 'light'>('theme')).toEqualTypeOf<'dark' | 'light' | undefined>();
    expectTypeOf(session.getRequiredAttribute<'dark'>('theme')).toEqualTypeOf<'dark'>();
    expectTypeOf(session.getAttributeOrDefault('theme', 'dark')).toEqualTypeOf<string>();
    session.setAttribute('theme', 'dark');
    session.removeAttribute('theme');
    expectTypeOf(session.attributeNames).toEqualTypeOf<string[]>();
    // @ts-expect-error a name is a string
    session.setAttribute(1, 'dark');
  }

  update(session: Session, name: string): void {
    const updated = session.updateAttribute('theme', () => 'dark');
    expectTypeOf(updated).toEqualTypeOf<Promise<string | undefined>>();
    const numbered = session.updateAttribute<number>('pages', (pages = 0) => pages + 1);
    expectTypeOf(numbered).toEqualTypeOf<Promise<number | undefined>>();
    void session.updateAttribute(name, (current) => {
      expectTypeOf(current).toEqualTypeOf<unknown>();
      return current;
    });
    void session.updateAttribute<string[]>(name, (current = []) => [...current, 'dark']);
  }

  handle(@SessionAttribute('theme') theme: string): void {
    void theme;
  }
}
