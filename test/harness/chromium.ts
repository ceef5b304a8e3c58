import { type Browser, chromium, type LaunchOptions } from 'playwright-core'

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

export const launchBrowser = (): Promise<Browser> => chromium.launch(launchOptions)
