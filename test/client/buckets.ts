import { type Client, createClient } from '../../packages/client/src/index.ts'
import type { TestServer } from '../harness/server.ts'

/** A token for a bucket, which is made if need be. */
export async function newToken(server: TestServer, bucket: string, ...args: string[]): Promise<string> {
  const { stdout } = await server.command('token', 'create', '--bucket', bucket, ...args)
  return stdout.trim()
}

/** A client with a bucket of its own. */
export const newBucket = async (server: TestServer, name: string, ...args: string[]): Promise<Client> =>
  createClient({ url: server.url, token: await newToken(server, name, ...args) })

/** The URLs of all items, by walking over the pages. */
export async function urlsOf(client: Client): Promise<string[]> {
  const urls: string[] = []
  for await (const url of client.media()) urls.push(url)
  return urls
}

/** What a promise was rejected with, or its value. */
export const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => error)
