import { Body, Controller, type INestApplication, Post } from '@nestjs/common';
import { ApiCookieAuth, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Session } from '@nest-session/core';
import type { Companion } from './main.js';

@Controller('cart')
class CartController {
  @Post()
  @ApiCookieAuth('session')
  add(@Session() session: Session, @Body() { item }: { item: string }) {
    return session.updateAttribute<string[]>('items', (items = []) => [...items, item]);
  }
}

export const companion: Companion = {
  controllers: [CartController],
  configure: (app: INestApplication) => {
    const config = new DocumentBuilder().addCookieAuth('SESSION', { type: 'apiKey', in: 'cookie' }, 'session').build();
    SwaggerModule.setup('docs', app, () => SwaggerModule.createDocument(app, config));
  },
};
