import type { Client, Media } from '@mediabucket/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFileAccess } from '../src/service/file-access.ts'

const media: Media = {
  ...{ id: 'a', url: 'https://media.example/media/a?signature=x', filename: null },
  ...{ content_type: 'text/plain', size: 1, sha256: '00', created_at: '', width: null, height: null },
}

let blobs: Blob[]
let followed: number
beforeEach(() => {
  blobs = []
  followed = 0
  vi.useFakeTimers()
  vi.stubGlobal('document', {
    baseURI: 'https://media.example/',
    createElement: () => ({ click: () => (followed += 1) }),
  })
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => {
    if (blob instanceof Blob) blobs.push(blob)
    return 'blob:x'
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** Opens a file whose response has this type. */
async function open(contentType: string): Promise<void> {
  const headers = { 'content-type': contentType }
  const client: Partial<Client> = { get: async () => new Response(Buffer.from('bytes'), { headers }) }
  const files = createFileAccess(client as Client, { load: async () => null })
  await files.open(media)
}

test.each([
  ['application/pdf', 'application/pdf'],
  ['Application/PDF; x=text/html', 'application/pdf'],
  ['text/plain', 'text/plain;charset=utf-8'],
  ['text/plain; charset=iso-8859-1', 'text/plain;charset=utf-8'],
])('G23 a file of the type %s opens as %s', async (contentType, type) => {
  await open(contentType)
  expect([blobs.map((blob) => blob.type), followed]).toEqual([[type], 1])
  expect(await blobs[0]?.text()).toBe('bytes')
})

test.each([
  'text/html',
  'text/html; charset=utf-8',
  'image/svg+xml',
  'application/xhtml+xml',
  'text/xml',
  'text/plain+html',
  'text/markdown',
  'image/png',
  '',
])('G23 a file of the type "%s" does not open in the origin of the gallery', async (contentType) => {
  await expect(open(contentType)).rejects.toThrow('neither a PDF nor plain text')
  expect([blobs, followed]).toEqual([[], 0])
})

test('the first bytes alone are accepted, and all bytes only of a file that has no more', async () => {
  const asked: unknown[] = []
  const client: Partial<Client> = {
    get: async (_, options) => {
      asked.push(options)
      return new Response('bytes')
    },
  }
  const { bytes } = createFileAccess(client as Client, { load: async () => null })
  expect((await bytes({ ...media, size: 5 }, { firstBytes: 5 })).status).toBe(200)
  await expect(bytes({ ...media, size: 6 }, { firstBytes: 5 })).rejects.toThrow('no ranges')
  expect(asked).toEqual(Array(2).fill({ firstBytes: 5, withToken: false }))
})
