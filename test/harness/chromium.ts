import { type Browser, chromium, type LaunchOptions, type Page } from 'playwright-core'
import { needTools } from './tools.ts'
import { atWorkerEnd } from './worker-end.ts'

/** Chromium as Debian packages it without a user interface, which needs half the CPU time. No connections to other machines. */
export const launchOptions: LaunchOptions = {
  executablePath: '/usr/bin/chromium-headless-shell',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // The pages of a context share a process, and Chromium starts no spare one for the next page.
    '--renderer-process-limit=1',
    // A host name other than localhost, for pages that are not a secure context.
    '--host-resolver-rules=MAP gallery.test 127.0.0.1',
  ],
}

/** A separate browser, which the caller closes. */
export const launchBrowser = (): Promise<Browser> => launchWith(launchOptions)

async function launchWith(options: LaunchOptions): Promise<Browser> {
  needTools('chromium-headless-shell')
  return await chromium.launch(options)
}

let launching: Promise<Browser> | undefined

async function launch(): Promise<Browser> {
  // Playwright ends it when this process exits.
  const browser = await launchWith({ ...launchOptions, handleSIGTERM: false })
  atWorkerEnd(() => undefined)
  return browser
}

/** The browser of this worker: each test opens its own context. The first call launches it. */
export const sharedBrowser = (): Promise<Browser> => {
  launching ??= launch()
  return launching
}

/**
 * Has the browser report file choosers from now on. A page that is busy handles a key or a click before the command that a listener sends, so a
 * listener that a test adds together with the click misses the chooser.
 */
export const listenForFileChoosers = (page: Page): void => {
  page.on('filechooser', () => undefined)
}
