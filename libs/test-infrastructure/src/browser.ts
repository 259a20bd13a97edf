// `@nest-session/test-infrastructure/browser`: apart, so that only tests of browsers load Playwright.
export { keyHashOf, selfSignedCertificate } from './browser/certificate.js';
export { launchBindingChromium, launchChromium, textAt } from './browser/chromium.js';
