import { createClient, type Media } from '@mediabucket/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sharedServer } from '../../../test/harness/shared-server.ts'
import { saveAsZip } from '../src/selection/download-zip.ts'
import type { FileAccess } from '../src/service/file-access.ts'

const never = new AbortController().signal

/** Replaces what the browser has: the dialog that stores a file, whose bytes it returns. */
function saving(choose: (file: { createWritable(): Promise<WritableStream> }) => Promise<unknown>) {
  const chunks: Uint8Array[] = []
  const sink = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk) })
  vi.stubGlobal('window', { showSaveFilePicker: () => choose({ createWritable: async () => sink }) })
  onTestFinished(() => void vi.unstubAllGlobals())
  return () => Buffer.concat(chunks).toString('latin1')
}

/** As large as an archive that is written to a file. */
const large = (media: Media): Media => ({ ...media, size: 600_000_000 })

test('an archive leaves out the files that others have deleted, and counts them', async () => {
  const server = await sharedServer()
  const client = createClient({ url: server.url, token: server.token })
  const media: Media[] = []
  for (const text of ['one', 'two', 'three'])
    media.push(await client.upload(Buffer.from(text), { filename: `${text}.txt` }))
  await client.deleteMany(media.slice(1, 2).map(({ id }) => id))
  const bytes: FileAccess['bytes'] = ({ id }) => client.get(id)
  const written = saving(async (file) => file)
  expect(await saveAsZip(media.map(large), 'all.zip', { bytes }, never)).toBe(1)
  expect(written()).toContain('one.txt')
  expect(written()).toContain('three.txt')
  expect(written()).not.toContain('two.txt')
})

test('an archive whose place the person does not choose is no failure', async () => {
  const bytes = vi.fn<FileAccess['bytes']>()
  saving(() => Promise.reject(new DOMException('The user aborted a request.', 'AbortError')))
  const media = {
    id: 'a',
    url: '/media/a',
    filename: 'a',
    size: 600_000_000,
    created_at: '2026-11-01T00:00:00.000Z',
  }
  const item: Media = { ...media, content_type: 'text/plain', sha256: '', width: null, height: null }
  expect(await saveAsZip([item], 'a.zip', { bytes }, never)).toBeNull()
  expect(bytes).not.toHaveBeenCalled()
})
