import { defineConfig } from 'vite'
import { precompress } from './precompress.ts'

/** Where the service is while the page is worked on. */
const service = process.env['MEDIABUCKET_URL'] ?? 'http://127.0.0.1:8080'

export default defineConfig(({ command }) => {
  // Whatever the environment says, which tests set: else the paths of this machine would be built in.
  if (command === 'build') process.env['NODE_ENV'] = 'production'
  return {
    // Relative, so that the page works below any path.
    base: './',
    plugins: [precompress()],
    build: {
      target: 'es2023',
      // A data: URL would need room in the Content-Security-Policy.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
    server: { proxy: { '/api': service, '/media': service } },
    preview: { proxy: { '/api': service, '/media': service } },
  }
})
