import { afterAll, beforeAll } from 'vitest'
import { usePostgres } from '../harness/database.ts'
import { makePair, type S3Server, type Signing, sendSigned, startS3Server } from '../harness/s3-door.ts'
import { syncScene } from './sync-scene.ts'

/** Starts a server on the engine before the tests of this block, and ends it after them. The function that is returned makes a scene on it. */
export function useKeysScenes(engine: 'sqlite' | 'postgres'): () => ReturnType<typeof keysScene> {
  let started: S3Server
  beforeAll(async () => {
    const restore = engine === 'postgres' ? usePostgres() : () => {}
    started = await startS3Server()
    restore()
  })
  afterAll(() => started[Symbol.asyncDispose]())
  return () => keysScene(started)
}

/** A bucket, an empty directory, and the bucket as S3 programs see it. */
export async function keysScene({ server, endpoint }: S3Server) {
  const scene = await syncScene(server)
  const { name } = await scene.client.bucket()
  await server.command('bucket', 'set', name, '--public-keys', 'on')
  const pair = await makePair(server, '--bucket', name)
  async function send(key: string, query: string, signing: Signing = {}): Promise<string> {
    const path = key.split('/').map(encodeURIComponent).join('/')
    // fetch would take out the segment of a dot.
    const url = `${endpoint}/${name}/${path.replace(/^\.\//, '%2E/')}${query}`
    const response = await sendSigned(pair, url, signing)
    const text = await response.text()
    if (response.status >= 300) throw new Error(`${signing.method} ${key}: ${response.status} ${text}`)
    return text
  }
  const list = async () =>
    [...(await send('', '?list-type=2')).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => key)
  const isPublic = async (key: string) => (await send(key, '?acl=')).includes('AllUsers')
  return {
    ...scene,
    put: (key: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
      send(key, '', { method: 'PUT', body, headers }),
    copy: (from: string, to: string) =>
      send(to, '', {
        method: 'PUT',
        headers: { 'x-amz-copy-source': `/${name}/${from.split('/').map(encodeURIComponent).join('/')}` },
      }),
    remove: (key: string) => send(key, '', { method: 'DELETE' }),
    get: (key: string) => send(key, ''),
    head: (key: string) => sendSigned(pair, `${endpoint}/${name}/${encodeURI(key)}`, { method: 'HEAD' }),
    list,
    /** The content of each key, and whether everybody may read it. */
    async keys() {
      const found = new Map<string, string>()
      for (const key of await list())
        if (!key.startsWith('_items/'))
          found.set(key, `${await send(key, '')}${(await isPublic(key)) ? ' public' : ''}`)
      return found
    },
    /** The content of the items of each path, oldest first, and the number of all items. */
    async items() {
      const found = new Map<string, string[]>()
      let count = 0
      for await (const { id, path } of scene.client.items()) {
        count += 1
        if (path != null)
          found.set(path, [...(found.get(path) ?? []), await (await scene.client.get(id)).text()])
      }
      return { found, count }
    },
  }
}
