import { Controller, Get, type INestApplication, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  type AttributeSerializer,
  JsonAttributeSerializer,
  MapSessionModule,
  MapSessionRepository,
  Session,
  SessionModule,
} from '@nest-session/core';
import { storePrimitivesOf } from '@nest-session/core/internal';
import { DevalueAttributeSerializer } from '@nest-session/core/devalue';
import { HttpAgent } from '@nest-session/testing';
import { byFigure, isQuick, writeResults } from './results.js';
import { type Contender, printTable, runRounds } from './rounds.js';

// What a request costs that reads an attribute of a megabyte, beside JSON.parse() of its text in the same process.
const ROUNDS = isQuick ? 15 : 45;
const WARM_UP = 5;

/** Each takes about a megabyte as JSON. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  'empty arrays': Array.from({ length: 340_000 }, () => []),
  numbers: Array.from({ length: 150_000 }, (_, i) => i),
  strings: Array.from({ length: 100_000 }, (_, i) => `s${i}`),
  'small objects': Array.from({ length: 130_000 }, () => ({ a: 1 })),
  'items of a cart': Array.from({ length: 11_000 }, (_, i) => ({
    id: i,
    name: `item ${i}`,
    tags: ['a', 'b'],
    price: 1.5 + i,
    options: { gift: true, note: null },
  })),
};

@Controller()
class ValuesController {
  @Get('open')
  open(@Session() session: Session) {
    session.setAttribute('opened', true);
    return { id: session.id };
  }

  @Get('read/:name')
  read(@Session() session: Session, @Param('name') name: string) {
    return { length: session.getAttribute<unknown[]>(name)?.length ?? 0 };
  }
}

async function start(serializer: AttributeSerializer): Promise<INestApplication> {
  @Module({
    imports: [SessionModule.forRoot({ maxAttributeSize: 2_000_000 }), MapSessionModule.forRoot({ serializer })],
    controllers: [ValuesController],
  })
  class ValuesModule {}
  const app = await NestFactory.create(ValuesModule, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  return app;
}

/** Milliseconds of processor time. */
async function timeOf(action: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await action();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Measures a request that reads an attribute with this text. The request as such is taken off. */
async function readerOf(name: string, app: INestApplication, text: string): Promise<Contender> {
  const agent = new HttpAgent(await app.getUrl());
  const { id } = (await agent.get('/open')).json() as { id: string };
  const attributes = new Map([['value', text]]);
  await storePrimitivesOf(app.get(MapSessionRepository)).write({ kind: 'update', id, attributes, indexes: new Map() });
  const measure = async () => {
    const request = await timeOf(() => agent.get('/read/none'));
    return (await timeOf(() => agent.get('/read/value'))) - request;
  };
  return { name, measure };
}

const json = await start(new JsonAttributeSerializer());
const devalue = await start(new DevalueAttributeSerializer());
const comparisons = [];
for (const [title, value] of Object.entries(VALUES)) {
  const text = JSON.stringify(value);
  // As Python and others write it.
  const foreign = text.replaceAll(',', ', ');
  const contenders = [
    { name: 'JSON.parse()', measure: () => timeOf(() => JSON.parse(text) as unknown) },
    await readerOf('read', json, text),
    await readerOf('read, formatted by others', json, foreign),
    await readerOf('read, DevalueAttributeSerializer', devalue, text),
  ];
  const results = await runRounds(contenders, ROUNDS, WARM_UP);
  printTable(`${title}, ms of processor time`, results);
  comparisons.push({
    title,
    contenders: results.map(({ name, values }) => ({ name, figures: byFigure(values.map((time) => ({ time }))) })),
  });
}
await Promise.all([json.close(), devalue.close()]);
await writeResults('values', comparisons);
