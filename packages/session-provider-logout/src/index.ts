// `@nest-session/provider-logout`: logouts and security events that identity providers push.
export { ProviderLogoutModule } from './provider-logout.module.js';
export type {
  ProviderAction,
  ProviderAlgorithm,
  ProviderIssuer,
  ProviderIssuerFinder,
  ProviderLogoutModuleOptions,
  ProviderLogoutOptionsFactory,
  ProviderMessage,
  ProviderSubject,
} from './configuration/provider-logout.options.js';
export { OnProviderEvent } from './events/on-provider-event.decorator.js';
export type { ProviderEvent, ProviderEventName, ProviderEventSession } from './events/provider-event.js';
export { ProviderSessionEndedError } from './provider-session-ended.error.js';
