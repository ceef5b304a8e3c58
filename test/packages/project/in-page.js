// Bundled for browsers in the project that has the packages installed.
import { createClient, localStorageResume } from '@mediabucket/client'

globalThis.tryOut = async (url, token) => {
  const client = createClient({ url, token })
  const before = (await client.listPage(1)).total
  const bytes = new Uint8Array(3_000_000).map((_, index) => index % 251)
  const progress = []
  const media = await client.upload(new File([bytes], 'Möwe.bin'), {
    onProgress: ({ sent, total }) => progress.push([sent, total]),
  })
  const listed = []
  for await (const item of client.media()) listed.push(item)
  const response = await client.get(media.url)
  const back = new Uint8Array(await response.arrayBuffer())
  await client.delete(media.id)
  const gone = await client.describe(media.id).catch((error) => `${error.name} ${error.problem.code}`)
  return {
    before,
    media,
    progress,
    listed: listed.length,
    isListed: listed.includes(media.url),
    same: back.length === bytes.length && back.every((byte, index) => byte === bytes[index]),
    gone,
    after: (await client.listPage(1)).total,
  }
}

globalThis.sendLarge = async (url, token) => {
  const bytes = new Uint8Array(20_000_000).map((_, index) => index % 251)
  const file = new File([bytes], 'large.bin', { lastModified: 1 })
  const sent = []
  const client = createClient({ url, token })
  const media = await client.upload(file, {
    resume: localStorageResume(),
    onProgress: (progress) => sent.push(progress.sent),
  })
  return { media, sent, kept: localStorage.length, isSecure: isSecureContext }
}
