/** The rule of `isIssuerUrl`, for help and error messages. */
export const issuerUrlRule =
  'an https URL without credentials and fragment; http is accepted on the own machine only'

/** Whether tokens may be verified with what this URL serves. Without TLS, others on the network could replace it. */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text)
  if (!url || url.username || url.password || url.hash) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host)
