import { AnswerError, type Client, createClient, type Media, type TaggedMedia } from '@mediabucket/client'
import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import { sharedServer } from '../../../test/harness/shared-server.ts'
import type { Connection } from '../src/service/connection.ts'
import { createEdits } from '../src/service/edits.ts'

const media: Media = {
  ...{ id: 'a', url: '/media/a', filename: 'lake.jpg', content_type: 'image/jpeg', size: 1, sha256: '00' },
  ...{ created_at: '', width: null, height: null, variants: null, alt_text: null },
  caption: 'First\r\nsecond ',
}

const changed = new AnswerError(
  {
    ...{ method: 'PATCH', url: 'https://media.example/api/media/a', status: 412, headers: new Headers() },
    ...{ body: '', attempts: 1, retryAfter: null },
  },
  '',
)

test('G32 line ends and spaces around a text are no edit by others', async () => {
  const current: TaggedMedia = { media: { ...media, caption: 'First\nsecond' }, etag: '2' }
  const client: Partial<Client> = {
    describeTagged: async () => current,
    async update(_id, changes, { ifMatch } = {}) {
      if (ifMatch !== current.etag) throw changed
      return { ...current.media, caption: `${changes.caption}` }
    },
  }
  const connection: Partial<Connection> = { watch: (request) => request() }
  const parts = { client: client as Client, connection: connection as Connection }
  const { save } = createEdits({ ...parts, labelChanges: signal(0) })
  const texts = { filename: 'lake.jpg', alt_text: null, caption: 'Mine' }
  expect(await save({ media, etag: '1' }, texts)).toMatchObject({ saved: { caption: 'Mine' } })
})

test('G39 labelling says which files do not exist any more', async () => {
  const server = await sharedServer()
  const client = createClient({ url: server.url, token: server.token })
  const ids: string[] = []
  for (const text of ['one', 'two']) ids.push((await client.upload(Buffer.from(text))).id)
  const [kept = '', deleted = ''] = ids
  await client.deleteMany([deleted])
  const connection: Partial<Connection> = { watch: (request) => request() }
  const edits = createEdits({ client, connection: connection as Connection, labelChanges: signal(0) })
  expect(await edits.label(ids, { album: '42' })).toEqual({ labelled: [kept], missing: [deleted] })
})
