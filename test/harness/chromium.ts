import { type Browser, chromium, type LaunchOptions } from 'playwright-core'
import { atWorkerEnd } from './worker-end.ts'

/** Debian's Chromium, which looks for nothing outside this machine. */
export const launchOptions: LaunchOptions = {
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // A name that is not the machine's own, so that a page can be met that is not secure.
    '--host-resolver-rules=MAP gallery.test 127.0.0.1',
  ],
}

/** A browser of its own, which the caller closes. */
export const launchBrowser = (): Promise<Browser> => chromium.launch(launchOptions)

let launching: Promise<Browser> | undefined

async function launch(): Promise<Browser> {
  // Playwright ends it when this process exits.
  const browser = await chromium.launch({ ...launchOptions, handleSIGTERM: false })
  atWorkerEnd(() => undefined)
  return browser
}

/** The browser of this worker: each test opens a context of its own. The first call launches it. */
export const sharedBrowser = (): Promise<Browser> => {
  launching ??= launch()
  return launching
}
