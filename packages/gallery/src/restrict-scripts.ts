/**
 * Restricts scripts and styles to the page's own assets directory (docs/interface.md, G15). The policy in the server's header
 * allows the whole origin, uploads included, because the server does not know the path that a proxy adds.
 */
if (import.meta.env.PROD) {
  const assets = new URL('.', import.meta.url).href.replaceAll(';', '%3B').replaceAll(',', '%2C')
  const policy = document.createElement('meta')
  policy.httpEquiv = 'Content-Security-Policy'
  policy.content = `script-src ${assets}; style-src ${assets}`
  document.head.append(policy)
}
