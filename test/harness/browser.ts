import { type Browser, chromium } from 'playwright-core'
import { test } from 'vitest'
import { hasTool } from './tools.ts'

const canBrowse = hasTool('chromium')
if (!canBrowse) console.warn('Nothing is tried in a browser: there is no chromium')

/** A test that needs a browser; where nothing may be skipped, it fails for want of one. */
export const browserTest = test.skipIf(!canBrowse && !process.env['CI'])

/** Debian's Chromium, which looks for nothing outside this machine. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
