import { Body, Controller, type INestApplication, Post } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Session } from '@nest-session/core';
import { documentSession } from '@nest-session/core/swagger';
import type { Companion } from './main.js';

@Controller('cart')
class CartController {
  @Post()
  add(@Session() session: Session, @Body() { item }: { item: string }) {
    return session.updateAttribute<string[]>('items', (items = []) => [...items, item]);
  }
}

export const companion: Companion = {
  controllers: [CartController],
  configure: (app: INestApplication) => {
    const config = documentSession(new DocumentBuilder(), app).build();
    SwaggerModule.setup('docs', app, () => SwaggerModule.createDocument(app, config));
  },
};
