/**
 * Limits code to the directory of the page's own assets. The service's policy names the whole origin, which also serves uploads,
 * where it does not know the path that a proxy puts before it.
 */
if (import.meta.env.PROD) {
  const assets = new URL('.', import.meta.url).href.replaceAll(';', '%3B').replaceAll(',', '%2C')
  const policy = document.createElement('meta')
  policy.httpEquiv = 'Content-Security-Policy'
  policy.content = `script-src ${assets}; style-src ${assets}`
  document.head.append(policy)
}
