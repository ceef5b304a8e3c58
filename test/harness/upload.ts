import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SharedServer } from './server.ts'
import { readItem } from './wire.ts'

/** Uploads one file in a form and returns its media object. */
export async function upload(
  server: SharedServer,
  bytes: string | Uint8Array<ArrayBuffer>,
  file: { name?: string; type?: string; authorization?: string } = {},
) {
  const body = new FormData()
  body.append('file', new File([bytes], file.name ?? 'file.txt', { type: file.type ?? 'text/plain' }))
  const headers = file.authorization === undefined ? {} : { authorization: file.authorization }
  return await readItem(await server.request('/api/media', { method: 'POST', body, headers }))
}

/** Settings of a server that stores every file on the disk, for tests that change files. */
export const onDisk = { MEDIABUCKET_INLINE_SIZE: '0' }

/** The path of an item's bytes, if they are on the disk. */
export const blobPath = (server: SharedServer, id: string): string =>
  join(server.data, 'blobs', id.slice(0, 2), id)

/** The temporary files of uploads in progress. */
export const arriving = (server: SharedServer): Promise<string[]> => readdir(join(server.data, 'tmp'))
