import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../../core/fault.ts'

/** Fetch destinations for which a browser runs a response, applies it as a style sheet or installs it. */
const codeDestinations: ReadonlySet<string> = new Set([
  'audioworklet',
  'json',
  'manifest',
  'paintworklet',
  'script',
  'serviceworker',
  'sharedstorageworklet',
  'sharedworker',
  'speculationrules',
  'style',
  'webbundle',
  'worker',
  'xslt',
])

/** Whether a browser requests bytes to run them. Browsers send Sec-Fetch-Dest with every request, and pages cannot change it. */
function refusesDestination(headers: IncomingHttpHeaders): boolean {
  const destination = headers['sec-fetch-dest']
  return typeof destination === 'string' && codeDestinations.has(destination.trim().toLowerCase())
}

/** Throws Fault `destination-refused` where a browser requests bytes to run them, from any site (docs/interface.md B10). */
export function refuseCodeDestination(headers: IncomingHttpHeaders): void {
  if (refusesDestination(headers))
    throw new Fault('destination-refused', `Bytes of items are not served as ${headers['sec-fetch-dest']}.`)
}

/** Throws Fault `destination-refused` where a browser fetches a service worker; the service has none. */
export function refuseServiceWorker(headers: IncomingHttpHeaders): void {
  if (headers['service-worker'] !== undefined)
    throw new Fault('destination-refused', 'This service has no service worker.')
}
