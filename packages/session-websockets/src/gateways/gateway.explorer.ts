import { Inject, Injectable, type Type } from '@nestjs/common';
import { type ApplicationConfig, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { type Handler, putFilterLast, putFirst } from '@nest-session/core/internal';
import { AuthenticationFilter } from './authentication-filter.js';
import { bindToAdapter, type GatewayBinding } from './bind-to-adapter.js';
import { MessageInterceptor } from './message.interceptor.js';
import { fillSessionParameters } from './session-parameters.js';

// The key of @nestjs/websockets for the metadata of gateways.
const GATEWAY_METADATA = 'websockets:is_gateway';
const MESSAGE_MAPPING_METADATA = 'websockets:message_mapping';

// All applications of the process share one, because they share the classes of gateways, which refer to it.
const interceptor = new MessageInterceptor();
const filter = new AuthenticationFilter();

/** Finds the gateways of the application, and attaches the binding and the session interceptor to them. */
@Injectable()
export class GatewayExplorer {
  constructor(
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /**
   * Acts when Nest asks for the adapter, right before it connects the gateways and before `NestModule.configure()` and
   * all module hooks. By then, the adapter and the global interceptors of the application are known.
   */
  install(config: ApplicationConfig, binding: GatewayBinding): void {
    const getIoAdapter = config.getIoAdapter.bind(config);
    let isPut = false;
    config.getIoAdapter = () => {
      if (!isPut) this.#putEnhancers(config);
      isPut = true;
      const adapter = getIoAdapter() as ReturnType<typeof getIoAdapter> | undefined;
      if (adapter) bindToAdapter(adapter, binding);
      return adapter!;
    };
  }

  /** Puts our interceptor around those of the application, which may change the session after the handler. */
  #putEnhancers(config: ApplicationConfig): void {
    for (const { controller, name } of this.#handlers()) {
      putFilterLast(filter, controller);
      fillSessionParameters(controller, name);
    }
    const others = [...config.getGlobalInterceptors(), ...config.getGlobalRequestInterceptors()];
    if (others.length > 0) config.getGlobalInterceptors().unshift(interceptor);
    else for (const handler of this.#handlers()) putFirst(interceptor, handler);
  }

  *#handlers(): Iterable<Handler & { readonly name: string }> {
    for (const { providers } of this.modules.values()) {
      for (const { metatype } of providers.values()) {
        if (!metatype || !Reflect.hasMetadata(GATEWAY_METADATA, metatype)) continue;
        const controller = metatype as Type;
        const methods = controller.prototype as Record<string, object>;
        for (const name of this.scanner.getAllMethodNames(methods)) {
          const method = methods[name]!;
          if (Reflect.hasMetadata(MESSAGE_MAPPING_METADATA, method)) yield { controller, method, name };
        }
      }
    }
  }
}
