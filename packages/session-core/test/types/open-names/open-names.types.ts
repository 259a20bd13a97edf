// What an application writes that declares some attributes and allows any others. Checked by npm run typecheck.
import { expectTypeOf } from 'expect-type';
import { Session, SessionAttribute } from '@nest-session/core';

declare module '@nest-session/core' {
  interface SessionAttributes {
    visits: number;
    [name: string]: unknown;
  }
}

export class DeclaredNames {
  use(session: Session): void {
    expectTypeOf(session.getAttribute('visits')).toEqualTypeOf<number | undefined>();
    expectTypeOf(session.getRequiredAttribute('visits')).toEqualTypeOf<number>();
    expectTypeOf(session.getAttributeOrDefault('visits', 0)).toEqualTypeOf<number>();
    session.setAttribute('visits', 1);
    // @ts-expect-error not the declared type
    session.setAttribute('visits', 'one');
    // @ts-expect-error not the declared type
    session.getAttributeOrDefault('visits', 'none');
    // @ts-expect-error not the declared type
    void session.updateAttribute('visits', () => 'one');
  }
}

export class OtherNames {
  use(session: Session, name: string): void {
    expectTypeOf(session.getAttribute('theme')).toEqualTypeOf<unknown>();
    expectTypeOf(session.getAttribute<'dark'>('theme')).toEqualTypeOf<'dark' | undefined>();
    // @ts-expect-error the type of the result says nothing
    const theme: string = session.getAttribute('theme')!;
    session.setAttribute('theme', 'dark');
    session.setAttribute(name, 'dark');
    session.removeAttribute('theme');
    void session.updateAttribute<string[]>('themes', (themes = []) => [...themes, 'dark']);
    for (const each of session.attributeNames) session.removeAttribute(each);
    void theme;
  }

  handle(@SessionAttribute('theme') theme: string): void {
    void theme;
  }
}
