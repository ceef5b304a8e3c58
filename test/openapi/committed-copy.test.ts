import { expect, test } from 'vitest'
import { startServer } from '../harness/server.ts'

test('D1 docs/openapi.json is the document of the service; `npm run docs:openapi` updates it', async () => {
  await using server = await startServer({ MEDIABUCKET_BASE_URL: 'https://media.example.org' })
  const response = await fetch(`${server.url}/openapi.json`)
  await expect(await response.text()).toMatchFileSnapshot('../../docs/openapi.json')
})
