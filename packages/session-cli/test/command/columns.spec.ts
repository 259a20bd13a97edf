import { columns } from '../../src/command/shown.js';

it('columns are as wide as their longest cells, of however many rows', () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`letter ${i}`, i]);
  const [titles, first, ...others] = columns(['ID', 'N'], rows);
  expect([titles, first]).toEqual(['ID                  N', 'letter 0            0']);
  expect(others).toHaveLength(rows.length - 1);
});
