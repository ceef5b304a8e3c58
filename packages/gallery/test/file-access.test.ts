import { type Client, type Media, ProblemError } from '@mediabucket/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFileAccess } from '../src/service/file-access.ts'
import { openFile } from '../src/viewer/open-file.ts'

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
  const files = createFileAccess(client as Client, { renew: async () => null })
  await openFile(files, media)
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
  const { bytes } = createFileAccess(client as Client, { renew: async () => null })
  expect((await bytes({ ...media, size: 5 }, { firstBytes: 5 })).status).toBe(200)
  await expect(bytes({ ...media, size: 6 }, { firstBytes: 5 })).rejects.toThrow('no ranges')
  expect(asked).toEqual(Array(2).fill({ firstBytes: 5, withToken: false }))
})

/** A client of which each request of the first URL fails with a problem of this code. */
function failing(code: string) {
  const details = { method: 'GET', url: media.url, status: 403, headers: new Headers(), body: '' } as const
  const problem = { type: 'about:blank', title: '', status: 403, code, detail: '' }
  const client: Partial<Client> = {
    get: async (url) => {
      if (`${url}`.endsWith('signature=x'))
        throw new ProblemError({ ...details, attempts: 1, retryAfter: null }, problem)
      return new Response('bytes')
    },
  }
  return client as Client
}

test('G23 a file whose signed URL has expired is loaded with a new one, once; other failures are final', async () => {
  const failed: string[] = []
  const renewed = { ...media, url: 'https://media.example/media/a?signature=y' }
  const cache = (next: Media | null) => ({
    renew: async ({ url }: Pick<Media, 'url'>) => {
      failed.push(url)
      return next
    },
  })
  const expired = failing('link-expired')
  const response = await createFileAccess(expired, cache(renewed)).bytes(media, {})
  expect([await response.text(), failed]).toEqual(['bytes', [media.url]])
  await expect(createFileAccess(expired, cache(null)).bytes(media, {})).rejects.toThrow(ProblemError)
  await expect(createFileAccess(expired, cache(media)).bytes(media, {})).rejects.toThrow(ProblemError)
  expect(failed).toHaveLength(3)
  await expect(createFileAccess(failing('media-unknown'), cache(renewed)).bytes(media, {})).rejects.toThrow(
    ProblemError,
  )
  expect(failed).toHaveLength(3)
})
