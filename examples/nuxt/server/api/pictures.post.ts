import { createClient } from '@mediabucket/client'

export default defineEventHandler(async (event) => {
  const client = createClient(useRuntimeConfig(event).mediabucket)
  const file = (await readMultipartFormData(event))?.find(({ name }) => name === 'file')
  if (!file) throw createError({ statusCode: 400, statusMessage: 'The form has no file' })
  return await client.upload(file.data, { filename: file.filename, contentType: file.type })
})
