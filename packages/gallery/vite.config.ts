import { defineConfig } from 'vite'
import { precompress } from './precompress.ts'

/** The server that `vite` and `vite preview` forward requests to. */
const service = process.env['MEDIABUCKET_URL'] ?? 'http://127.0.0.1:8080'

/** The page of upload links is built by itself, so that neither page loads code of the other (`vite build --mode upload-page`). */
const isUploadPage = (mode: string) => mode === 'upload-page'

export default defineConfig(({ command, mode }) => {
  // Test runners set NODE_ENV to `test`; a development build would contain paths of this machine.
  if (command === 'build') process.env['NODE_ENV'] = 'production'
  return {
    // Relative URLs, so that the page works below any path.
    base: './',
    plugins: [precompress()],
    build: {
      target: 'es2023',
      // The Content-Security-Policy forbids `data:` URLs.
      assetsInlineLimit: 0,
      // The names of what each chunk imports would be a part of the first view.
      modulePreload: false,
      // The first build empties the directory.
      emptyOutDir: !isUploadPage(mode),
      rolldownOptions: {
        input: isUploadPage(mode) ? 'upload.html' : 'index.html',
        // One request for all that the first view needs, also for what other chunks use too.
        output: {
          codeSplitting: { groups: [{ name: isUploadPage(mode) ? 'upload' : 'index', tags: ['$initial'] }] },
        },
      },
    },
    server: { proxy: { '/api': service, '/media': service } },
    preview: { proxy: { '/api': service, '/media': service } },
  }
})
