import { createClient } from '@mediabucket/client'

export default defineEventHandler(async (event) => {
  // NUXT_MEDIABUCKET_URL and NUXT_MEDIABUCKET_TOKEN.
  const client = createClient(useRuntimeConfig(event).mediabucket)
  return (await client.itemPage({ kind: 'image', order: 'newest', urls: 'signed' })).data
})
