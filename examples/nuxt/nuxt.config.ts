export default defineNuxtConfig({
  compatibilityDate: '2026-11-01',
  modules: ['@nuxt/image'],
  image: {
    provider: 'mediabucket',
    providers: { mediabucket: { provider: '~~/providers/mediabucket.ts' } },
  },
  runtimeConfig: { mediabucket: { url: '', token: '' } },
})
