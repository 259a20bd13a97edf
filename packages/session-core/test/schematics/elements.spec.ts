import { deadlineKind, handler } from '../../src/schematics/elements.js';
import { SchematicRun, STARTER } from './schematic-run.js';

const DEADLINES = `import { DeadlineModule } from '@nest-session/deadlines';\n`;

describe('nest generate', () => {
  it('makes a handler a provider of the nearest module', () => {
    const shop = '@Module({ providers: [Shop] })\nexport class ShopModule {}\n';
    const run = new SchematicRun({ ...STARTER, 'src/shop/shop.module.ts': shop });
    expect(run.run(handler({ name: 'carts/leftCart', path: 'shop' }))).toEqual([
      'src/shop/shop.module.ts',
      'src/shop/carts/left-cart.handler.ts',
    ]);
    expect(run.text('src/shop/carts/left-cart.handler.ts')).toContain('export class LeftCartHandler {');
    expect(run.text('src/shop/shop.module.ts')).toBe(
      `import { LeftCartHandler } from './carts/left-cart.handler';\n${shop.replace('Shop]', 'Shop, LeftCartHandler]')}`,
    );
  });

  it('makes a deadline a provider of the root module where no other is nearer', () => {
    const run = new SchematicRun({ ...STARTER, 'src/app.module.ts': DEADLINES + STARTER['src/app.module.ts'] });
    run.run(deadlineKind({ name: 'order-payment' }));
    const text = run.text('src/order-payment.deadline.ts');
    expect(text).toContain(`deadline('order-payment-due')`);
    expect(text).toContain('export class OrderPaymentDeadline {');
    expect(run.text('src/app.module.ts')).toContain('@Module({ providers: [OrderPaymentDeadline], imports: [] })');
  });

  it('refuses a deadline where no module fires it, and a file that exists', () => {
    const run = new SchematicRun({ ...STARTER, 'src/left.handler.ts': '' });
    expect(() => run.run(deadlineKind({ name: 'order' }))).toThrow(
      'Import DeadlineModule and RedisDeadlineModule first',
    );
    expect(() => run.run(handler({ name: 'left' }))).toThrow('The file src/left.handler.ts exists already');
  });
});
